//! [`Database`]: the pool, and the only place that runs blocking database code.
//!
//! diesel blocks. Every piece of work is an owned closure that runs on tokio's blocking threads with a
//! connection of its own:
//!
//! ```text
//! caller ── semaphore (as many permits as connections; waiters queue here, without a thread)
//!             └─ spawn_blocking: take a connection ─ run the closure ─ give it back ─▶ caller
//! ```
//!
//! Guarantees:
//! * a closure never waits for a connection while holding a thread, and no runtime thread ever blocks;
//! * [`Database::transaction`] commits everything or nothing, takes SQLite's write lock at the start
//!   (`BEGIN IMMEDIATE`), and repeats the closure a few times after a deadlock or a serialization failure:
//!   a closure must not have effects outside the database;
//! * a connection on which anything went wrong below SQL is closed, never handed on; a panic in a closure
//!   surfaces in the caller;
//! * a server that does not answer (`watch.rs`) fails the work soon after the limit of a statement, and the thread comes back.
//!
//! Not guaranteed: dropping the returned future does not stop work that has begun, and an
//! [`DbError::Unavailable`] from a commit leaves open whether it was committed. Both only matter to work that
//! may not be repeated, and there must be none.

mod at_start;
mod manager;
mod options;
#[cfg(feature = "test-support")]
pub mod simulated;
mod watch;
mod whole;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use diesel::connection::TransactionManager as _;
use tokio::sync::Semaphore;
use tokio::task::JoinError;
use tracing::Instrument as _;

use self::at_start::wait_for_server;
use self::manager::{Manager, Pooled, QuietErrors, check_out};
pub use self::options::PoolOptions;
use self::watch::{Lost, Progress, watched};
use self::whole::{Manage, begin};
use super::connection::{AnyConnection, Backend};
use super::error::DbError;
use super::session::{self, Patience};
use super::url::DatabaseUrl;
use magnum_common::retry::RetryPolicy;
use magnum_config::DatabaseSection;

/// Idle connections are closed after this.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Runs of a transaction's closure, the first one included.
const TRANSACTION_ATTEMPTS: u32 = 8;
/// More connections than this to one SQLite file only wait for each other.
const SQLITE_CONNECTIONS: u32 = 8;
/// The caller stops waiting for a closure after this: a connection that does not answer and cannot be cut (`socket.rs`). The
/// closure's thread and permit stay taken until the client library gives up.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
    #[cfg(feature = "test-support")]
    seam: Option<Arc<dyn simulated::Seam>>,
}

struct Inner {
    pool: r2d2::Pool<Manager>,
    lost: Arc<Lost>,
    permits: Arc<Semaphore>,
    /// SQLite has one writer at a time. In-process writers queue here in order of arrival; only writers of
    /// other processes meet its polling lock wait.
    writer: Option<Arc<Semaphore>>,
    backend: Backend,
    url: DatabaseUrl,
    options: PoolOptions,
    retry: RetryPolicy,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("backend", &self.inner.backend)
            .finish_non_exhaustive()
    }
}

impl Database {
    /// Connects to the configured database.
    ///
    /// # Errors
    /// The URL or an option cannot be used, or [`Self::open`] fails.
    pub async fn connect(section: &DatabaseSection) -> Result<Self, DbError> {
        Self::open(
            DatabaseUrl::parse(section.connection.expose())?,
            PoolOptions::from(section),
        )
        .await
    }

    /// Opens the pool, and proves that the server responds within [`PoolOptions::connect_attempts`].
    ///
    /// # Errors
    /// The server is unreachable, or refuses the connection.
    pub async fn open(url: DatabaseUrl, options: PoolOptions) -> Result<Self, DbError> {
        for name in url.ignored_parameters() {
            tracing::warn!(
                parameter = name,
                "[database] connection: the parameter has no effect here"
            );
        }
        let (backend, limit) = match &url {
            DatabaseUrl::Sqlite { path: None, .. } => (Backend::Sqlite, 1),
            DatabaseUrl::Sqlite { .. } => (Backend::Sqlite, SQLITE_CONNECTIONS),
            DatabaseUrl::Mysql(_) => (Backend::Mysql, u32::MAX),
            DatabaseUrl::Postgres(_) => (Backend::Postgres, u32::MAX),
        };
        let options = PoolOptions {
            max_connections: options.max_connections.clamp(1, limit),
            ..options
        };
        wait_for_server(&url, &options).await?;
        Ok(Self::on(backend, url, options))
    }

    /// The same database on `connections` of its own, which are opened when they are used: for what must not wait for other
    /// work. SQLite has one writer whatever the connection, and stays as it is.
    pub fn apart(&self, connections: u32) -> Self {
        if self.inner.backend == Backend::Sqlite {
            return self.clone();
        }
        let options = PoolOptions {
            max_connections: connections.max(1),
            ..self.inner.options.clone()
        };
        Self::on(self.inner.backend, self.inner.url.clone(), options)
    }

