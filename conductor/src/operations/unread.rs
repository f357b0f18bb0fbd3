//! Operations that this release cannot read: a newer one has written them, or they are damaged.
//!
//! What the columns say ([`known`]) is not claimed at all. What turns out to be unreadable after a claim, although its columns
//! promise otherwise, is left to the other conductors, uncounted; when none of them could read it either, it is marked as one
//! for a newer release. Either way it ends: who can carry it out ends it by its time limit, and if no conductor that is alive may
//! know it, any one that has waited long enough ([`OperationTiming::driver_patience`]) ends it, with a reason.
//!
//! Not given: what such an operation has done is not known here. Its cluster fails if it is in progress, its certificates and
//! what it has in a cloud stay.
//!
//! [`OperationTiming::driver_patience`]: super::OperationTiming::driver_patience

use std::sync::Arc;
use std::time::Duration;

use magnum_common::ids::OperationId;
use magnum_db::AnyConnection;
use tracing::Instrument as _;

use super::finish;
use super::journal::fenced::TryAgain;
use super::journal::known::{self, Patience};
use super::journal::{JournalError, OperationRow, Unreadable, fenced, read};
use super::lease::{self, Lease, millis};
use super::services::OperationServices;
use super::state::State;
use crate::workflows::format;

/// How soon another conductor may try to read it.
const PAUSE: Duration = Duration::from_secs(60);
/// After so many conductors, or looks of the same ones, it is for a newer release.
const TRIES: i64 = 10;

/// Rows read at once.
const BATCH: usize = 100;

/// Why such an operation ends.
pub const REASON: &str =
    "No conductor at work can carry this operation out: it was written by another release, or is damaged.";

/// Leaves an operation that was claimed and cannot be read to other conductors, with the reason for its readers. Neither the claim
/// nor a failure is counted.
pub(super) async fn leave(
    services: &OperationServices,
    lease: &Arc<Lease>,
    step: Option<String>,
    unreadable: &Unreadable,
) -> Result<State, JournalError> {
    let reason = format!("{unreadable}; it is left to conductors of another release");
    tracing::warn!(reason, "an operation cannot be read");
    let lease = Arc::clone(lease);
    services
        .db
        .transaction(move |conn| {
            lease::fence(conn, &lease)?;
            if known::times_unread(conn, lease.operation().as_str())? + 1 >= TRIES {
                fenced::set_format(conn, &lease, format::KNOWN + 1)?;
            }
            fenced::retry_later(conn, &lease, step.as_deref(), PAUSE, TryAgain::Unread, &reason)?;
            Ok(State::Retrying)
        })
        .await
}

/// An operation that nobody works on is out of time and cannot be read. Who can read it has ended it by now, or nobody can: then it
/// is for a newer release from here on, and ends as such.
pub(super) async fn is_late(
    services: &OperationServices,
    row: OperationRow,
    unreadable: &Unreadable,
) -> Result<(), JournalError> {
    tracing::debug!(%unreadable, "an operation is out of time and cannot be read");
    let grace = millis(services.timing.driver_alive);
    let me = services.me.clone();
    let mark = move |conn: &mut AnyConnection| known::mark_late(conn, &row, grace, me.as_str());
    services.db.brief_transaction(mark).await
}

/// Ends what no conductor that is alive may know. Judged only by who has seen the database for as long as an announcement counts.
///
/// # Errors
/// The database failed.
pub async fn pass(services: &OperationServices) -> Result<(), JournalError> {
    let patience = Patience {
        alive_ms: millis(services.timing.driver_alive),
        most_ms: millis(services.timing.driver_patience),
    };
    let unknown = move |conn: &mut AnyConnection| known::unknown_to_all(conn, patience);
    let unknown = services.db.transaction(unknown).await?;
    for rows in unknown.chunks(BATCH) {
        let rows = rows.to_vec();
        let rows = move |conn: &mut AnyConnection| read::by_rows(conn, &rows);
        for row in services.db.transaction(rows).await? {
            let span = row.span();
            match end(services, row).instrument(span.clone()).await {
                Err(JournalError::Db(error)) if error.is_outage() => return Err(error.into()),
                Err(error) => span.in_scope(|| tracing::debug!(%error, "the operation cannot be ended now")),
                Ok(()) => {}
            }
        }
    }
    Ok(())
}

async fn end(services: &OperationServices, row: OperationRow) -> Result<(), JournalError> {
    let (id, me) = (OperationId::new(row.uuid.clone()), services.me.clone());
    services
        .db
        .brief_transaction(move |conn| finish::give_up_unread(conn, &row, REASON, me.as_str()))
        .await?;
    tracing::warn!("an operation that no conductor at work knows is given up");
    services.tell_given_up(id);
    Ok(())
}
