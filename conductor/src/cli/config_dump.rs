//! `magnum-conductor config dump | sample | reference`: the effective configuration, and all options.
//!
//! None of them prints a secret: the dump masks it, the others know only defaults.

use std::io::Write;

use magnum_config::{self as config, ConfigArgs, Settings};

use crate::drivers::registry;

/// Prints the effective configuration and where each value was written; warnings go to standard error.
///
/// # Errors
/// The configuration is not usable (the error has all problems), or an output cannot be written.
pub fn run(args: &ConfigArgs) -> anyhow::Result<()> {
    let loaded = Settings::load(args)?;
    let mut err = std::io::stderr().lock();
    for warning in &loaded.warnings {
        writeln!(err, "warning: {warning}")?;
    }
    let engines = registry::sections();
    for warning in engines
        .iter()
        .flat_map(|section| section.warnings(&loaded.settings))
    {
        writeln!(err, "warning: {warning}")?;
    }
    print(&config::dump(&loaded, &engines)?)
}

/// Prints the sample file.
///
/// # Errors
/// Standard output cannot be written.
pub fn sample() -> anyhow::Result<()> {
    print(&config::sample(&registry::sections()))
}

/// Prints the list of options in Markdown.
///
/// # Errors
/// Standard output cannot be written.
pub fn reference() -> anyhow::Result<()> {
    print(&config::reference(&registry::sections()))
}

fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        // The reader has closed the pipe: `config dump | head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

// The committed files have the sections of every engine, so a build without one of them cannot tell.
#[cfg(all(test, feature = "cluster-api", feature = "python"))]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn committed_sample_and_option_list_equal_the_generated_ones() {
        let engines = registry::sections();
        for (name, generated, command) in [
            (
                "deploy/config/magnum.conf.sample",
                config::sample(&engines),
                "sample",
            ),
            ("docs/options.md", config::reference(&engines), "reference"),
        ] {
            let committed = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name));
            assert!(
                committed.is_ok_and(|text| text == generated),
                "{name} is out of date; run: cargo run --bin magnum-conductor -- config {command} > {name}"
            );
        }
    }
}
