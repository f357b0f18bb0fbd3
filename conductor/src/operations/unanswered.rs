//! The last write of a worker, when it was not told what became of it.
//!
//! A connection that breaks during a commit leaves open whether it was carried out. The worker writes again, and when it was, the
//! lease is not there any more: the operation has ended, or waits for the cloud, under this worker's own epoch. Its caller, whoever
//! listens and what waits behind it are told at once then, as if the first answer had come.
//!
//! What this does not give: certainty when the database stays away. Then the sweep sends the answer later, and no notification comes.

use super::journal::{JournalError, read};
use super::lease::Lease;
use super::services::OperationServices;
use super::state::State;

/// How the worker of a lease that is gone has left its operation.
///
/// # Errors
/// [`JournalError::LeaseLost`]: it has not, or nobody knows; somebody else has the operation.
pub(super) async fn left_as(services: &OperationServices, lease: &Lease) -> Result<State, JournalError> {
    let (operation, owner, epoch) = (lease.operation().clone(), lease.owner().clone(), lease.epoch());
    let left = services
        .db
        .transaction(move |conn| read::left_as(conn, &operation, &owner, epoch))
        .await;
    match left {
        Ok(Some(state)) => {
            tracing::debug!("an earlier write was committed, though the database had not said so");
            Ok(state)
        }
        Ok(None) => Err(JournalError::LeaseLost),
        Err(error) => {
            tracing::debug!(%error, "whether an earlier write was committed cannot be read");
            Err(JournalError::LeaseLost)
        }
    }
}
