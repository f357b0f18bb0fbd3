//! Connections as r2d2 keeps them: opened alike, watched, and closed once anything went wrong below SQL.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use diesel::connection::{Connection, Instrumentation, InstrumentationEvent};
use diesel::r2d2::R2D2Connection;
use r2d2::PooledConnection;

use crate::connection::AnyConnection;
use crate::error::DbError;
use crate::session::{self, Opened, Patience, SessionOptions};
use crate::socket::Socket;
use crate::url::DatabaseUrl;

use super::watch::{Lost, PING_TIMEOUT, Progress};

/// A connection that was idle this long is asked whether it still lives before it is used.
const TRUST_IDLE: Duration = Duration::from_secs(1);

/// What diesel's instrumentation saw on a connection: the closure may wrap or swallow errors, this does not.
pub(super) struct Trouble {
    pub(super) broken: AtomicBool,
    pub(super) conflict: AtomicBool,
    /// A row did not come free in time; a conflict as well.
    pub(super) locked: AtomicBool,
    answered: Mutex<Instant>,
}

impl Default for Trouble {
    fn default() -> Self {
        Self {
            broken: AtomicBool::default(),
            conflict: AtomicBool::default(),
            locked: AtomicBool::default(),
            answered: Mutex::new(Instant::now()),
        }
    }
}

impl Trouble {
    /// Nothing is waited for at this moment, or something new.
    pub(super) fn answered(&self) {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// For how long the server has said nothing, while work goes on.
    pub(super) fn silent_for(&self) -> Duration {
        self.answered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .elapsed()
    }
}

struct Watch(Arc<Trouble>);

impl Instrumentation for Watch {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        self.0.answered();
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
    pub(super) socket: Option<Socket>,
    /// A node of Galera's; see [`super::whole`].
    pub(super) is_galera: bool,
    /// Whether a statement outside of a transaction commits by itself.
    pub(super) commits_each: bool,
    patience: Patience,
    session: Arc<SessionOptions>,
}

impl Pooled {
    /// Makes its session wait so long for locked rows, if it does not already.
    pub(super) fn set_patience(&mut self, patience: Patience) -> Result<(), DbError> {
        if self.patience != patience {
            session::set_lock_wait(&mut self.conn, patience, &self.session)?;
            self.patience = patience;
        }
        Ok(())
    }

    /// How long the server may take for a statement.
    pub(super) fn answer_limit(&self, patience: Patience) -> Option<Duration> {
        patience.for_answers(&self.session)
    }

    /// Whether it can be used, which is asked of the server if it was idle.
    fn is_alive(&mut self, lost: &Lost, progress: &Progress) -> bool {
        if lost.since(self.last_used) {
            return false;
        }
        if self.last_used.elapsed() <= TRUST_IDLE {
            return true;
        }
        progress.is_on(self, Some(PING_TIMEOUT));
        let is_alive = self.conn.ping().is_ok();
        if !is_alive {
            lost.now();
        }
        is_alive
    }
}

/// A connection that can be used. Blocks: while one is opened, and while the server is asked.
pub(super) fn check_out(
    pool: &r2d2::Pool<Manager>,
    lost: &Lost,
    progress: &Progress,
) -> Result<PooledConnection<Manager>, DbError> {
    loop {
        #[expect(clippy::disallowed_methods, reason = "this is the place the lint points to")]
        let mut pooled = pool
            .get()
            .map_err(|error| DbError::from_connect_text(&error.to_string()))?;
        if pooled.is_alive(lost, progress) {
            return Ok(pooled);
        }
        pooled.trouble.broken.store(true, Ordering::Relaxed);
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
        let Opened {
            mut conn,
            socket,
            is_galera,
        } = session::open(&self.url, &self.session)?;
        let trouble = Arc::new(Trouble::default());
        conn.set_instrumentation(Watch(Arc::clone(&trouble)));
        Ok(Pooled {
            conn,
            trouble,
            in_use: false,
            last_used: Instant::now(),
            socket,
            is_galera,
            commits_each: true,
            patience: Patience::Full,
            session: Arc::clone(&self.session),
        })
    }

    /// Not asked: [`check_out`] does it, where it is watched.
    fn is_valid(&self, _: &mut Pooled) -> Result<(), DbError> {
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