    fn on(backend: Backend, url: DatabaseUrl, options: PoolOptions) -> Self {
        // An in-memory database lives as long as its only connection.
        let forget = matches!(url, DatabaseUrl::Sqlite { path: None, .. });
        let size = options.max_connections;
        let pool = r2d2::Pool::builder()
            .max_size(size)
            .min_idle(Some(u32::from(forget)))
            .max_lifetime((!forget).then_some(options.recycle_after))
            .idle_timeout((!forget).then_some(IDLE_TIMEOUT))
            .connection_timeout(options.acquire_timeout)
            .test_on_check_out(false)
            .error_handler(Box::new(QuietErrors))
            .build_unchecked(Manager {
                url: url.clone(),
                session: Arc::new(options.session.clone()),
            });
        Self {
            inner: Arc::new(Inner {
                pool,
                lost: Arc::default(),
                permits: Arc::new(Semaphore::new(size as usize)),
                writer: (backend == Backend::Sqlite).then(|| Arc::new(Semaphore::new(1))),
                backend,
                url,
                options,
                retry: RetryPolicy {
                    initial: Duration::from_millis(10),
                    max_interval: Duration::from_millis(500),
                    multiplier: 2.0,
                    jitter: 0.5,
                },
            }),
            #[cfg(feature = "test-support")]
            seam: None,
        }
    }

    /// Which database it is.
    pub fn backend(&self) -> Backend {
        self.inner.backend
    }

    /// Connections open and in use at the moment: (open, in use).
    pub fn connections(&self) -> (u32, u32) {
        let state = self.inner.pool.state();
        (state.connections, state.connections - state.idle_connections)
    }

    /// Runs statements outside of a transaction, each committed by itself. Never repeated.
    ///
    /// # Errors
    /// The error of `work`, or there is no connection within `[database] pool_timeout`.
    pub async fn run<T, F>(&self, work: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&mut AnyConnection) -> Result<T, DbError> + Send + 'static,
    {
        #[cfg(feature = "test-support")]
        if let Some(seam) = &self.seam {
            return simulated::alone(seam, work).await;
        }
        self.on_connection(Patience::Full, move |pooled| {
            pooled.commit_each(true)?;
            work(&mut pooled.conn)
        })
        .await?
    }

