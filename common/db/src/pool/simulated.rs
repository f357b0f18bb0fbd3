//! Lets a test decide when database work is done, and how it ends: for simulations, in which many programs share one
//! connection and one thread. With the feature `test-support` only; nothing of the programs uses it.
//!
//! Work runs inline instead of on a blocking thread, between [`Seam::begin`] and [`Seam::end`]; a transaction is carried out as a
//! whole, so what a test interleaves are transactions. The repetitions after a conflict or a locked row are those of the pool,
//! and so is the rule that dropping the future does not stop work that has begun. Not there: permits, pings, the limit of a
//! statement; a test that wants them has its seam wait or refuse.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use diesel::connection::TransactionManager;

use super::{Database, Manage, Outcome, begin, joined};
use crate::connection::AnyConnection;
use crate::error::DbError;
use crate::session::Patience;

/// How a program's way to the database behaves.
pub trait Seam: Send + Sync {
    /// Waits until the work's turn has come, and says what becomes of it.
    fn begin(&self, access: Access) -> Pin<Box<dyn Future<Output = Fate> + Send + '_>>;

    /// Runs the work on the connection that all share. Must not wait.
    fn carry_out(&self, work: &mut dyn FnMut(&mut AnyConnection));

    /// Waits until the program learns what has come of it.
    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// What a program asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Statements that are committed one by one.
    Statements,
    /// A transaction.
    Transaction,
    /// A transaction that can be left for later, see [`Database::brief_transaction`].
    BriefTransaction,
}

/// What becomes of a piece of work.
#[derive(Debug)]
pub enum Fate {
    /// It is done.
    Done,
    /// It is not done: this is what the program gets instead.
    Refused(DbError),
    /// It is done, and the program gets this instead of its result, as when a connection breaks during the commit.
    Lost(DbError),
}

impl Database {
    /// The same database, through `seam`.
    #[must_use]
    pub fn through(&self, seam: Arc<dyn Seam>) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            seam: Some(seam),
        }
    }
}

pub(super) async fn alone<T, F>(seam: &Arc<dyn Seam>, work: F) -> Result<T, DbError>
where
    T: Send + 'static,
    F: FnOnce(&mut AnyConnection) -> Result<T, DbError> + Send + 'static,
{
    let seam = Arc::clone(seam);
    let task = tokio::spawn(async move {
        let lost = match seam.begin(Access::Statements).await {
            Fate::Done => None,
            Fate::Lost(error) => Some(error),
            Fate::Refused(error) => {
                seam.end().await;
                return Err(error);
            }
        };
        let result = carried_out(seam.as_ref(), work)?;
        seam.end().await;
        match lost {
            None => result,
            Some(error) => Err(error),
        }
    });
    joined(task.await)?
}

pub(super) async fn in_transaction<T, E, F>(
    seam: &Arc<dyn Seam>,
    patience: Patience,
    mut work: F,
) -> Result<(F, Outcome<T, E>), DbError>
where
    T: Send + 'static,
    E: From<DbError> + Send + 'static,
    F: FnMut(&mut AnyConnection) -> Result<T, E> + Send + 'static,
{
    let seam = Arc::clone(seam);
    let access = match patience {
        Patience::Full => Access::Transaction,
        Patience::Brief => Access::BriefTransaction,
    };
    let task = tokio::spawn(async move {
        let outcome = match seam.begin(access).await {
            Fate::Refused(error) => failed(error),
            Fate::Done => carried_out(seam.as_ref(), |conn| transaction(conn, &mut work))?,
            Fate::Lost(error) => match carried_out(seam.as_ref(), |conn| transaction(conn, &mut work))? {
                Outcome::Done(_) => failed(error),
                other => other,
            },
        };
        seam.end().await;
        Ok((work, outcome))
    });
    joined(task.await)?
}

fn carried_out<T>(seam: &dyn Seam, work: impl FnOnce(&mut AnyConnection) -> T) -> Result<T, DbError> {
    let (mut work, mut result) = (Some(work), None);
    seam.carry_out(&mut |conn| result = work.take().map(|work| work(conn)));
    result.ok_or_else(|| DbError::Unavailable("the seam has not carried it out".to_owned()))
}

/// As the pool tells errors apart.
fn failed<T, E: From<DbError>>(error: DbError) -> Outcome<T, E> {
    match &error {
        DbError::Locked(_) => Outcome::Locked(error.into()),
        DbError::Conflict(_) => Outcome::Conflict(error.into()),
        _ => Outcome::Failed(error.into()),
    }
}

fn transaction<T, E: From<DbError>>(
    conn: &mut AnyConnection,
    work: &mut impl FnMut(&mut AnyConnection) -> Result<T, E>,
) -> Outcome<T, E> {
    if let Err(error) = begin(conn) {
        return failed(error.into());
    }
    let ended = match work(conn) {
        Ok(value) => match Manage::commit_transaction(conn) {
            Ok(()) => return Outcome::Done(value),
            Err(error) => E::from(DbError::from(error)),
        },
        Err(error) => error,
    };
    // After a failed commit there may be nothing left to roll back.
    if let Err(error) = Manage::rollback_transaction(conn) {
        tracing::debug!(%error, "a failed transaction could not be rolled back");
    }
    Outcome::Failed(ended)
}
