//! `magnum-conductor operations list`: which operations, once or again and again.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use clap::Args;
use magnum_common::clock::utc_now;
use magnum_db::read::clusters;
use magnum_db::{AnyConnection, Database, now_ms};
use serde_json::Value;
use uuid::Uuid;

use super::print;
use super::render::{as_json, summary, table};
use crate::operations::State;
use crate::operations::journal::{JournalError, OperationRow, read};
use crate::workflows::OperationKind;

/// Time between two looks of `--watch`.
const WATCH_EVERY: Duration = Duration::from_secs(2);

/// Which operations to list.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only those of this cluster: its name, or its uuid, which also finds a cluster that is gone.
    #[arg(long, value_name = "NAME|UUID")]
    cluster: Option<String>,
    /// Only those that this project has asked for.
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// Only those of this kind, such as `cluster_create`.
    #[arg(long, value_parser = parse_kind)]
    kind: Option<OperationKind>,
    /// Only those in this state: queued, running, retrying, observing, succeeded, failed, refused, cancelled.
    #[arg(long, value_parser = parse_state)]
    state: Option<State>,
    /// Only those accepted since then: a time in UTC, such as "2026-01-31 14:00:00", or how long ago, such as 2h30m.
    #[arg(long, value_parser = parse_since)]
    since: Option<Since>,
    /// At most so many, the newest.
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Goes on, and prints the list anew when it has changed. Ctrl-C ends it.
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    /// So long before now, by the database's clock.
    Ago(Duration),
    At(SystemTime),
}

/// Operations, newest first, with what they are shown with.
pub(super) struct Listed {
    pub(super) rows: Vec<OperationRow>,
    /// By uuid, of those clusters that are there.
    pub(super) names: HashMap<String, String>,
}

/// Lists operations.
pub(super) async fn run(db: &Database, args: ListArgs) -> anyhow::Result<()> {
    let wanted = read::Wanted {
        clusters: match &args.cluster {
            Some(cluster) => Some(uuids_of(db, cluster.clone()).await?),
            None => None,
        },
        project: args.project,
        kind: args.kind,
        state: args.state,
        since_ms: match args.since {
            None => None,
            Some(Since::At(time)) => Some(ms(time.duration_since(UNIX_EPOCH).unwrap_or_default())),
            Some(Since::Ago(age)) => Some(db.run(now_ms).await?.saturating_sub(ms(age))),
        },
        limit: i64::from(args.limit),
    };
    if !args.watch {
        let listed = look(db, &wanted).await?;
        return print(&if args.json {
            as_json(&Value::Array(listed.rows.iter().map(summary).collect()))
        } else {
            table(&listed)
        });
    }
    let mut shown = String::new();
    loop {
        let text = table(&look(db, &wanted).await?);
        if text != shown {
            print(&format!("{}\n{text}", heading()))?;
            shown = text;
        }
        tokio::time::sleep(WATCH_EVERY).await;
    }
}

async fn look(db: &Database, wanted: &read::Wanted) -> Result<Listed, JournalError> {
    let wanted = wanted.clone();
    db.transaction(move |conn| listed(conn, &wanted)).await
}

fn listed(conn: &mut AnyConnection, wanted: &read::Wanted) -> Result<Listed, JournalError> {
    let rows = read::list(conn, wanted)?;
    let mut uuids: Vec<&str> = rows.iter().map(|row| row.cluster_uuid.as_str()).collect();
    uuids.sort_unstable();
    uuids.dedup();
    let names = clusters::names(conn, &uuids)?;
    Ok(Listed { rows, names })
}

/// The uuids of the clusters that are meant. Names are those of clusters that are there: the journal has none.
async fn uuids_of(db: &Database, cluster: String) -> anyhow::Result<Vec<String>> {
    if let Ok(uuid) = Uuid::try_parse(&cluster) {
        return Ok(vec![uuid.to_string()]);
    }
    let name = cluster.clone();
    let found = db.run(move |conn| clusters::named(conn, &name)).await?;
    if found.is_empty() {
        bail!("there is no cluster {cluster}; operations of a cluster that is gone are listed by its uuid");
    }
    Ok(found)
}

fn heading() -> String {
    format!("-- {} UTC", utc_now().format("%Y-%m-%d %H:%M:%S"))
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The state of this name; the error lists all names.
fn parse_state(text: &str) -> Result<State, String> {
    text.parse().map_err(|_| {
        let names: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
        format!("there is no such state; use one of {}", names.join(", "))
    })
}

/// The kind of this name; the error lists all names.
fn parse_kind(text: &str) -> Result<OperationKind, String> {
    text.parse().map_err(|_| {
        let names: Vec<&str> = OperationKind::ALL.iter().map(|kind| kind.as_str()).collect();
        format!("there is no such kind; use one of {}", names.join(", "))
    })
}

fn parse_since(text: &str) -> Result<Since, String> {
    let ago = humantime::parse_duration(text).map(Since::Ago);
    ago.or_else(|_| humantime::parse_rfc3339_weak(text).map(Since::At))
        .map_err(|_| {
            "neither a time in UTC, such as \"2026-01-31 14:00:00\", nor how long ago, such as 2h30m"
                .to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_states_and_kinds_are_refused_with_the_list_of_those_there_are() {
        assert_eq!(parse_state("failed"), Ok(State::Failed));
        let error = parse_state("broken").unwrap_err();
        for state in State::ALL {
            assert!(error.contains(state.as_str()), "{error}");
        }
        assert_eq!(parse_kind("cluster_create"), Ok(OperationKind::ClusterCreate));
        assert!(parse_kind("create").unwrap_err().contains("cluster_create"));
    }

    #[test]
    fn since_is_a_time_or_how_long_ago() {
        let day = Duration::from_secs(24 * 3600);
        assert_eq!(
            parse_since("1970-01-02 00:00:00"),
            Ok(Since::At(UNIX_EPOCH + day))
        );
        assert_eq!(
            parse_since("1970-01-02T00:00:00Z"),
            Ok(Since::At(UNIX_EPOCH + day))
        );
        assert_eq!(parse_since("1day"), Ok(Since::Ago(day)));
        assert!(parse_since("yesterday").unwrap_err().contains("2h30m"));
    }
}
