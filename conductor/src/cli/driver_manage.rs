//! `magnum-driver-manage`: lists, makes and checks drivers.
//!
//! Works on a host without a database and without a conductor; where a database can be reached,
//! `list-drivers --details` also shows what the running conductors have loaded and what they could not load.
//!
//! Where it differs from Magnum's command: drivers are folders, so the path shown is the folder; versions are
//! shown; `create` and `check` are new.

#[cfg(feature = "python")]
mod adopt;
mod announced;
mod check;
mod list;
#[cfg(feature = "cluster-api")]
mod management_cluster;
mod scaffold;
mod table;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use magnum_config::{ConfigArgs, Settings};
use magnum_drivers::DriverFolder;

/// Lists, makes and checks cluster drivers.
///
/// A driver is a folder with a driver.toml. Conductors load the folders that they find in the directories of
/// the option `[drivers] driver_path`, at start and on SIGHUP.
#[derive(Debug, Parser)]
#[command(name = "magnum-driver-manage", version)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows the drivers found in driver_path, and why a folder is none
    #[command(
        long_about = "Shows the drivers found in the directories of [drivers] driver_path, and for each \
        folder that cannot be loaded why. With --details also what each running conductor has loaded, as told \
        by the database."
    )]
    ListDrivers(ListArgs),
    /// Makes a new driver that works, to start from
    #[command(
        long_about = "Makes the folder NAME with a driver.toml, a program and a README. The new driver \
        works at once: it builds clusters as folders on disk. Replace its parts one by one."
    )]
    Create(CreateArgs),
    /// Says what is wrong with a driver's folder, by line
    #[command(
        long_about = "Loads each folder as a conductor would and says everything that is wrong with it, \
        by line. Ends with exit code 1 when something is."
    )]
    Check(CheckArgs),
    /// Makes folders for the drivers of a Python environment
    #[cfg(feature = "python")]
    #[command(
        long_about = "Imports every package of a virtual environment that has an entry point in magnum.drivers, asks \
        each driver what it provides and can do, and makes a folder for it that the conductors load. Nothing is written \
        into the environment, and no cloud is asked. Exit code 1 when a driver cannot be used."
    )]
    Adopt(adopt::AdoptArgs),
    /// Looks at the management cluster of drivers for Cluster API
    #[cfg(feature = "cluster-api")]
    #[command(subcommand)]
    ManagementCluster(management_cluster::Command),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Also show cluster types, capabilities, and what the conductors have loaded
    #[arg(short, long)]
    details: bool,
    /// Also show the folder of each driver
    #[arg(short, long)]
    paths: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

#[derive(Debug, clap::Args)]
struct CreateArgs {
    /// The driver's name: a-z, 0-9, '_' and '-'
    name: String,
    /// Where to make the folder
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
}

#[derive(Debug, clap::Args)]
struct CheckArgs {
    /// A driver's folder, or a directory of such folders
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
}

/// The exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Code 0.
    Fine,
    /// Code 1; the reason has been printed.
    Wrong,
}

impl From<Outcome> for std::process::ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Fine => Self::SUCCESS,
            Outcome::Wrong => Self::FAILURE,
        }
    }
}

/// Runs the command; results go to `out`, errors to `err`.
///
/// # Errors
/// When `out` or `err` cannot be written.
pub async fn run(args: Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Outcome> {
    match args.command {
        Command::Create(create) => scaffold::create(&create.name, &create.path, out, err),
        Command::Check(check) => checked(&args.config, &check.dirs, out, err).await,
        #[cfg(feature = "python")]
        Command::Adopt(adopt) => match settings(&args.config, err)? {
            Some(settings) => adopt::adopt(&adopt, &settings, out, err).await,
            None => Ok(Outcome::Wrong),
        },
        #[cfg(feature = "cluster-api")]
        Command::ManagementCluster(command) => management_cluster::run(command, out, err).await,
        Command::ListDrivers(list) => {
            let Some(settings) = settings(&args.config, err)? else {
                return Ok(Outcome::Wrong);
            };
            let found = list::discover_local(&settings);
            let announced = if list.details {
                Some(announced::read(&settings).await)
            } else {
                None
            };
            match list.format {
                Format::Table => list::print_table(&found, announced.as_ref(), &list, out, err)?,
                Format::Json => list::print_json(&found, announced.as_ref(), out)?,
            }
            Ok(Outcome::Fine)
        }
    }
}

/// The folders, and what their engines need beside them: a Python environment, or a command and a kubeconfig.
async fn checked(
    config: &ConfigArgs,
    dirs: &[PathBuf],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Outcome> {
    let (mut outcome, good) = check::check(dirs, out, err)?;
    for folder in &good {
        // Somebody who repairs the first wants to know of the others.
        if !has_what_it_needs(config, folder, err).await? {
            outcome = Outcome::Wrong;
        }
    }
    Ok(outcome)
}

async fn has_what_it_needs(
    config: &ConfigArgs,
    folder: &DriverFolder,
    err: &mut dyn Write,
) -> io::Result<bool> {
    match &folder.manifest.engine {
        #[cfg(feature = "python")]
        magnum_drivers::EngineSpec::Python(spec) => match settings(config, err)? {
            Some(settings) => adopt::check(folder, spec, &settings, err).await,
            None => Ok(false),
        },
        #[cfg(feature = "cluster-api")]
        magnum_drivers::EngineSpec::ClusterApi(_) => {
            let Some(settings) = settings(config, err)? else {
                return Ok(false);
            };
            let missing = magnum_engine_cluster_api::missing_here(&settings).await;
            for one in &missing {
                writeln!(err, "{}: {one}", folder.dir.display())?;
            }
            Ok(missing.is_empty())
        }
        _ => {
            let _ = (config, err);
            Ok(true)
        }
    }
}

/// The options; none when they cannot be read, which has been told then.
fn settings(config: &ConfigArgs, err: &mut dyn Write) -> io::Result<Option<Settings>> {
    match Settings::load(config) {
        Ok(loaded) => Ok(Some(loaded.settings)),
        Err(errors) => {
            writeln!(err, "{errors}")?;
            Ok(None)
        }
    }
}
