//! `magnum-status upgrade check`: finds what would stop this release, before it is started.
//!
//! Looks and changes nothing: neither the database nor the broker, nor the key file that is not there yet. The table,
//! the JSON and the exit codes are those of oslo.upgradecheck, which Magnum's own command uses: 0 when all is well,
//! 1 when something should be looked at, 2 when something stops us, 255 when the check itself failed.
//!
//! Where it differs from Magnum's command: that one has a single check, of a policy file in JSON.

mod cluster_checks;
mod folder_checks;
mod host_checks;
mod key_manager_check;
mod messaging;
mod notifications;
mod report;
mod sealing_check;
mod token_check;

use std::io::{self, Write};

use clap::{Parser, Subcommand};
use magnum_config::{ConfigArgs, Settings};

use self::cluster_checks::Clusters;
pub use self::report::{Code, Finding};

/// The exit code when the check itself failed.
pub const UNEXPECTED: u8 = 255;

/// Says what would stop Magnum's services of this release.
#[derive(Debug, Parser)]
#[command(name = "magnum-status", version)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Upgrades
    #[command(subcommand)]
    Upgrade(Upgrade),
}

#[derive(Debug, Subcommand)]
enum Upgrade {
    /// Looks at configuration, broker, tokens, key manager, database, drivers and clusters
    #[command(
        long_about = "Looks at configuration, database, broker, tokens, key manager, drivers and clusters, and changes nothing. \
        Run it as the user of the services, on each conductor host.\n\nExit codes: 0 all is well, 1 look at the \
        warnings, 2 something stops this release, 255 the check failed."
    )]
    Check {
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
}

/// Checks, and prints what was found to `out`. Returns the exit code.
///
/// # Errors
/// When `out` cannot be written.
pub async fn run(args: Args, out: &mut dyn Write) -> io::Result<u8> {
    let Command::Upgrade(Upgrade::Check { json }) = args.command;
    let findings = check(&args.config).await;
    if json {
        report::print_json(&findings, out)?;
    } else {
        report::print_table(&findings, out)?;
    }
    Ok(report::worst(&findings).number())
}

/// Makes all checks, in the order in which their findings are to be solved.
async fn check(config: &ConfigArgs) -> Vec<Finding> {
    let mut configuration = Finding::of("Configuration");
    let loaded = match Settings::load(config) {
        Ok(loaded) => loaded,
        Err(errors) => {
            for problem in &errors.0 {
                configuration.fail(problem.to_string());
            }
            return vec![configuration];
        }
    };
    for warning in &loaded.warnings {
        configuration.warn(warning.to_string());
    }
    let settings = &loaded.settings;
    let (folders, drivers) = folder_checks::drivers(settings);
    let mut findings = vec![configuration, folder_checks::written(settings)];
    findings.extend(messaging::check(settings).await);
    findings.push(notifications::check(settings).await);
    findings.extend(token_check::tokens(settings).await);
    findings.extend(key_manager_check::key_manager(settings).await);
    findings.push(drivers);
    let database = host_checks::database(settings).await;
    findings.extend(database.findings);
    let (key, key_finding) = host_checks::journal_key(settings);
    match database.facts {
        None => findings.push(key_finding),
        Some(facts) => {
            let key_finding = host_checks::open_operations(key.as_ref(), &facts, key_finding);
            let clusters = Clusters::new(settings, &facts, folders);
            findings.extend([
                key_finding,
                clusters.drivers(),
                clusters.former_releases(),
                clusters.unfinished(),
                clusters.certificates(),
                sealing_check::sealing(settings, key.as_ref(), &facts),
                host_checks::services(&facts),
                host_checks::key_pool(settings, &facts),
            ]);
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn command_line_equals_magnums() {
        Args::command().debug_assert();
        let asked = [
            "magnum-status",
            "--config-file",
            "a",
            "upgrade",
            "check",
            "--json",
        ];
        assert!(Args::try_parse_from(asked).is_ok());
        assert!(Args::try_parse_from(["magnum-status", "upgrade"]).is_err());
    }
}
