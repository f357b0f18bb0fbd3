//! Which operations a conductor may claim, and in which order.
//!
//! Two questions, so that neither depends on how many operations have ended:
//!
//! * what holds its cluster and nobody works on: retries that are due, and what a conductor has left behind. These are few:
//!   one for each cluster at most;
//! * what is queued, in the order of its [turn](crate::operations::turns). These may be very many, most of which may wait for something
//!   else: their cluster, a driver, a slot. So a thousand of them are read at once; where none of these can be
//!   claimed, the next look goes on behind them ([`Look::next`]).
//!
//! Operations of one cluster keep the order in which they were accepted, whatever their turns are. What this release does not
//! know ([`super::known`]) is left to others, and so is what waits behind it.

use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool};
use magnum_db::{self as db, AnyConnection, KeepPrepared as _, padded, schema};

use super::JournalError;
use super::known::{Condition, is_known};
use crate::operations::breakers::{Claimable, MissingVersion};
use crate::operations::lease_watch::SeenLease;
use crate::operations::slots::Room;
use crate::operations::state::State;
use crate::operations::suspects::{SUSPECT_AFTER, WAIT_FOR_EACH_LOSS};
use crate::workflows::{DriverRef, OperationKind, Step};

use schema::conductor_operation::dsl as op;

/// Queued operations that are read at once.
const PART: i64 = 250;
/// Most parts of the queue that one look reads.
const PARTS: usize = 4;

/// A cluster has at most one operation at work, and the others wait in the order they were accepted in. (The unique
/// `running_key` enforces the first half; this keeps hopeless claims from being tried.)
const ITS_TURN: &str = "NOT EXISTS (SELECT 1 FROM conductor_operation o WHERE o.running_key = conductor_operation.cluster_uuid) \
     AND NOT EXISTS (SELECT 1 FROM conductor_operation o WHERE o.cluster_uuid = conductor_operation.cluster_uuid \
                     AND o.state = 'queued' AND o.id < conductor_operation.id)";

/// An operation that may be claimed.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = schema::conductor_operation)]
pub struct Candidate {
    #[diesel(column_name = id)]
    pub(in crate::operations) row: i64,
    pub(in crate::operations) state: String,
    #[diesel(column_name = lease_epoch)]
    pub(in crate::operations) epoch: i64,
    pub(in crate::operations) owner: Option<String>,
    pub(in crate::operations) lease_expires_ms: Option<i64>,
    pub(in crate::operations) kind: String,
    pub(in crate::operations) project_id: Option<String>,
    pub(in crate::operations) driver: Option<String>,
    pub(in crate::operations) driver_version: Option<String>,
    pub(in crate::operations) step: Option<String>,
    pub(in crate::operations) turn: i64,
    pub(in crate::operations) lost_claims: i32,
    pub(in crate::operations) stop_requested: bool,
    pub(in crate::operations) deadline_ms: Option<i64>,
}

impl Candidate {
    /// Its driver, if one is chosen.
    pub const fn driver(&self) -> Option<&String> {
        self.driver.as_ref()
    }

    /// Its lease, if it has an owner who has not given it back.
    pub fn lease(&self) -> Option<SeenLease> {
        let is_held = self.state == State::Running.as_str() && self.owner.is_some();
        let is_given_back = matches!(self.lease_expires_ms, None | Some(0));
        (is_held && !is_given_back).then_some(SeenLease {
            row: self.row,
            epoch: self.epoch,
            expires_ms: self.lease_expires_ms,
        })
    }

    /// Its driver with the version that built the cluster, or is foreseen for it; nothing while the version is left open.
    pub fn driver_version(&self) -> Option<DriverRef> {
        let (name, version) = (self.driver.as_ref()?, self.driver_version.as_ref()?);
        (!version.is_empty()).then(|| DriverRef {
            name: name.clone(),
            version: version.clone(),
        })
    }

    /// Whether it has yet to choose its driver.
    pub fn chooses_driver(&self) -> bool {
        self.step.as_deref() == Some(Step::ChooseDriver.as_str())
    }

    /// Whether nothing is asked of its driver any more: its owner has left it behind, and it shall stop or is out of time.
    pub fn needs_no_driver(&self, now_ms: i64) -> bool {
        let is_late = self.deadline_ms.is_some_and(|deadline| deadline <= now_ms);
        self.state == State::Running.as_str() && (self.stop_requested || is_late)
    }

    /// Who asked for it.
    pub const fn project(&self) -> Option<&String> {
        self.project_id.as_ref()
    }

    /// Whether it takes its cluster away.
    pub fn is_delete(&self) -> bool {
        self.kind == OperationKind::ClusterDelete.as_str()
    }

    /// When it is to be begun, among what is queued: see [`turns`](crate::operations::turns).
    pub const fn turn(&self) -> i64 {
        self.turn
    }

