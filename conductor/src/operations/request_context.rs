//! The context of the request that an operation came from, opened from the journal.

use crate::seal::{JournalKey, Place, SealError};
use magnum_common::context::{Caller, RequestContext};
use magnum_common::ids::RequestId;
use magnum_driver_api::Reason;

use super::journal::Operation;

/// The context that `operation` was accepted with. One that an operator retries has lost its token when it ended; it
/// gets what the journal still knows of the caller.
///
/// # Errors
/// What an operator has to do: the journal key of this conductor does not open it.
pub fn of(operation: &Operation, key: &JournalKey) -> Result<RequestContext, Reason> {
    let Some(sealed) = &operation.context else {
        let caller = Caller {
            user_id: operation.user_id.clone(),
            project_id: operation.project_id.clone(),
            ..Caller::default()
        };
        let request = operation.request_id.clone().unwrap_or_else(RequestId::random);
        return Ok(RequestContext::for_caller(&caller, &request));
    };
    let opened = key.open(
        Place::Context(operation.id.as_str()),
        operation.created_ms,
        sealed,
    );
    opened
        .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|_| SealError::UnknownLayout))
        .map_err(|error| {
            Reason::internal(
                "The conductor cannot open what it has recorded of the request.",
                format!(
                    "The request's context cannot be opened: all conductors need the same [conductor] \
                     journal_key_file, and it has to keep the old keys. ({error})"
                ),
            )
        })
}
