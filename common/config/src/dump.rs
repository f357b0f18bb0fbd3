//! The effective configuration, as `config dump` prints it.

use super::declared::Shown;
use super::{ConfigErrors, Declared, Loaded, OptionSpec, options};

/// Every option with its effective value and where that was written, those of engines too. The output is itself a
/// valid file, except that secrets are masked.
///
/// # Errors
/// What cannot be used in a section of `declared`.
pub fn dump(loaded: &Loaded, declared: &[Declared]) -> Result<String, ConfigErrors> {
    let mut out = String::new();
    for file in &loaded.files {
        out.push_str(&format!("# read: {}\n", file.display()));
    }
    let mut section = "";
    let mut add = |spec: &OptionSpec, (value, place): Shown| {
        if spec.section != section {
            section = spec.section;
            out.push_str(&format!("\n[{section}]\n"));
        }
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
    };
    for (spec, value) in options().iter().zip(loaded.settings.shown()) {
        add(spec, (value, loaded.place(spec.section, spec.name).clone()));
    }
    for one in declared {
        for (spec, shown) in one.options.iter().zip(one.shown(&loaded.settings)?) {
            add(spec, shown);
        }
    }
    Ok(out)
}
