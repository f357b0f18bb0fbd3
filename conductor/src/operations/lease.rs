//! Ownership of an operation: claim, fence, renew, release.
//!
//! A [`Lease`] is made by [`claim`] alone, and every function that writes for a worker takes one; so an unfenced
//! write does not compile. Each of them compares row, owner and epoch in its `WHERE`: an epoch only rises, hence
//! a worker that lost its lease (paused host, cut network) changes zero rows and learns it.
//!
//! A lease is free when it has expired by the database's clock and when, besides, whoever claims it has seen nobody renew it for a
//! whole term ([`super::lease_watch`]): there may be several such clocks. A worker cannot see that clock all the time, so it
//! counts on its own monotonic clock from *before* the claim or renewal was sent ([`Lease::safe_until`]), and stops
//! before that.
//!
//! What this does not give: a cloud cannot compare our epoch. What a driver does there must be repeatable.

use std::time::Duration;

use diesel::dsl::case_when;
use diesel::prelude::*;
use diesel::sql_types::Integer;
use magnum_common::ids::{ClusterUuid, ConductorId, Epoch, OperationId};
use magnum_db::{self as db, AnyConnection, lock, schema};
use tokio::time::Instant;

use super::journal::candidates::Candidate;
use super::journal::{self, Event, EventKind, JournalError, OperationRow};
use super::state::State;

use schema::conductor_operation::dsl as op;

/// The operation's row, as long as the lease on it is held.
macro_rules! held {
    ($lease:expr) => {
        op::conductor_operation
            .filter(op::id.eq($lease.row()))
            .filter(op::lease_epoch.eq($lease.epoch().0))
            .filter(op::owner.eq($lease.owner().as_str()))
            .filter(op::state.eq(State::Running.as_str()))
    };
}
pub(super) use held;

/// The right to write for one operation. Not `Clone`: there is one worker; it shares the lease with the task that
/// renews it and with the closures that write.
#[derive(Debug)]
pub struct Lease {
    row: i64,
    operation: OperationId,
    cluster: ClusterUuid,
    owner: ConductorId,
    epoch: Epoch,
    attempt: i32,
    term: Duration,
    safe_until: Instant,
}

impl Lease {
    /// The operation's row number.
    pub(super) const fn row(&self) -> i64 {
        self.row
    }

    /// Whether nobody has held the operation before.
    pub const fn is_first(&self) -> bool {
        self.epoch.0 == 1
    }

    /// Which operation.
    pub const fn operation(&self) -> &OperationId {
        &self.operation
    }

    /// Of which cluster.
    pub const fn cluster(&self) -> &ClusterUuid {
        &self.cluster
    }

    /// Who holds it.
    pub const fn owner(&self) -> &ConductorId {
        &self.owner
    }

    /// The number that fences.
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Which claim of the operation this is, from 1.
    pub const fn attempt(&self) -> i32 {
        self.attempt
    }

    /// How long a claim or renewal lasts.
    pub const fn term(&self) -> Duration {
        self.term
    }

    /// Until when nobody else can hold the lease, on this process's monotonic clock.
    pub const fn safe_until(&self) -> Instant {
        self.safe_until
    }

    pub(super) fn event<'a>(&'a self, kind: EventKind) -> Event<'a> {
        Event {
            operation: self.operation.as_str(),
            attempt: self.attempt,
            epoch: self.epoch.0,
            kind,
            step: None,
            by: Some(self.owner.as_str()),
            detail: None,
        }
    }
}

