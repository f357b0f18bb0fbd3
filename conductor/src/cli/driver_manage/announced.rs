//! The drivers that running conductors announce, read from the database if it can be reached.

use magnum_config::Settings;
use magnum_db::read::announced_drivers::{self, AnnouncedDriver};
use magnum_db::{Database, DatabaseUrl, DbError, PoolOptions, now_ms};

/// The announcements, or why they cannot be read.
pub(super) type Announced = Result<Announcements, String>;

/// Announcements, with the database's time of reading them.
pub(super) struct Announcements {
    pub(super) drivers: Vec<AnnouncedDriver>,
    pub(super) now_ms: i64,
}

impl Announcements {
    /// The age of an announcement, in seconds.
    pub(super) fn age(&self, announced: &AnnouncedDriver) -> i64 {
        (self.now_ms - announced.announced_ms).max(0) / 1000
    }
}

/// Reads them with one attempt to connect, since a person waits for the result.
pub(super) async fn read(settings: &Settings) -> Announced {
    ask(settings).await.map_err(|error| error.to_string())
}

async fn ask(settings: &Settings) -> Result<Announcements, DbError> {
    let url = DatabaseUrl::parse(settings.database.connection.expose())?;
    if let DatabaseUrl::Sqlite { path: Some(path), .. } = &url
        && !std::path::Path::new(path).exists()
    {
        // Opening it would make an empty one.
        return Err(DbError::Unavailable(format!("there is no file {path}")));
    }
    let options = PoolOptions {
        connect_attempts: Some(1),
        max_connections: 1,
        ..PoolOptions::from(&settings.database)
    };
    // For Magnum too, a conductor without a heartbeat for this long is not running.
    let fresh = settings.default.service_down_time;
    Database::open(url, options)
        .await?
        .run(move |conn| {
            Ok(Announcements {
                drivers: announced_drivers::list(conn, fresh)?,
                now_ms: now_ms(conn)?,
            })
        })
        .await
}
