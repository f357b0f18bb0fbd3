//! Announces in the database which drivers this conductor has loaded, and which it could not load and why.
//!
//! The API resolves drivers among those announced, so a driver is usable for new templates a moment after the first
//! conductor has loaded it. An announcement that is not renewed within `[DEFAULT] service_down_time` no longer counts;
//! the next conductor that announces removes its row after [`Announcer::keep`].

use std::sync::Arc;
use std::time::Duration;

use magnum_common::ids::ConductorId;
use magnum_db::{Database, DbError};
use magnum_drivers::Announcement;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{FailureLog, Rounds};
use crate::drivers::{Loaded, Registry};
use crate::store::announcements::{self, Row};

/// After a round that the database did not take.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Announces the drivers of one conductor.
#[derive(Clone)]
pub struct Announcer {
    /// The database.
    pub db: Database,
    /// The id of this conductor.
    pub me: ConductorId,
    /// The host of this conductor.
    pub host: String,
    /// The drivers that it has loaded.
    pub registry: Registry,
    /// Time between two announcements.
    pub interval: Duration,
    /// A conductor that announced within this time is alive.
    pub alive: Duration,
    /// Rows of other conductors that are older than this are removed.
    pub keep: Duration,
    /// Notified when the drivers were read again: they are announced at once.
    pub changed: Arc<Notify>,
}

impl Announcer {
    /// Announces until `shutdown`, then withdraws.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut rounds = Rounds::new(self.interval, shutdown);
        let mut failures = FailureLog::of("announcing the drivers");
        loop {
            // Registered before the round: a change during it starts another.
            let changed = self.changed.notified();
            let announced = self.announce().await;
            let is_known = announced.is_ok();
            failures.record(announced);
            let early = async {
                // Others may take this conductor for gone: it says that it is there as soon as it can.
                match is_known {
                    true => changed.await,
                    false => tokio::time::sleep(AGAIN_AFTER).await,
                }
            };
            if !rounds.next_or(early).await {
                break;
            }
        }
        let me = self.me.clone();
        let withdrawn = self.db.run(move |conn| announcements::withdraw(conn, &me)).await;
        if let Err(error) = withdrawn {
            tracing::debug!(%error, "the announced drivers stay until they are stale");
        }
    }

    /// Announces once, and reads what the others have announced.
    ///
    /// # Errors
    /// The database failed; nothing was written.
    pub async fn announce(&self) -> Result<(), DbError> {
        let rows = rows(&self.registry.current());
        let (me, host, keep, alive) = (self.me.clone(), self.host.clone(), self.keep, self.alive);
        let announced = self
            .db
            .transaction(move |conn| {
                announcements::announce(conn, &me, &host, &rows, keep)?;
                announcements::loaded(conn, alive)
            })
            .await?;
        self.registry.set_announced(announced);
        Ok(())
    }
}

/// One row for each driver, and for each folder that could not be loaded, no two with the same name and version.
fn rows(loaded: &Loaded) -> Vec<Row> {
    let drivers = loaded.infos().iter();
    let mut rows: Vec<Row> = drivers
        .map(|info| Row::loaded(Announcement::from(info)))
        .collect();
    for error in loaded.failed() {
        let row = Row::failed(error);
        let taken = rows.iter().any(|other| other.key() == row.key());
        rows.push(if taken { Row::failed_folder(error) } else { row });
    }
    rows
}
