//! How a pool is built, and oslo.db's options as such.

use std::time::Duration;

use crate::session::SessionOptions;
use magnum_config::DatabaseSection;

/// Long enough to connect, short enough that a consumer notices an outage.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// `connection_recycle_time = -1`.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// How the pool is built. [`Default`] suits tests and small installations.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolOptions {
    /// Most connections at once.
    pub max_connections: u32,
    /// How long to try to get a connection before the work fails as [`DbError::Unavailable`](crate::DbError::Unavailable).
    pub acquire_timeout: Duration,
    /// Connections older than this are replaced.
    pub recycle_after: Duration,
    /// Attempts to reach the server at start; `None` for ever.
    pub connect_attempts: Option<u32>,
    /// Pause between those attempts.
    pub connect_interval: Duration,
    /// The sessions.
    pub session: SessionOptions,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            max_connections: 10,
            acquire_timeout: ACQUIRE_TIMEOUT,
            recycle_after: Duration::from_secs(3600),
            connect_attempts: Some(1),
            connect_interval: Duration::from_secs(10),
            session: SessionOptions::default(),
        }
    }
}

impl From<&DatabaseSection> for PoolOptions {
    fn from(section: &DatabaseSection) -> Self {
        // 0 and -1 mean "no limit" in oslo.db; more connections than blocking threads would be of no use.
        let count = |option: i64| u32::try_from(option).unwrap_or(0);
        let max_connections = match count(section.max_pool_size) + count(section.max_overflow) {
            0 => 50,
            some => some.min(200),
        };
        Self {
            max_connections,
            acquire_timeout: section.pool_timeout.unwrap_or(ACQUIRE_TIMEOUT),
            recycle_after: u64::try_from(section.connection_recycle_time)
                .map_or(NEVER, |seconds| Duration::from_secs(seconds.max(1))),
            connect_attempts: u32::try_from(section.max_retries)
                .ok()
                .map(|retries| retries.max(1)),
            connect_interval: section.retry_interval,
            session: SessionOptions {
                mysql_sql_mode: section.mysql_sql_mode.clone().unwrap_or_default(),
                mysql_wsrep_sync_wait: section
                    .mysql_wsrep_sync_wait
                    .and_then(|wait| u32::try_from(wait).ok()),
                sqlite_synchronous: section.sqlite_synchronous,
                ..SessionOptions::default()
            },
        }
    }
}