/// Takes a candidate, if it still is one. To be run in a transaction of its own.
///
/// `sent` is a moment before the transaction began. `None`: somebody else was faster, or holds the row at this moment,
/// which may be for long (a host that is paused in the middle of a transaction, an administrator's session). That the candidate's
/// lease is over, if it has one, is for the caller to know; here it is free only if it is as the candidate has it.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn claim(
    conn: &mut AnyConnection,
    candidate: &Candidate,
    owner: &ConductorId,
    term: Duration,
    sent: Instant,
) -> Result<Option<(Lease, OperationRow)>, JournalError> {
    let Some(now) = lock::operation_if_free(conn, candidate.row)? else {
        return Ok(None);
    };
    // An owner that gave it up in good order is not there any more.
    let is_lost =
        case_when(op::owner.is_not_null(), 1.into_sql::<Integer>()).otherwise(0.into_sql::<Integer>());
    let taken = diesel::update(
        op::conductor_operation
            .filter(op::id.eq(candidate.row))
            .filter(op::lease_epoch.eq(candidate.epoch))
            .filter(op::state.eq(&candidate.state))
            .filter(
                op::state
                    .ne(State::Running.as_str())
                    .or(op::lease_expires_ms.is_null())
                    // A clock that is ahead would let one pass that was renewed since it was read.
                    .or(op::lease_expires_ms
                        .le(now)
                        .and(op::lease_expires_ms.eq(candidate.lease_expires_ms))),
            ),
    )
    .set((
        // The first: MySQL reads columns that were set before with their new values.
        op::lost_claims.eq(op::lost_claims + is_lost),
        op::state.eq(State::Running.as_str()),
        op::owner.eq(owner.as_str()),
        op::lease_epoch.eq(candidate.epoch + 1),
        op::lease_expires_ms.eq(now.saturating_add(millis(term))),
        op::running_key.eq(op::cluster_uuid.nullable()),
        op::attempts.eq(op::attempts + 1),
        op::next_attempt_ms.eq(None::<i64>),
        op::updated_ms.eq(now),
    ))
    .execute(conn)?;
    if taken == 0 {
        return Ok(None);
    }
    let row = journal::read::by_row(conn, candidate.row)?;
    let lease = Lease {
        row: row.id,
        operation: row.uuid.clone().into(),
        cluster: row.cluster_uuid.clone().into(),
        owner: owner.clone(),
        epoch: Epoch(row.lease_epoch),
        attempt: row.attempts,
        term,
        safe_until: sent + term,
    };
    let mut event = lease.event(EventKind::Claimed);
    event.step = row.step.as_deref();
    journal::append(conn, &event)?;
    Ok(Some((lease, row)))
}

/// Whether a failed claim only means that another operation of the cluster was faster.
pub fn is_collision(error: &JournalError) -> bool {
    matches!(error, JournalError::Db(db::DbError::UniqueViolation { .. }))
}

/// What a worker learns whenever it touches its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fenced {
    /// A delete, or an operator, wants this operation to stop.
    pub stop_requested: bool,
    /// The deadline, in milliseconds since 1970; `None` before the first step, and without one.
    pub deadline_ms: Option<i64>,
    /// The database's time, in milliseconds since 1970.
    pub now_ms: i64,
}

/// The fence: holds the operation's row until the end of the transaction, if the lease is still ours.
///
/// First statement of every transaction that writes for a worker: nobody can take the lease, and no delete can
/// ask for a stop, between this and the commit.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn fence(conn: &mut AnyConnection, lease: &Lease) -> Result<Fenced, JournalError> {
    let now = db::now_ms_expr(conn);
    let held = diesel::update(held!(lease))
        .set(op::updated_ms.eq(now))
        .execute(conn)?;
    if held == 0 {
        return Err(JournalError::LeaseLost);
    }
    let now = db::now_ms_expr(conn);
    let (stop_requested, deadline_ms, now_ms) = op::conductor_operation
        .filter(op::id.eq(lease.row))
        .select((op::stop_requested, op::deadline_ms, now))
        .first(conn)?;
    Ok(Fenced {
        stop_requested,
        deadline_ms,
        now_ms,
    })
}

/// What became of leases that were to be renewed, by row and epoch.
#[derive(Debug, Default)]
pub struct Renewals {
    /// Prolonged by their term.
    pub renewed: Vec<(i64, Epoch)>,
    /// Another conductor has the operation, or it has ended. What is in neither is ours, and its row is locked by somebody.
    pub lost: Vec<(i64, Epoch)>,
    /// Those of the renewed that a delete, or an operator, wants to stop.
    pub stopping: Vec<(i64, Epoch)>,
}

