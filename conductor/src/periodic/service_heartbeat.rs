//! The heartbeat in `magnum_service`, which `GET /v1/mservices` shows.
//!
//! One row per host and program, shared with a Python conductor of the same host. Where Magnum differs: its host
//! has no default, so that all conductors share one row; and two processes of one host starve each other's
//! timestamp.

use std::time::Duration;

use magnum_db::{Database, write};
use tokio_util::sync::CancellationToken;

use super::{FailureLog, Rounds};

/// The name in the column `binary`.
pub const BINARY: &str = "magnum-conductor";

/// Reports until `shutdown`.
pub async fn run(db: Database, host: String, interval: Duration, shutdown: CancellationToken) {
    let mut rounds = Rounds::new(interval, shutdown);
    let mut failures = FailureLog::of("the service heartbeat");
    while rounds.next().await {
        let host = host.clone();
        let reported = db
            .transaction(move |conn| write::services::report(conn, &host, BINARY))
            .await;
        failures.record(reported);
    }
}
