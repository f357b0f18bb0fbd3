//! `[database]`: oslo.db's options.

use std::time::Duration;

use crate::schema::section;
use magnum_common::secret::Secret;

section! {
    /// Database connections.
    DatabaseSection "database" {
        /// Database URL: mysql://user:password@host/magnum, postgresql://user:password@host/magnum or sqlite:///path.
        /// SQLAlchemy URLs with a driver name, such as mysql+pymysql://, are accepted.
        connection: Secret as DatabaseUrl = Secret::new("sqlite:////var/lib/magnum/magnum.sqlite"),
            template "sqlite:///$state_path/magnum.sqlite";
        /// Age at which a connection is replaced, in seconds. -1: never.
        connection_recycle_time: i64 as Int<-1, 31_536_000> = 3600;
        /// Number of connections kept open in the pool. 0 or -1: as many as max_overflow allows.
        max_pool_size: i64 as Int<-1, 65_535> = 5;
        /// Maximum number of connections beyond max_pool_size while all of those are in use. -1: no separate limit.
        max_overflow: i64 as Int<-1, 65_535> = 50;
        /// Time limit, in seconds, for a connection from the pool.
        pool_timeout: Option<Duration> as Opt<SecondsMinMillis<1>> = None;
        /// Maximum number of attempts to connect to the database at start. -1: unlimited.
        max_retries: i64 as Int<-1, 1_000_000> = 10;
        /// Delay between these attempts, in seconds.
        retry_interval: Duration as Seconds = Duration::from_secs(10);
        /// SQL mode of each MySQL connection. Empty: the server's setting.
        mysql_sql_mode: Option<String> as Opt<Text> = Some("TRADITIONAL".to_owned());
        /// Galera's wsrep_sync_wait: statements that wait until this node has caught up, as a bit mask. Unset: the
        /// server's setting.
        mysql_wsrep_sync_wait: Option<i64> as Opt<Int<0, 15>> = None;
        /// SQLite: sync to disk at each commit.
        sqlite_synchronous: bool as Bool = true;
    }
}
