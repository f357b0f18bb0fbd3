//! What a client gets when a conductor does not reply to a call, or replies with an exception.

use axum::http::StatusCode;
use magnum_common::error::{DISPATCHER, Exception, MAGNUM};
use magnum_rpc::RemoteFailure;
use magnum_rpc_client::CallError;
use serde_json::Value;

use super::ApiFault;

impl From<CallError> for ApiFault {
    fn from(error: CallError) -> Self {
        let fault = match error {
            CallError::Publish(error) => return error.into(),
            CallError::Remote(failure) => return failure.into(),
            CallError::Listen(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "The message broker is not available at the moment. Nothing was changed. Please try again later.",
            ),
            CallError::TimedOut { waited, .. } => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!(
                    "No conductor has answered within {} seconds; the request may still be carried out. Look at the \
                     cluster before you repeat it.",
                    waited.as_secs()
                ),
            ),
            CallError::NoConductor { .. } => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "No conductor takes requests at the moment. Nothing was changed. Please try again later.",
            ),
            CallError::BadReply { .. } => Self::internal(),
        };
        fault.caused_by(error)
    }
}

/// Magnum's own exceptions are made for users and keep their class's status. A conductor that does not know a method
/// (one of Magnum, asked for something of ours, or an older release) has changed nothing. Other exceptions of a conductor
/// go to the log only.
impl From<RemoteFailure> for ApiFault {
    fn from(failure: RemoteFailure) -> Self {
        if failure.module == DISPATCHER && failure.class == Exception::NoSuchMethod.name() {
            return Self::new(
                StatusCode::NOT_IMPLEMENTED,
                "The conductor that took the request does not know how to do this: it is of Magnum, or of an older \
                 release. Nothing was changed.",
            )
            .caused_by(failure);
        }
        if failure.module != MAGNUM {
            return Self::internal().caused_by(failure);
        }
        let status = match failure.to_fault() {
            Some(fault) => fault.code(),
            None => failure
                .kwargs
                .get("code")
                .and_then(Value::as_u64)
                .and_then(|code| u16::try_from(code).ok())
                .filter(|code| (400..600).contains(code))
                .unwrap_or(500),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // A Python conductor that debugs puts its traceback behind the message.
        let message = failure
            .message
            .split("\nTraceback (most recent call last):")
            .next();
        Self::new(status, message.unwrap_or_default().trim_end())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use magnum_common::error::Fault;
    use serde_json::Map;

    use super::*;

    #[test]
    fn missing_reply_is_a_503_without_a_promise() {
        let fault = ApiFault::from(CallError::TimedOut {
            method: "sign_certificate".into(),
            waited: Duration::from_secs(60),
        });
        assert_eq!(fault.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(
            fault.detail.contains("within 60 seconds; the request may still"),
            "{}",
            fault.detail
        );
    }

    #[test]
    fn a_method_that_the_conductor_does_not_know_is_a_501() {
        // As a Python conductor answers.
        let unknown = RemoteFailure {
            class: "NoSuchMethod".into(),
            module: "oslo_messaging.rpc.dispatcher".into(),
            message: "Endpoint does not support RPC method cluster_reboot".into(),
            kwargs: Map::new(),
        };
        let fault = ApiFault::from(unknown);
        assert_eq!(fault.status(), StatusCode::NOT_IMPLEMENTED);
        assert!(fault.detail.contains("Nothing was changed."), "{}", fault.detail);
    }

    #[test]
    fn magnums_exceptions_keep_their_status_and_others_stay_inside() {
        let known = RemoteFailure::from(&Fault::not_supported("Upgrading"));
        let fault = ApiFault::from(known.clone());
        assert_eq!(
            (fault.status().as_u16(), fault.detail.as_str()),
            (400, "Upgrading is not supported.")
        );
        let unknown = RemoteFailure {
            class: "SomethingNew".into(),
            message: "too new\nTraceback (most recent call last):\n  File x".into(),
            kwargs: Map::from_iter([("code".to_owned(), 409.into())]),
            ..known.clone()
        };
        let fault = ApiFault::from(unknown);
        assert_eq!((fault.status().as_u16(), fault.detail.as_str()), (409, "too new"));
        let python = RemoteFailure {
            class: "KeyError".into(),
            module: "builtins".into(),
            message: "/usr/lib/secret".into(),
            ..known
        };
        let fault = ApiFault::from(python);
        assert_eq!(fault.status().as_u16(), 500);
        assert!(!fault.detail.contains("secret"));
    }
}
