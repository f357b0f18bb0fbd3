//! One question to the broker while a session is being set up, with a time limit.
//!
//! The broker may be well and yet leave a question about one queue unanswered for ever, so an error names the queue.

use std::time::Duration;

use tokio::time::timeout;

use crate::rabbit::open::explain;

/// Time limit of one question.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub(super) enum SetupError {
    /// There is no connection, or the broker refuses something; in words for the log.
    #[error("{0}")]
    Refused(String),
    /// The broker has not answered, and this question was about no queue.
    #[error("the broker did not answer within {} s", ANSWERED_WITHIN.as_secs())]
    Silent,
    /// The broker has not answered a question about this queue.
    #[error(
        "the broker did not answer within {} s when asked for queue `{queue}`; if it goes on so, it serves that queue no more: \
         an administrator of the broker has to delete it",
        ANSWERED_WITHIN.as_secs()
    )]
    Unanswered {
        /// Its present name.
        queue: String,
    },
}

/// The broker's answer to a question, which is about `queue` if about any.
///
/// # Errors
/// What it reports, or that it has not answered in time.
pub(super) async fn answered<T>(
    queue: Option<&str>,
    question: impl Future<Output = lapin::Result<T>>,
) -> Result<T, SetupError> {
    match (timeout(ANSWERED_WITHIN, question).await, queue) {
        (Ok(answer), _) => answer.map_err(|error| SetupError::Refused(explain(&error))),
        (Err(_), Some(queue)) => Err(SetupError::Unanswered {
            queue: queue.to_owned(),
        }),
        (Err(_), None) => Err(SetupError::Silent),
    }
}
