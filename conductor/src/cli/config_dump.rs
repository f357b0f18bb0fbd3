//! `magnum-conductor config dump | sample | reference`: what the program would run with, and what it could.
//!
//! None of them prints a secret: the dump masks it, the others know only defaults.

use std::io::Write;

use magnum_config::{self as config, ConfigArgs, Settings};

/// Prints the effective configuration and where each value was written; warnings go to standard error. Fails
/// with all problems when the configuration is not usable.
pub fn run(args: &ConfigArgs) -> anyhow::Result<()> {
    let loaded = Settings::load(args)?;
    let mut err = std::io::stderr().lock();
    for warning in &loaded.warnings {
        writeln!(err, "warning: {warning}")?;
    }
    print(&config::dump(&loaded))
}

/// Prints the sample file.
pub fn sample() -> anyhow::Result<()> {
    print(&config::sample())
}

/// Prints the list of options in Markdown.
pub fn reference() -> anyhow::Result<()> {
    print(&config::reference())
}

fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        // The reader has seen enough: `config dump | head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
