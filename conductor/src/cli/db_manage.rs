//! `magnum-db-manage`: brings a database to what this release needs.
//!
//! The commands are Magnum's (`upgrade`, `version`, `stamp`), `save-trusts` and `reseal`. What they may do to a database is in
//! [`magnum_db::migrate`]. `upgrade` also makes the journal key file where there is none, since it is
//! the one command that every installation runs before its first start.
//!
//! Where it differs from Magnum's command: it works on SQLite and PostgreSQL too; there is no `revision` (that
//! one is for Magnum's developers); `upgrade` knows one target, the head.

mod reseal;

use std::io::{self, BufRead, IsTerminal as _, Write};
use std::process::ExitCode;

use crate::seal::JournalKey;
use crate::trusts;
use clap::{Parser, Subcommand};
use magnum_config::{ConfigArgs, Loaded, Place, Settings};
use magnum_db::{DatabaseUrl, DbError, migrate};

/// Creates and upgrades the database of Magnum.
///
/// Takes the database of `[database] connection` in magnum.conf: an empty one, or that of Magnum 18 (2024.1) or
/// later. Stop no service for it, except Python services older than the tables' new revision.
#[derive(Debug, Parser)]
#[command(name = "magnum-db-manage", version)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Brings the tables to what this release needs, and makes the journal key file if there is none
    Upgrade {
        /// Only the newest is possible: head, or its name
        #[arg(default_value = "head")]
        revision: String,
        /// Does not ask, at a terminal, whether the default of `[database] connection` is meant
        #[arg(long)]
        yes: bool,
    },
    /// Keeps the users and trusts of clusters of Magnum 22 in a table of ours
    #[command(
        long_about = "Keeps the users and trusts that clusters of Magnum 22 have in Keystone in a table of ours, their \
        passwords sealed with the journal key. The tables of Magnum 23 have no columns for them. To be run before the \
        magnum-db-manage of Magnum 23; `upgrade` does it by itself. May be repeated."
    )]
    SaveTrusts,
    /// Binds what is sealed to its row, and seals private keys that are not
    #[command(
        long_about = "Binds everything that is sealed with the journal key to its row, and with [certificates] \
        seal_private_keys seals private keys of the database that are not; all with the first key of the key file, so that \
        old lines may go. To be run when all conductors run this release, and again when it says so; what is not bound or \
        not sealed is accepted nowhere after that. Services need not stop. May be repeated."
    )]
    Reseal,
    /// Shows where the database stands
    Version,
    /// Writes the revision of Magnum's tables down without touching them
    #[command(
        long_about = "Writes the revision of Magnum's tables down without touching them. Only for a \
        database whose tables are known to be at that revision but whose table alembic_version was lost."
    )]
    Stamp {
        /// c0f832afc4fd (Magnum 18 to 22) or b3e1cf4a2d5e (Magnum 23, also called head)
        revision: String,
    },
}