    /// Runs `work` in a transaction: committed when it returns `Ok`, rolled back when it returns `Err`. It runs again after a
    /// deadlock or a serialization failure, so it must not have effects outside of the database.
    ///
    /// # Errors
    /// The error of `work`, there is no connection within `[database] pool_timeout`, or the commit fails. With
    /// [`DbError::Unavailable`] the commit may have taken effect.
    pub fn transaction<T, E, F>(&self, work: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, E> + Send + 'static,
    {
        self.repeated(Patience::Full, work)
    }

    /// Like [`Self::transaction`], for work that can be left for later: it waits for a row that somebody else has locked for
    /// a second, and is not repeated for it.
    ///
    /// # Errors
    /// As [`Self::transaction`]; [`DbError::Locked`] soon.
    pub fn brief_transaction<T, E, F>(&self, work: F) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, E> + Send + 'static,
    {
        self.repeated(Patience::Brief, work)
    }

    async fn repeated<T, E, F>(&self, patience: Patience, mut work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, E> + Send + 'static,
    {
        let mut attempt = 1;
        loop {
            let (returned, outcome) = self.once(patience, work).await?;
            match outcome {
                Outcome::Done(value) => return Ok(value),
                Outcome::Failed(error) => return Err(error),
                Outcome::Locked(error) if patience == Patience::Brief => return Err(error),
                Outcome::Conflict(error) | Outcome::Locked(error) if attempt >= TRANSACTION_ATTEMPTS => {
                    return Err(error);
                }
                Outcome::Conflict(_) | Outcome::Locked(_) => work = returned,
            }
            tracing::debug!(
                attempt,
                "a database transaction collided with another one; repeating it"
            );
            tokio::time::sleep(self.inner.retry.delay_after(attempt)).await;
            attempt += 1;
        }
    }

    /// One run of a transaction's closure. Returns the closure, too: it may have to run again.
    async fn once<T, E, F>(&self, patience: Patience, mut work: F) -> Result<(F, Outcome<T, E>), DbError>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnMut(&mut AnyConnection) -> Result<T, E> + Send + 'static,
    {
        #[cfg(feature = "test-support")]
        if let Some(seam) = &self.seam {
            return simulated::in_transaction(seam, patience, work).await;
        }
        let writer = match &self.inner.writer {
            Some(writer) => Some(Arc::clone(writer).acquire_owned().await.map_err(|_| closed())?),
            None => None,
        };
        self.on_connection(patience, move |pooled| {
            // Held until the work is over, even when the caller has stopped waiting.
            let _writer = writer;
            let outcome = in_transaction(pooled, &mut work);
            (work, outcome)
        })
        .await
    }

    async fn on_connection<T, F>(&self, patience: Patience, work: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Pooled) -> T + Send + 'static,
    {
        let permit = Arc::clone(&self.inner.permits)
            .acquire_owned()
            .await
            .map_err(|_| closed())?;
        let inner = Arc::clone(&self.inner);
        let progress = Arc::new(Progress::new(Arc::clone(&inner.lost)));
        let told = Arc::clone(&progress);
        let task = blocking(move || {
            let _permit = permit;
            // The permit proves that a slot is free: this waits for a connect, never for another worker.
            let mut pooled = check_out(&inner.pool, &inner.lost, &told)?;
            told.is_on(&pooled, pooled.answer_limit(patience));
            // A panic in the closure leaves the mark, and r2d2 closes a marked connection.
            pooled.in_use = true;
            pooled.set_patience(patience)?;
            let result = work(&mut pooled);
            pooled.in_use = false;
            pooled.last_used = Instant::now();
            Ok(result)
        });
        let task = tokio::spawn(watched(task, progress).in_current_span());
        match tokio::time::timeout(ANSWER_TIMEOUT, task).await {
            Ok(result) => joined(result)??,
            Err(_) => Err(DbError::Unavailable(format!(
                "no answer within {} s",
                ANSWER_TIMEOUT.as_secs()
            ))),
        }
    }
}

/// The semaphores are never closed and the runtime never cancels blocking work that has begun; what is left is
/// a runtime that shuts down.
fn closed() -> DbError {
    DbError::Unavailable("the program is shutting down".to_owned())
}

enum Outcome<T, E> {
    Done(T),
    Conflict(E),
    Locked(E),
    Failed(E),
}

fn in_transaction<T, E: From<DbError>>(
    pooled: &mut Pooled,
    work: &mut impl FnMut(&mut AnyConnection) -> Result<T, E>,
) -> Outcome<T, E> {
    pooled.trouble.conflict.store(false, Ordering::Relaxed);
    pooled.trouble.locked.store(false, Ordering::Relaxed);
    if let Err(error) = pooled.begin() {
        return pooled.failed(error);
    }
    match work(&mut pooled.conn) {
        Ok(value) => match pooled.commit() {
            Ok(()) => Outcome::Done(value),
            Err(error) => pooled.failed(error),
        },
        Err(error) => {
            // What the server said decides, or did not say, and not what the closure made of it.
            let conflict = pooled.trouble.conflict.load(Ordering::Relaxed)
                || pooled.is_whole().is_err_and(|error| DbError::is_conflict(&error));
            pooled.roll_back();
            if pooled.trouble.locked.load(Ordering::Relaxed) {
                Outcome::Locked(error)
            } else if conflict {
                Outcome::Conflict(error)
            } else {
                Outcome::Failed(error)
            }
        }
    }
}

/// Runs the closure once in a transaction on a connection that is in nobody's pool, without repeating it.
pub(super) fn once_in_transaction<T>(
    conn: &mut AnyConnection,
    work: impl FnOnce(&mut AnyConnection) -> Result<T, DbError>,
) -> Result<T, DbError> {
    begin(conn)?;
    match work(conn) {
        Ok(value) => {
            Manage::commit_transaction(conn)?;
            Ok(value)
        }
        Err(error) => {
            // The first error is the one to tell; the connection is thrown away by the caller.
            if let Err(rollback) = Manage::rollback_transaction(conn) {
                tracing::debug!(error = %rollback, "a failed transaction could not be rolled back");
            }
            Err(error)
        }
    }
}

/// Opens one connection outside any pool, when the server answers, and runs the closure on it.
pub(super) async fn on_own_connection<T, F>(
    url: DatabaseUrl,
    options: PoolOptions,
    work: F,
) -> Result<T, DbError>
where
    T: Send + 'static,
    F: FnOnce(&mut AnyConnection) -> Result<T, DbError> + Send + 'static,
{
    wait_for_server(&url, &options).await?;
    blocking(move || work(&mut session::open(&url, &options.session)?.conn)).await?
}

/// The only `spawn_blocking` around diesel.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, DbError> {
    // What is logged in there belongs to whoever asked.
    let span = tracing::Span::current();
    joined(tokio::task::spawn_blocking(move || span.in_scope(work)).await)
}

/// What a task has returned. Its panic goes on here.
fn joined<T>(result: Result<T, JoinError>) -> Result<T, DbError> {
    match result {
        Ok(value) => Ok(value),
        Err(join) if join.is_panic() => resume_unwind(join.into_panic()),
        Err(_) => Err(closed()),
    }
}

impl Pooled {
    fn failed<T, E: From<DbError>>(&self, error: diesel::result::Error) -> Outcome<T, E> {
        let conflict = DbError::is_conflict(&error);
        if !conflict {
            self.trouble.broken.store(true, Ordering::Relaxed);
        }
        let error = E::from(DbError::from(error));
        if conflict {
            Outcome::Conflict(error)
        } else {
            Outcome::Failed(error)
        }
    }
}
