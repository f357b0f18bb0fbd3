//! What the running conductors say they have, read from the database where there is one.

use magnum_config::Settings;
use magnum_db::read::announced_drivers::{self, AnnouncedDriver};
use magnum_db::{Database, DatabaseUrl, DbError, PoolOptions, now_ms};

/// The announcements with the database's time, or why there are none to be had.
pub(super) type Announced = Result<Said, String>;

/// What was said, and when it was asked.
pub(super) struct Said {
    pub(super) drivers: Vec<AnnouncedDriver>,
    pub(super) now_ms: i64,
}

impl Said {
    /// How long ago it was said, in seconds.
    pub(super) fn age(&self, announced: &AnnouncedDriver) -> i64 {
        (self.now_ms - announced.announced_ms).max(0) / 1000
    }
}

/// Asks once and does not wait for a server that is down: a person sits before it.
pub(super) async fn read(settings: &Settings) -> Announced {
    ask(settings).await.map_err(|error| error.to_string())
}

async fn ask(settings: &Settings) -> Result<Said, DbError> {
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
    // A conductor that said nothing for this long does not count as running for Magnum either.
    let fresh = settings.default.service_down_time;
    Database::open(url, options)
        .await?
        .run(move |conn| {
            Ok(Said {
                drivers: announced_drivers::list(conn, fresh)?,
                now_ms: now_ms(conn)?,
            })
        })
        .await
}