    /// How often a conductor ended while it had it.
    pub const fn lost_claims(&self) -> i32 {
        self.lost_claims
    }
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Queryable)]
pub struct Place {
    turn: i64,
    row: i64,
}

impl Place {
    /// Before everything.
    pub const START: Self = Self {
        turn: i64::MIN,
        row: 0,
    };
}

/// What a conductor may claim at one moment.
#[derive(Debug)]
pub struct Look {
    /// That moment by the database's clock, in milliseconds since 1970.
    pub at_ms: i64,
    /// What holds its cluster.
    pub due: Vec<Candidate>,
    /// What is queued, of the lowest turns.
    pub queued: Vec<Candidate>,
    /// The place behind what was read; `None` at the end of the queue.
    pub next: Option<Place>,
}

/// Operations that may be claimed now by a conductor that can take what is `claimable` and has this `room`: some `limit` of
/// each kind. Of those that are queued, the ones behind `place`.
///
/// # Errors
/// The database failed.
pub fn candidates(
    conn: &mut AnyConnection,
    claimable: &Claimable,
    room: &Room,
    place: Place,
    limit: i64,
) -> Result<Look, JournalError> {
    let now = db::now_ms(conn)?;
    let due = due(conn, claimable, room, now, limit)?;
    let mut look = Look {
        at_ms: now,
        due,
        queued: Vec::new(),
        next: Some(place),
    };
    for _ in 0..PARTS {
        let Some(place) = look.next else { break };
        let part = part(conn, place)?;
        let rows: Vec<i64> = part.iter().map(|place| place.row).collect();
        if !rows.is_empty() {
            look.queued.extend(queued(conn, claimable, room, now, &rows)?);
        }
        let is_full = i64::try_from(part.len()).is_ok_and(|count| count == PART);
        look.next = part.last().copied().filter(|_| is_full);
        if i64::try_from(look.queued.len()).is_ok_and(|count| count >= limit) {
            break;
        }
    }
    Ok(look)
}

/// One operation, to be claimed: one that this transaction has recorded, or that an owner has left behind.
///
/// # Errors
/// The database.
pub(in crate::operations) fn candidate(
    conn: &mut AnyConnection,
    uuid: &str,
) -> Result<Candidate, JournalError> {
    Ok(op::conductor_operation
        .filter(op::uuid.eq(uuid))
        .select(Candidate::as_select())
        .first(conn)?)
}

/// Retries that are due, and what was left behind: its lease was given back, or it has expired by the database's clock and is
/// over as this conductor has watched it.
///
/// What an owner has left behind is anybody's when it shall stop or is out of time: nothing is asked of its driver any more,
/// which may be loaded nowhere.
fn due(
    conn: &mut AnyConnection,
    claimable: &Claimable,
    room: &Room,
    now: i64,
    limit: i64,
) -> Result<Vec<Candidate>, JournalError> {
    let is_loaded = || op::driver.is_null().or(op::driver.eq_any(&claimable.drivers));
    let retries = op::state
        .eq(State::Retrying.as_str())
        .and(op::next_attempt_ms.is_null().or(op::next_attempt_ms.le(now)));
    let abandoned = op::state
        .eq(State::Running.as_str())
        .and(op::lease_expires_ms.is_null().or(op::lease_expires_ms.le(now)))
        .and(
            op::owner
                .is_null()
                .or(op::lease_expires_ms.is_null())
                .or(op::lease_expires_ms.eq(0))
                .or(op::id.eq_any(padded(&claimable.over))),
        );
    // A suspect waits longer. What it waits for wakes nobody: the next look finds it.
    let has_waited = sql::<Bool>(&format!(
        "(lost_claims < {SUSPECT_AFTER} OR lease_expires_ms + lost_claims * {} <= ",
        WAIT_FOR_EACH_LOSS.as_millis()
    ))
    .bind::<BigInt, _>(now)
    .sql(")");
    let needs_no_driver = op::stop_requested
        .eq(true)
        .or(op::deadline_ms.is_not_null().and(op::deadline_ms.le(now)));
    Ok(op::conductor_operation
        .filter(
            retries
                .and(is_loaded())
                .and(has_version(claimable))
                .or(abandoned.and(
                    is_loaded()
                        .and(has_version(claimable))
                        .and(has_waited)
                        .or(needs_no_driver),
                )),
        )
        .filter(fits(room))
        .filter(is_known())
        .select(Candidate::as_select())
        .limit(limit)
        .keep_prepared()
        .load(conn)?)
}

/// Those of these rows that wait neither for their cluster nor for a time.
fn queued(
    conn: &mut AnyConnection,
    claimable: &Claimable,
    room: &Room,
    now: i64,
    rows: &[i64],
) -> Result<Vec<Candidate>, JournalError> {
    Ok(op::conductor_operation
        .filter(op::id.eq_any(padded(rows)))
        .filter(op::state.eq(State::Queued.as_str()))
        .filter(op::next_attempt_ms.is_null().or(op::next_attempt_ms.le(now)))
        .filter(op::driver.is_null().or(op::driver.eq_any(&claimable.drivers)))
        .filter(has_version(claimable))
        .filter(fits(room))
        .filter(is_known())
        .filter(sql::<Bool>(ITS_TURN))
        .select(Candidate::as_select())
        .keep_prepared()
        .load(conn)?)
}

