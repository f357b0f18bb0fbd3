//! Connections as r2d2 keeps them: opened alike, watched, and closed once anything went wrong below SQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use diesel::connection::{Connection, Instrumentation, InstrumentationEvent};
use diesel::r2d2::R2D2Connection;

use crate::connection::AnyConnection;
use crate::error::DbError;
use crate::session::{self, LockWait, SessionOptions};
use crate::url::DatabaseUrl;

/// A connection that was idle this long is asked whether it still lives before it is used.
const TRUST_IDLE: Duration = Duration::from_secs(1);

/// What diesel's instrumentation saw on a connection: the closure may wrap or swallow errors, this does not.
#[derive(Default)]
pub(super) struct Trouble {
    pub(super) broken: AtomicBool,
    pub(super) conflict: AtomicBool,
    /// A row did not come free in time; a conflict as well.
    pub(super) locked: AtomicBool,
}

struct Watch(Arc<Trouble>);

impl Instrumentation for Watch {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        if let InstrumentationEvent::FinishQuery {
            error: Some(error), ..
        } = event
        {
            if DbError::is_conflict(error) {
                self.0.conflict.store(true, Ordering::Relaxed);
            }
            if DbError::is_lock(error) {
                self.0.locked.store(true, Ordering::Relaxed);
            }
            if DbError::breaks_connection(error) {
                self.0.broken.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// A pooled connection and what is known of its health.
pub(super) struct Pooled {
    pub(super) conn: AnyConnection,
    pub(super) trouble: Arc<Trouble>,
    /// Set while a closure runs: a panic leaves it set.
    pub(super) in_use: bool,
    pub(super) last_used: Instant,
    lock_wait: LockWait,
    session: Arc<SessionOptions>,
}

impl Pooled {
    /// Makes its session wait so long for locked rows, if it does not already.
    pub(super) fn set_lock_wait(&mut self, wait: LockWait) -> Result<(), DbError> {
        if self.lock_wait != wait {
            session::set_lock_wait(&mut self.conn, wait, &self.session)?;
            self.lock_wait = wait;
        }
        Ok(())
    }
}

/// Opens connections for r2d2 and decides which of them live on.
pub(super) struct Manager {
    pub(super) url: DatabaseUrl,
    pub(super) session: Arc<SessionOptions>,
}

impl r2d2::ManageConnection for Manager {
    type Connection = Pooled;
    type Error = DbError;

    fn connect(&self) -> Result<Pooled, DbError> {
        let mut conn = session::open(&self.url, &self.session)?;
        let trouble = Arc::new(Trouble::default());
        conn.set_instrumentation(Watch(Arc::clone(&trouble)));
        Ok(Pooled {
            conn,
            trouble,
            in_use: false,
            last_used: Instant::now(),
            lock_wait: LockWait::Patient,
            session: Arc::clone(&self.session),
        })
    }

    fn is_valid(&self, pooled: &mut Pooled) -> Result<(), DbError> {
        if pooled.last_used.elapsed() > TRUST_IDLE {
            pooled.conn.ping()?;
        }
        Ok(())
    }

    fn has_broken(&self, pooled: &mut Pooled) -> bool {
        pooled.in_use || pooled.trouble.broken.load(Ordering::Relaxed) || pooled.conn.is_broken()
    }
}

/// r2d2 repeats a failed connect in the background and reports each failure here. The caller gets the last
/// one with its [`DbError`], so these are for debugging only.
#[derive(Debug)]
pub(super) struct QuietErrors;

impl r2d2::HandleError<DbError> for QuietErrors {
    fn handle_error(&self, error: DbError) {
        tracing::debug!(error = %error, "could not open a database connection");
    }
}
