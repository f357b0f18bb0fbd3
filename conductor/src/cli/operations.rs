//! `magnum-conductor operations list | show | retry | discard`: the journal for operators.
//!
//! Works on the database alone, with no conductor running. Never prints a context, an answer or a reply address.

mod list;
mod render;

use std::io::Write;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use magnum_config::Settings;
use magnum_db::Database;

use self::list::ListArgs;
use self::render::{as_json, details, timeline};
use crate::operations::admin::{self, AdminError};

/// Looks at recorded operations, and acts on them.
#[derive(Debug, Args)]
pub struct OperationsArgs {
    #[command(subcommand)]
    command: OperationsCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum OperationsCommand {
    /// Lists operations, newest first.
    List(ListArgs),
    /// Shows one operation with everything that happened to it.
    Show {
        /// The operation's id.
        id: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Tries again: now, if the operation waits for its next attempt; from the start, if it failed.
    Retry {
        /// The operation's id.
        id: String,
    },
    /// Gives an operation up; its cluster becomes *_FAILED. A running one stops at its next step.
    Discard {
        /// The operation's id.
        id: String,
        /// Why: becomes the reason of the operation and of the cluster's status.
        #[arg(long)]
        reason: String,
    },
}

/// Runs the sub-command.
///
/// # Errors
/// The database cannot be reached or read, there is no such operation, its state does not allow the action, `--reason` is
/// blank, or standard output cannot be written.
pub async fn run(settings: &Settings, args: OperationsArgs) -> anyhow::Result<()> {
    let db = Database::connect(&settings.database)
        .await
        .context("the journal is in the database of [database] connection")?;
    match args.command {
        OperationsCommand::List(args) => list::run(&db, args).await,
        OperationsCommand::Show { id, json } => {
            let (row, events) = db
                .transaction::<_, AdminError, _>(move |conn| admin::show(conn, &id))
                .await?;
            print(&if json {
                as_json(&details(&row, &events))
            } else {
                timeline(&row, &events)
            })
        }
        OperationsCommand::Retry { id } => {
            let shown = id.clone();
            let done = db
                .transaction::<_, AdminError, _>(move |conn| admin::retry(conn, &id, &operator()))
                .await?;
            print(&format!("{shown}: {done}\n"))
        }
        OperationsCommand::Discard { id, reason } => {
            if reason.trim().is_empty() {
                bail!("--reason must say why: users read it in status_reason");
            }
            let shown = id.clone();
            let done = db
                .transaction::<_, AdminError, _>(move |conn| admin::discard(conn, &id, &reason, &operator()))
                .await?;
            print(&format!("{shown}: {done}\n"))
        }
    }
}

/// The operator's user name, for the journal's events.
fn operator() -> String {
    let user = std::env::var("SUDO_USER")
        .or_else(|_| std::env::var("USER"))
        .unwrap_or_else(|_| "unknown".to_owned());
    format!("operator {user}")
}

pub(super) fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        // The reader has closed the pipe: `operations list | head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
