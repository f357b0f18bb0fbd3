//! `magnum-conductor dead-letters list | show | requeue | discard`: messages that were set aside, for operators.
//!
//! Works on the broker alone, with or without a conductor running. Never prints a secret: see
//! `magnum_rpc_server::DeadLetter`.

use anyhow::{Context, bail};
use clap::{ArgGroup, Args, Subcommand};
use magnum_config::Settings;
use magnum_rpc::{Authentication, RpcOptions};
use magnum_rpc_server::{DeadLetter, DeadLetters};
use serde_json::{Map, Value, json};

use super::operations::print;

/// Looks at messages that were set aside, puts them back, or throws them away.
#[derive(Debug, Args)]
pub struct DeadLettersArgs {
    #[command(subcommand)]
    command: DeadLettersCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum DeadLettersCommand {
    /// Lists messages that were set aside, oldest first, with the reason of each.
    List {
        /// At most so many.
        #[arg(long, default_value_t = 50)]
        limit: usize,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Shows one message, with its secrets masked.
    Show {
        /// The message's id in the list.
        id: String,
    },
    /// Puts messages back into the queue of requests, to be tried again.
    Requeue {
        /// Which of them.
        #[command(flatten)]
        which: Selection,
        /// The queue to put them into, instead of that of requests.
        #[arg(long, value_name = "QUEUE")]
        to: Option<String>,
        /// Signs them anew, as what a conductor with `[conductor] message_authentication = require` takes: for messages that
        /// are known to be ours.
        #[arg(long)]
        sign: bool,
    },
    /// Throws messages away for good.
    Discard {
        /// Which of them.
        #[command(flatten)]
        which: Selection,
    },
}

/// Selects one message or all.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true))]
pub struct Selection {
    /// The message's id in the list.
    #[arg(group = "which")]
    id: Option<String>,
    /// All that are there now.
    #[arg(long, group = "which")]
    all: bool,
}

impl Selection {
    fn has(&self, letter: &DeadLetter) -> bool {
        self.all || self.id.as_deref() == Some(letter.id.as_str())
    }

    /// Prints how many messages were moved or deleted; an unknown id is an error.
    fn print_result(&self, done: usize, action: &str) -> anyhow::Result<()> {
        match &self.id {
            Some(id) if done == 0 => bail!("there is no dead letter {id}; `dead-letters list` has their ids"),
            _ => print(&format!("{done} {action}\n")),
        }
    }
}

/// Runs the sub-command.
///
/// # Errors
/// The messaging options are wrong, the dead-letter queue cannot be read, a message cannot be moved, there is no message
/// with this id, or standard output cannot be written.
pub async fn run(settings: &Settings, args: DeadLettersArgs) -> anyhow::Result<()> {
    let mut options = RpcOptions::try_from(settings)?;
    options.authentication =
        Authentication::load(&settings.conductor).context("[conductor] message_key_file cannot be used")?;
    let mut letters = DeadLetters::open(&options, "magnum-conductor-dead-letters")
        .await
        .context("the queue of [conductor] dead_letter_queue cannot be read")?;
    let done = work(&mut letters, &options, args.command).await;
    // Messages that were only read go back into the queue in any case, at the latest when this process ends.
    letters.close().await.ok();
    done
}

async fn work(
    letters: &mut DeadLetters,
    options: &RpcOptions,
    command: DeadLettersCommand,
) -> anyhow::Result<()> {
    match command {
        DeadLettersCommand::List { limit, json } => {
            let mut found = Vec::new();
            while found.len() < limit
                && let Some(lent) = letters.next().await?
            {
                // The summary only: bodies can be large.
                found.push(summary(&lent.letter));
            }
            print(&if json {
                pretty(&Value::Array(found))
            } else {
                table(&found)
            })
        }
        DeadLettersCommand::Show { id } => {
            while let Some(lent) = letters.next().await? {
                if lent.letter.id == id {
                    return print(&pretty(&details(&lent.letter)));
                }
            }
            bail!("there is no dead letter {id}; `dead-letters list` has their ids")
        }
        DeadLettersCommand::Requeue { which, to, sign } => {
            if sign && options.authentication.key_ids().is_empty() {
                bail!("there is no key to sign with: [conductor] message_authentication is off");
            }
            let sign = sign.then_some(&options.authentication);
            let queue = to.unwrap_or_else(|| options.addressing.names.topic_queue().to_owned());
            let mut done = 0;
            while let Some(lent) = letters.next().await? {
                if which.has(&lent.letter) {
                    letters.requeue(&lent, &queue, sign).await?;
                    done += 1;
                }
            }
            which.print_result(done, &format!("put back into `{queue}`"))
        }
        DeadLettersCommand::Discard { which } => {
            let mut done = 0;
            while let Some(lent) = letters.next().await? {
                if which.has(&lent.letter) {
                    letters.discard(&lent).await?;
                    done += 1;
                }
            }
            which.print_result(done, "discarded")
        }
    }
}

fn summary(letter: &DeadLetter) -> Value {
    let mut map = Map::from(letter.subject());
    map.insert("id".to_owned(), json!(letter.id));
    map.insert("time".to_owned(), json!(letter.time));
    map.insert("reason".to_owned(), json!(letter.reason));
    map.insert("queue".to_owned(), json!(letter.message.queue));
    map.insert("bytes".to_owned(), json!(letter.message.body.len()));
    Value::Object(map)
}

fn details(letter: &DeadLetter) -> Value {
    let mut all = summary(letter);
    let message = &letter.message;
    all["content_type"] = json!(message.content_type);
    all["compression"] = json!(message.compression);
    all["message"] = letter
        .masked()
        .unwrap_or_else(|| json!("cannot be parsed, and is not shown: it may hold a user's token"));
    all
}

fn table(rows: &[Value]) -> String {
    let columns = ["id", "time", "method", "bytes", "reason"];
    let mut lines = vec![columns.map(str::to_uppercase)];
    lines.extend(rows.iter().map(|row| {
        columns.map(|column| match &row[column] {
            Value::Null => "-".to_owned(),
            Value::String(text) => text
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect(),
            other => other.to_string(),
        })
    }));
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    // The reason is last, and not padded.
    let widths = [width(0), width(1), width(2), width(3), 0];
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
