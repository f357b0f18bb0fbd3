//! What the conductor's journal says about a cluster.

use magnum_conductor::operations::JournalError;
use magnum_conductor::operations::journal::read::{self, Wanted};
use magnum_conductor::operations::journal::{EventRow, OperationRow};
use magnum_db::Database;

use super::screen::Screen;

/// More operations than a demonstration has.
const MANY: i64 = 100;

/// What the driver says about the cluster's latest operation, as long as that runs.
pub(super) async fn progress(db: &Database, cluster: &str) -> anyhow::Result<Option<String>> {
    let latest = operations(db, cluster, 1).await?.pop();
    Ok(latest
        .filter(|(operation, _)| operation.ended_ms.is_none())
        .and_then(|(operation, _)| operation.progress_text))
}

/// Prints the operations of a cluster and everything that happened to them, oldest first.
pub(super) async fn print(db: &Database, screen: &Screen, cluster: &str) -> anyhow::Result<()> {
    for (operation, events) in operations(db, cluster, MANY).await?.into_iter().rev() {
        screen.say(&format!(
            "{} {} by driver {} {}: {}",
            operation.kind,
            operation.uuid,
            operation.driver.as_deref().unwrap_or("-"),
            operation.driver_version.as_deref().unwrap_or("-"),
            operation.state,
        ));
        for event in events {
            screen.say(&line(&operation, &event));
        }
    }
    Ok(())
}

fn line(operation: &OperationRow, event: &EventRow) -> String {
    let after = event.at_ms.saturating_sub(operation.created_ms).max(0);
    format!(
        "  +{:>2}.{:03}s  {:<14} {:<15} {}",
        after / 1000,
        after % 1000,
        event.kind,
        event.step.as_deref().unwrap_or_default(),
        event.detail.as_deref().unwrap_or_default(),
    )
    .trim_end()
    .to_owned()
}

/// Newest first.
async fn operations(
    db: &Database,
    cluster: &str,
    limit: i64,
) -> Result<Vec<(OperationRow, Vec<EventRow>)>, JournalError> {
    let cluster = cluster.to_owned();
    db.transaction(move |conn| {
        let wanted = Wanted {
            clusters: Some(vec![cluster.clone()]),
            limit,
            ..Wanted::default()
        };
        read::list(conn, &wanted)?
            .into_iter()
            .map(|operation| {
                let events = read::events(conn, &operation.uuid)?;
                Ok((operation, events))
            })
            .collect()
    })
    .await
}