/// Prolongs these leases of `owner` by `term`. A row that somebody has locked keeps the others from nothing.
///
/// # Errors
/// The database failed.
pub fn renew(
    conn: &mut AnyConnection,
    owner: &ConductorId,
    leases: &[(i64, Epoch)],
    term: Duration,
) -> Result<Renewals, JournalError> {
    let rows: Vec<i64> = leases.iter().map(|(row, _)| *row).collect();
    let mut free = lock::running_if_free(conn, owner, &rows)?;
    free.retain(|(row, epoch, _)| leases.contains(&(*row, Epoch(*epoch))));
    let to_renew: Vec<i64> = free.iter().map(|(row, ..)| *row).collect();
    diesel::update(op::conductor_operation.filter(op::id.eq_any(&to_renew)))
        .set(op::lease_expires_ms.eq(db::now_plus_ms_expr(millis(term)).nullable()))
        .execute(conn)?;
    let stopping = free.iter().filter(|(_, _, is_asked_to_stop)| *is_asked_to_stop);
    let stopping = stopping.map(|(row, epoch, _)| (*row, Epoch(*epoch))).collect();
    let renewed: Vec<_> = free
        .into_iter()
        .map(|(row, epoch, _)| (row, Epoch(epoch)))
        .collect();
    let mut lost: Vec<_> = leases
        .iter()
        .copied()
        .filter(|lease| !renewed.contains(lease))
        .collect();
    if !lost.is_empty() {
        // Read without waiting for whoever holds the row.
        let ours: Vec<(i64, i64)> = op::conductor_operation
            .filter(op::id.eq_any(lost.iter().map(|(row, _)| *row)))
            .filter(op::owner.eq(owner.as_str()))
            .filter(op::state.eq(State::Running.as_str()))
            .select((op::id, op::lease_epoch))
            .load(conn)?;
        lost.retain(|(row, epoch)| !ours.contains(&(*row, epoch.0)));
    }
    Ok(Renewals {
        renewed,
        lost,
        stopping,
    })
}

/// Gives the lease back before its end, so that another conductor can go on at once.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn release(conn: &mut AnyConnection, lease: &Lease) -> Result<(), JournalError> {
    fence(conn, lease)?;
    give_back(conn, lease)
}

fn give_back(conn: &mut AnyConnection, lease: &Lease) -> Result<(), JournalError> {
    diesel::update(op::conductor_operation.filter(op::id.eq(lease.row)))
        .set((op::owner.eq(None::<String>), op::lease_expires_ms.eq(Some(0_i64))))
        .execute(conn)?;
    journal::append(conn, &lease.event(EventKind::Released))
}

/// Takes back that a claim was lost: its conductor lives, and only was too slow to renew the lease. The driver is not the
/// cause. Gives the lease back where nobody has taken it yet. To be called when the driver has been stopped.
///
/// # Errors
/// The database failed.
pub fn lost_by_slowness(conn: &mut AnyConnection, lease: &Lease) -> Result<(), JournalError> {
    if !lock::operation(conn, lease.operation())? {
        return Ok(());
    }
    match fence(conn, lease) {
        Ok(_) => return give_back(conn, lease),
        Err(JournalError::LeaseLost) => {}
        Err(error) => return Err(error),
    }
    if journal::read::is_released(conn, lease.operation().as_str(), lease.epoch().0)? {
        return Ok(());
    }
    let lost = op::conductor_operation
        .filter(op::id.eq(lease.row()))
        .filter(op::lost_claims.gt(0));
    diesel::update(lost)
        .set(op::lost_claims.eq(op::lost_claims - 1))
        .execute(conn)?;
    journal::append(conn, &lease.event(EventKind::Released))
}

pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