/// Runs the command; results go to `out`, errors and warnings to `err`.
///
/// # Errors
/// When `out` or `err` cannot be written.
pub async fn run(args: Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<ExitCode> {
    let loaded = match Settings::load(&args.config) {
        Ok(loaded) => loaded,
        Err(errors) => {
            writeln!(err, "{errors}")?;
            return Ok(ExitCode::FAILURE);
        }
    };
    for warning in &loaded.warnings {
        writeln!(err, "warning: {}: {}", warning.place, warning.message)?;
    }
    let done = match args.command {
        Command::Upgrade { revision, yes } => match is_meant(&loaded, yes, err) {
            Ok(true) => upgrade(&loaded.settings, &revision, out).await,
            Ok(false) => Err(Failure::Message("nothing was done".to_owned())),
            Err(error) => Err(error),
        },
        Command::SaveTrusts => save_trusts(&loaded.settings, out).await,
        Command::Reseal => Box::pin(reseal::run(&loaded.settings, out)).await,
        Command::Version => version(&loaded.settings, out, err).await,
        Command::Stamp { revision } => stamp(&loaded.settings, &revision, out).await,
    };
    match done {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Failure::Output(error)) => Err(error),
        Err(Failure::Message(text)) => {
            writeln!(err, "magnum-db-manage: {text}")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

enum Failure {
    /// The output cannot be written.
    Output(io::Error),
    /// A message for standard error.
    Message(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<DbError> for Failure {
    fn from(error: DbError) -> Self {
        Self::Message(error.to_string())
    }
}

/// Whether the database that would be changed is the one that is meant. Where no configuration names one, it is said
/// which it is, and asked about at a terminal.
fn is_meant(loaded: &Loaded, yes: bool, err: &mut dyn Write) -> Result<bool, Failure> {
    if *loaded.place("database", "connection") != Place::Default {
        return Ok(true);
    }
    let url = DatabaseUrl::parse(loaded.settings.database.connection.expose())
        .map_err(|error| Failure::Message(error.to_string()))?;
    let files = match loaded.files.as_slice() {
        [] => "no configuration file was found".to_owned(),
        files => {
            let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            format!("{} does not set it", names.join(", "))
        }
    };
    writeln!(
        err,
        "[database] connection is the default, {}: {files}",
        url.shown()
    )?;
    let mut input = io::stdin().lock();
    Ok(yes || !input.is_terminal() || is_confirmed(&mut input, err)?)
}

/// Asks, and takes only a clear yes for one.
fn is_confirmed(input: &mut dyn BufRead, err: &mut dyn Write) -> Result<bool, Failure> {
    write!(err, "Go on with this database? [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

async fn upgrade(settings: &Settings, revision: &str, out: &mut dyn Write) -> Result<(), Failure> {
    if revision != "head" && revision != migrate::HEAD.as_str() {
        return Err(Failure::Message(format!(
            "cannot upgrade to '{revision}': this release knows one target, {} (head)",
            migrate::HEAD
        )));
    }
    let path = &settings.conductor.journal_key_file;
    let report = migrate::upgrade_keeping(&settings.database, trusts::keep, path.clone()).await?;
    for line in &report {
        writeln!(out, "{line}")?;
    }
    if report.is_empty() {
        writeln!(
            out,
            "nothing to do: the database is at revision {}",
            migrate::HEAD
        )?;
    }
    let made = JournalKey::create_if_missing(path).map_err(|error| {
        Failure::Message(format!(
            "the database is ready, but there is no journal key: {error}"
        ))
    })?;
    if made {
        writeln!(
            out,
            "made the journal key file {} (mode 600); copy it to the same place on every conductor host",
            path.display()
        )?;
    }
    Ok(())
}

async fn save_trusts(settings: &Settings, out: &mut dyn Write) -> Result<(), Failure> {
    let key = settings.conductor.journal_key_file.clone();
    let report = migrate::keep_trusts(&settings.database, trusts::keep, key).await?;
    for line in &report {
        writeln!(out, "{line}")?;
    }
    if report.is_empty() {
        writeln!(out, "nothing to do: no cluster has a trust that is not kept")?;
    }
    Ok(())
}

async fn version(settings: &Settings, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Failure> {
    let version = migrate::version(&settings.database).await?;
    match version.magnum {
        Some(revision) => writeln!(out, "Current DB revision is {revision}")?,
        None => {
            writeln!(out, "Current DB revision is none")?;
            writeln!(
                err,
                "there are no tables of Magnum's; `magnum-db-manage upgrade` makes them"
            )?;
        }
    }
    for name in &version.conductor {
        writeln!(out, "applied {name}")?;
    }
    for name in &version.pending {
        writeln!(out, "missing {name}")?;
    }
    Ok(())
}

async fn stamp(settings: &Settings, revision: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let revision = migrate::stamp(&settings.database, revision).await?;
    writeln!(out, "stamped revision {revision}; the tables were not touched")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        for (answer, meant) in [
            ("y\n", true),
            ("Yes\n", true),
            ("\n", false),
            ("", false),
            ("no\n", false),
        ] {
            let mut asked = Vec::new();
            let Ok(confirmed) = is_confirmed(&mut answer.as_bytes(), &mut asked) else {
                panic!("asked in vain");
            };
            assert_eq!(confirmed, meant, "{answer:?}");
            assert!(String::from_utf8_lossy(&asked).contains("[y/N]"));
        }
    }
}
