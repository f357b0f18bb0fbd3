//! Gauges of open operations, read from the journal: every conductor exports the same values.

use std::time::Duration;

use magnum_db::Database;
use tokio_util::sync::CancellationToken;

use super::{FailureLog, Rounds};
use crate::metric_definitions as metric;
use crate::operations::State;
use crate::store::journal_stats;

/// Samples until `shutdown`.
pub async fn run(db: Database, interval: Duration, shutdown: CancellationToken) {
    let mut rounds = Rounds::new(interval, shutdown);
    let mut failures = FailureLog::of("sampling the journal");
    while rounds.next().await {
        let sampled = db
            .run(|conn| {
                let states: Vec<&str> = State::OPEN.iter().map(|state| state.as_str()).collect();
                journal_stats::by_state(conn, &states)
            })
            .await;
        let Some(found) = failures.record(sampled) else {
            continue;
        };
        for state in State::OPEN.iter().map(|state| state.as_str()) {
            let (count, oldest) = found
                .iter()
                .find(|stats| stats.state == state)
                .map_or((0, 0), |stats| (stats.count, stats.oldest_ms));
            metrics::gauge!(metric::OPERATIONS_OPEN, "state" => state).set(count as f64);
            metrics::gauge!(metric::OPERATIONS_OLDEST, "state" => state).set(oldest as f64 / 1000.0);
        }
        let (open, in_use) = db.connections();
        metrics::gauge!(metric::DATABASE_CONNECTIONS, "state" => "open").set(f64::from(open));
        metrics::gauge!(metric::DATABASE_CONNECTIONS, "state" => "in_use").set(f64::from(in_use));
    }
}
