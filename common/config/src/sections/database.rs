//! `[database]`: oslo.db's options.

use std::time::Duration;

use crate::schema::section;
use magnum_common::secret::Secret;

section! {
    /// The database.
    DatabaseSection "database" {
        /// mysql://user:password@host/magnum, postgresql://…, or sqlite:///path. SQLAlchemy's form with a
        /// driver name, such as mysql+pymysql://, is understood.
        connection: Secret as DatabaseUrl = Secret::new("sqlite:////var/lib/magnum/magnum.sqlite"),
            template "sqlite:///$state_path/magnum.sqlite";
        /// Seconds after which a connection is replaced. -1: never.
        connection_recycle_time: i64 as Int<-1, 31_536_000> = 3600;
        /// Connections that are kept open. 0 or -1: as many as max_overflow allows.
        max_pool_size: i64 as Int<-1, 65_535> = 5;
        /// Connections above max_pool_size when all are busy. -1: no limit of its own.
        max_overflow: i64 as Int<-1, 65_535> = 50;
        /// Seconds to wait for a free connection.
        pool_timeout: Option<Duration> as Opt<Seconds<1>> = None;
        /// Attempts to reach the database at start. -1: for ever.
        max_retries: i64 as Int<-1, 1_000_000> = 10;
        /// Seconds between these attempts.
        retry_interval: Duration as Seconds = Duration::from_secs(10);
        /// SQL mode of each MySQL connection; empty: the server's.
        mysql_sql_mode: Option<String> as Opt<Text> = Some("TRADITIONAL".to_owned());
        /// Galera: wait for this node to catch up before reading; unset: the server's setting.
        mysql_wsrep_sync_wait: Option<i64> as Opt<Int<0, 15>> = None;
        /// SQLite: wait for the disk at each commit.
        sqlite_synchronous: bool as Bool = true;
    }
}
