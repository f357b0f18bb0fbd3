//! The database: the only place with connections, and the rows and reads that both programs share.
//!
//! ```text
//! Database (pool.rs)      run, transaction      the only spawn_blocking
//!   session.rs            one connection, set up alike on SQLite, MySQL/MariaDB, PostgreSQL
//!   socket.rs             its TCP socket, to be cut when nothing is answered
//!   url.rs                SQLAlchemy's URL
//! schema.rs               tables for diesel         rows/  row <-> model, with Magnum's encodings
//! read/                   queries both programs need, tenancy included
//! write/, lock.rs         writes both programs make, and row locks
//! migrate.rs              Magnum's tables by alembic revision, ours by diesel migrations
//! clock.rs                the database's time, for leases
//! prepared.rs             queries that a connection keeps prepared
//! ```
//!
//! Magnum's seven tables are shared with Python services that may run beside us: the same columns, the same
//! text in them, no locks that they would not expect. What only the conductor writes is in the conductor's
//! `store` and `operations`.

pub mod clock;
pub mod connection;
pub mod error;
pub mod lock;
pub mod migrate;
pub mod pool;
pub mod prepared;
pub mod read;
pub mod rows;
pub mod schema;
pub mod session;
#[cfg_attr(
    not(any(feature = "mysql", feature = "postgres")),
    allow(dead_code, reason = "SQLite has no server")
)]
mod socket;
pub mod url;
pub mod write;

pub use clock::{NowMs, now_ms, now_ms_expr, now_plus_ms_expr};
pub use connection::{AnyConnection, Backend, MultiBackend};
pub use error::DbError;
#[cfg(feature = "test-support")]
pub use pool::simulated;
pub use pool::{Database, PoolOptions};
pub use prepared::{KeepPrepared, padded};
pub use url::DatabaseUrl;

/// Values in one `IN (…)`: far below the limits of the three databases, large enough that a page of the API
/// needs one query.
const MOST_BINDS: usize = 1000;
