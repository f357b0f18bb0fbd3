//! The effective configuration, as `config dump` prints it.

use super::{Loaded, options};

/// Every option with its effective value and where that was written. The output is itself a valid file, except
/// that secrets are masked.
pub fn dump(loaded: &Loaded) -> String {
    let mut out = String::new();
    for file in &loaded.files {
        out.push_str(&format!("# read: {}\n", file.display()));
    }
    let mut section = "";
    for (spec, value) in options().iter().zip(loaded.settings.shown()) {
        if spec.section != section {
            section = spec.section;
            out.push_str(&format!("\n[{section}]\n"));
        }
        let place = loaded.place(spec.section, spec.name);
        match value {
            // A dollar sign was substituted already; doubled, it stays one when the dump is read again.
            Some(value) => {
                out.push_str(&format!(
                    "# {place}\n{} = {}\n",
                    spec.name,
                    value.replace('$', "$$").replace('\n', "\n  ")
                ));
            }
            None => out.push_str(&format!("# {place}: not set\n# {} =\n", spec.name)),
        }
    }
    out
}
