//! Why a read or a write of the database was not done.

use magnum_common::error::Fault;
use magnum_db::DbError;

/// Why a read or a write was not done. [`crate::faults`] says what a client gets for it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbError),
    /// The database works, and the request is refused: the row does not exist, has changed, is in use, or a quota is
    /// used up.
    #[error(transparent)]
    Refused(#[from] Fault),
}

impl StoreError {
    /// Whether the row that the request names does not exist, or not for its caller.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(fault) if fault.code() == 404)
    }
}
