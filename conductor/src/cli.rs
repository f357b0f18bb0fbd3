//! The sub-commands of this crate's programs, one file each; their `main.rs` only parse and dispatch.

pub mod config_dump;
pub mod db_manage;
pub mod dead_letters;
mod doctor;
pub mod driver_manage;
pub mod operations;
pub mod run;
pub mod status;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use magnum_common::error::with_causes;
use magnum_config::{ConfigArgs, Settings};
use magnum_engine_process::guard::{self, GuardArgs};
use magnum_service::end_process;
use magnum_telemetry as telemetry;

/// Accepts Magnum's requests from AMQP, records them, and has drivers carry them out.
#[derive(Debug, Parser)]
#[command(name = "magnum-conductor", version)]
pub struct Arguments {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service (the default)
    Run,
    /// Show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look at recorded operations, and act on them
    Operations(operations::OperationsArgs),
    /// Look at messages that were set aside, put them back, or throw them away
    DeadLetters(dead_letters::DeadLettersArgs),
    /// Look at the installation: what is up, what is stuck and why, what to do next
    #[command(
        long_about = "Looks at a running installation: what is up, what is stuck and why, what to do next. Changes \
        nothing.\n\nExit codes: 0 all is well, 1 look at it, 2 something is broken."
    )]
    Doctor(doctor::DoctorArgs),
    /// The guard of a driver's program: started by the conductor itself.
    #[command(name = guard::SUB_COMMAND, hide = true)]
    Guard(GuardArgs),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Every value in effect and where it was written; secrets are masked
    Dump,
    /// A sample file with every option
    Sample,
    /// A list of all options in Markdown
    Reference,
}

/// Carries out what the command line says.
pub fn main(arguments: Arguments) -> ExitCode {
    let outcome = match arguments.command {
        None | Some(Command::Run) => end_process(told(run::run(&arguments.config))),
        Some(Command::Config(ConfigCommand::Dump)) => config_dump::run(&arguments.config),
        Some(Command::Config(ConfigCommand::Sample)) => config_dump::sample(),
        Some(Command::Config(ConfigCommand::Reference)) => config_dump::reference(),
        Some(Command::Operations(args)) => at_terminal(&arguments.config, async |settings| {
            operations::run(settings, args).await
        }),
        Some(Command::DeadLetters(args)) => at_terminal(&arguments.config, async |settings| {
            dead_letters::run(settings, args).await
        }),
        Some(Command::Doctor(args)) => {
            match at_terminal(&arguments.config, async |settings| {
                doctor::run(settings, &args).await
            }) {
                Ok(code) => return code,
                Err(error) => Err(error),
            }
        }
        Some(Command::Guard(args)) => {
            return guard::run(&args, std::process::Stdio::inherit()).into();
        }
    };
    told(outcome).into()
}

/// The exit code.
fn told(outcome: anyhow::Result<()>) -> u8 {
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            // The log may not be set up yet, and an operator at a terminal must see why nothing runs.
            eprintln!("magnum-conductor: {}", with_causes(error.as_ref()));
            1
        }
    }
}

/// Runs what an operator asked for and waits for.
fn at_terminal<T>(
    config: &ConfigArgs,
    work: impl AsyncFnOnce(&Settings) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let loaded = Settings::load(config)?;
    telemetry::warnings_on_terminal();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work(&loaded.settings))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn no_sub_command_runs_the_service_and_options_may_stand_anywhere() {
        let plain = Arguments::parse_from(["magnum-conductor", "--config-file", "a"]);
        assert!(plain.command.is_none());
        let dump = Arguments::parse_from(["magnum-conductor", "config", "dump", "--config-file", "a"]);
        assert_eq!(dump.config.files.len(), 1);
    }
}