/// The next [`PART`] queued operations behind `place`, with their places. By the index alone; a database that is asked for
/// more than these two columns may prefer to read and sort all that wait.
fn part(conn: &mut AnyConnection, place: Place) -> Result<Vec<Place>, JournalError> {
    Ok(op::conductor_operation
        .filter(op::state.eq(State::Queued.as_str()))
        .filter(op::turn.ge(place.turn))
        .filter(op::turn.gt(place.turn).or(op::id.gt(place.row)))
        .order((op::turn, op::id))
        .select((op::turn, op::id))
        .limit(PART)
        .load(conn)?)
}

/// Whether there is room for the operation.
fn fits(room: &Room) -> Box<Condition> {
    let driver_not_in = |names: &[String]| {
        op::driver
            .is_null()
            .or(op::driver.ne_all(padded(names)))
            .assume_not_null()
    };
    let project_not_in = |names: &[String]| {
        op::project_id
            .is_null()
            .or(op::project_id.ne_all(padded(names)))
            .assume_not_null()
    };
    let is_delete = || op::kind.eq(OperationKind::ClusterDelete.as_str());
    let mut fits: Box<Condition> =
        Box::new(driver_not_in(&room.drivers.full).and(project_not_in(&room.projects.full)));
    if room.only_deletions {
        fits = Box::new(fits.and(is_delete()));
    } else {
        let others =
            driver_not_in(&room.drivers.only_deletions).and(project_not_in(&room.projects.only_deletions));
        fits = Box::new(fits.and(is_delete().or(others)));
    }
    fits
}

/// The leases of all operations that run: as many as there are slots in all conductors, at most.
///
/// # Errors
/// The database failed.
pub fn leases(conn: &mut AnyConnection) -> Result<Vec<SeenLease>, JournalError> {
    let running: Vec<(i64, i64, Option<i64>)> = op::conductor_operation
        .filter(op::state.eq(State::Running.as_str()))
        .select((op::id, op::lease_epoch, op::lease_expires_ms))
        .load(conn)?;
    Ok(running
        .into_iter()
        .map(|(row, epoch, expires_ms)| SeenLease {
            row,
            epoch,
            expires_ms,
        })
        .collect())
}

/// Whether the operation is of no driver's version that is missing here.
fn has_version(claimable: &Claimable) -> Box<Condition> {
    let mut has_version: Box<Condition> = Box::new(true.into_sql::<Bool>());
    for MissingVersion { driver, is_nowhere } in &claimable.without {
        let another = op::driver.is_null().or(op::driver.ne(driver.name.clone()));
        let another = another.or(op::driver_version
            .is_null()
            .or(op::driver_version.ne(driver.version.clone())));
        has_version = if *is_nowhere {
            let chooses = op::step.eq(Step::ChooseDriver.as_str());
            Box::new(has_version.and(another.or(chooses).assume_not_null()))
        } else {
            Box::new(has_version.and(another.assume_not_null()))
        };
    }
    has_version
}

/// When the next operation becomes claimable by time alone for a conductor that can take what is `claimable`, in milliseconds
/// from now: a due retry or an expiring lease. `None`: nothing is waiting for a time.
///
/// What was due when the conductor looked (`after_ms`, [`Look::at_ms`]) and was not claimed then waits for something else:
/// its turn, a driver, another conductor.
///
/// # Errors
/// The database failed.
pub fn next_due_in_ms(
    conn: &mut AnyConnection,
    claimable: &Claimable,
    after_ms: i64,
) -> Result<Option<i64>, JournalError> {
    let now = db::now_ms(conn)?;
    let is_loaded = || op::driver.is_null().or(op::driver.eq_any(&claimable.drivers));
    let retry: Option<i64> = op::conductor_operation
        .filter(op::state.eq(State::Retrying.as_str()))
        .filter(op::next_attempt_ms.gt(after_ms))
        .filter(is_loaded())
        .filter(has_version(claimable))
        .filter(is_known())
        .select(diesel::dsl::min(op::next_attempt_ms))
        .keep_prepared()
        .get_result(conn)?;
    let expiry: Option<i64> = op::conductor_operation
        .filter(op::state.eq(State::Running.as_str()))
        .filter(op::lease_expires_ms.gt(after_ms))
        .filter(is_loaded())
        .filter(has_version(claimable))
        .filter(is_known())
        .select(diesel::dsl::min(op::lease_expires_ms))
        .keep_prepared()
        .get_result(conn)?;
    Ok(retry
        .into_iter()
        .chain(expiry)
        .min()
        .map(|due| due.saturating_sub(now).max(0)))
}
