//! The journal: the table of accepted operations and their events.
//!
//! Guarantees: an operation is recorded once per message id; every move of its state compares the state it moves
//! from; everything a worker writes compares the lease ([`fenced`]); each move leaves an event. Not guaranteed:
//! that events of one millisecond are ordered by their time (their id orders them).
//!
//! Times are milliseconds of the *database's* clock. The only modules of the operations that name diesel are
//! this one and [`super::lease`].

pub mod candidates;
pub mod fenced;
pub mod known;
pub mod purge;
pub mod read;
pub mod rows;
pub mod write;

use std::time::Duration;

use magnum_db::{AnyConnection, DbError, schema};

pub use rows::{EventKind, EventRow, NewOperation, Operation, OperationRow, Unreadable};

use diesel::prelude::*;

/// How long a failure of the database that nobody knows ([`JournalError::is_unknown`]) is taken for one that passes.
pub const UNKNOWN_PATIENCE: Duration = Duration::from_secs(300);

/// What can go wrong at the journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The database.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The lease is gone: another conductor works on this, or nobody does any more. Write nothing.
    #[error("the lease on the operation is lost")]
    LeaseLost,
    /// A row is not as it was when it was read. Read again and decide again.
    #[error("a row changed while the decision about it was made")]
    Stale,
    /// A record that this program cannot read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

impl From<diesel::result::Error> for JournalError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Db(DbError::from(error))
    }
}

impl JournalError {
    /// Whether it is a failure of the database that nobody knows: see [`DbError::is_unknown`].
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Db(error) if error.is_unknown())
    }

    /// Whether the same work may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Db(error) => error.is_transient(),
            Self::Stale => true,
            Self::LeaseLost | Self::Unreadable(_) => false,
        }
    }
}

/// One event, without its time.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Whose.
    pub operation: &'a str,
    /// Which claim.
    pub attempt: i32,
    /// Which epoch.
    pub epoch: i64,
    /// What happened.
    pub kind: EventKind,
    /// In which step.
    pub step: Option<&'a str>,
    /// Who writes this: a conductor, or an operator's command.
    pub by: Option<&'a str>,
    /// In words. Never a token.
    pub detail: Option<&'a str>,
}

/// Appends an event.
///
/// # Errors
/// The database failed.
pub fn append(conn: &mut AnyConnection, event: &Event<'_>) -> Result<(), JournalError> {
    use schema::conductor_operation_event::dsl as e;
    let now = magnum_db::now_ms_expr(conn);
    diesel::insert_into(e::conductor_operation_event)
        .values((
            e::operation_uuid.eq(event.operation),
            e::at_ms.eq(now),
            e::attempt.eq(event.attempt),
            e::epoch.eq(event.epoch),
            e::kind.eq(event.kind.as_str()),
            e::step.eq(event.step),
            e::conductor.eq(event.by),
            e::detail.eq(event.detail),
        ))
        .execute(conn)?;
    Ok(())
}
