//! `magnum-conductor doctor`: a running installation as a person sees it. What is up, what is stuck and why, what to do
//! next.
//!
//! ```text
//! facts.rs    what database, broker and Keystone say; each may be away
//! opinion.rs  what of it is worth a person's time, and what to do about it; pure
//! ```
//!
//! Looks and changes nothing. `magnum-status upgrade check` looks at what would stop the services of this host, this at
//! what goes on now. Exit codes are the same: 0 all is well, 1 look at it, 2 something is broken.

mod facts;
mod opinion;

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use magnum_config::Settings;
use serde_json::json;

use self::facts::Facts;
use self::opinion::{Level, Remark};
use super::operations::print;

/// Looks at the installation.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Looks, and prints what it thinks.
///
/// # Errors
/// Standard output cannot be written.
pub(super) async fn run(settings: &Settings, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let facts = Facts::gather(settings).await;
    let remarks = opinion::of(&facts);
    print(&if args.json {
        as_json(&remarks)
    } else {
        as_text(&remarks)
    })?;
    let worst = remarks.iter().map(|remark| remark.level).max();
    Ok(worst.unwrap_or(Level::Well).exit_code())
}

fn as_json(remarks: &[Remark]) -> String {
    let remarks: Vec<_> = remarks
        .iter()
        .map(|remark| {
            json!({
                "level": remark.level.word(), "about": remark.about, "says": remark.text, "next": remark.next,
                "operation": remark.operation, "cluster": remark.cluster,
            })
        })
        .collect();
    format!("{:#}\n", json!({ "remarks": remarks }))
}

fn as_text(remarks: &[Remark]) -> String {
    let widest = remarks.iter().map(|remark| remark.about.chars().count()).max();
    let width = widest.unwrap_or_default();
    let mut text = String::new();
    for remark in remarks {
        // Writing to a string cannot fail.
        let _infallible = writeln!(
            text,
            "{:6}  {:width$}  {}",
            remark.level.word(),
            remark.about,
            remark.text
        );
        if let Some(next) = &remark.next {
            let _infallible = writeln!(text, "{:6}  {:width$}  -> {next}", "", "");
        }
    }
    text
}
