//! What a client gets when a call of a driver's own API has no reply of the driver.

use axum::http::StatusCode;
use magnum_drivers::ApiRefusal;
use magnum_rpc_client::CallError;

use super::ApiFault;

impl ApiFault {
    /// What a conductor says instead of a reply, in its words: they are made for users.
    pub fn of_driver_refusal(because: ApiRefusal, reason: String) -> Self {
        let status = match because {
            ApiRefusal::NotFound => StatusCode::NOT_FOUND,
            ApiRefusal::Conflict => StatusCode::CONFLICT,
            ApiRefusal::NotSupported => StatusCode::NOT_IMPLEMENTED,
            ApiRefusal::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ApiRefusal::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            ApiRefusal::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, reason)
    }

    /// A call that no conductor has answered is a 504: somebody waits for a driver here.
    pub fn of_driver_call(error: CallError) -> Self {
        match error {
            CallError::TimedOut { waited, .. } => Self::new(
                StatusCode::GATEWAY_TIMEOUT,
                format!(
                    "No conductor has answered for the cluster's driver within {} seconds. Whether the call had an \
                     effect is not known; look at the cluster before you repeat it.",
                    waited.as_secs_f64()
                ),
            )
            .caused_by(error),
            other => other.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_refusal_has_a_status_of_its_own_and_the_conductors_words() {
        let mut statuses: Vec<u16> = Vec::new();
        for because in ApiRefusal::ALL {
            let fault = ApiFault::of_driver_refusal(*because, "why".into());
            assert_eq!(fault.detail(), "why");
            statuses.push(fault.status().as_u16());
        }
        assert_eq!(statuses, [404, 409, 501, 503, 504, 500]);
    }

    #[test]
    fn silence_is_a_504() {
        let fault = ApiFault::of_driver_call(CallError::TimedOut {
            method: "cluster_driver_call".into(),
            waited: Duration::from_secs(35),
        });
        assert_eq!(fault.status(), StatusCode::GATEWAY_TIMEOUT);
        assert!(fault.detail().contains("within 35 seconds"), "{}", fault.detail());
    }
}
