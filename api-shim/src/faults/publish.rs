//! What a client gets when its request could not be published to a conductor.

use axum::http::StatusCode;
use magnum_rpc::PublishError;

use super::ApiFault;

impl From<PublishError> for ApiFault {
    fn from(error: PublishError) -> Self {
        let unavailable = |detail: &str| Self::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        // What may have been stored must not be called refused: a client that repeats it would get it twice.
        let fault = match &error {
            PublishError::TooLarge { .. } => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The request is too large for the message broker.",
            ),
            PublishError::Unroutable { .. } => unavailable(
                "The request was not accepted: no conductor has a queue for it. Nothing was changed.",
            ),
            PublishError::Nacked | PublishError::Forbidden(_) => unavailable(
                "The request was not accepted: the message broker refused to store it. Nothing was changed.",
            ),
            PublishError::Encode(_) => Self::internal(),
            PublishError::TimedOut | PublishError::Disconnected(_) => unavailable(
                "The message broker did not confirm the request in time, so it was not accepted; it may still be \
                 carried out. Look at the resource before you repeat it.",
            ),
        };
        fault.caused_by(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unconfirmed_publish_is_a_503() {
        let unroutable = PublishError::Unroutable {
            exchange: "magnum".into(),
            routing_key: "magnum-conductor".into(),
        };
        for error in [unroutable, PublishError::Nacked, PublishError::TimedOut] {
            assert_eq!(ApiFault::from(error).status(), StatusCode::SERVICE_UNAVAILABLE);
        }
    }
}
