//! A call of a driver's own API: ours, so that its arguments and its answer are [`magnum_drivers::api_exchange`]'s.

use std::time::Duration;

use magnum_common::context::RequestContext;
use magnum_drivers::api_exchange::METHOD;
use magnum_drivers::{ApiAnswer, ApiQuestion};
use magnum_rpc_client::{CallError, CallOptions};

use super::{ConductorApi, map_of};

impl ConductorApi {
    /// Has the driver of a cluster reply to a call of its own API, for at most `patience`.
    ///
    /// # Errors
    /// The call was not published, was not answered in time, or the conductor does not know the method.
    pub async fn cluster_driver_call(
        &self,
        context: &RequestContext,
        question: &ApiQuestion,
        patience: Duration,
    ) -> Result<ApiAnswer, CallError> {
        let unreadable = |error: serde_json::Error| CallError::BadReply {
            method: METHOD.to_owned(),
            reason: error.to_string(),
        };
        let args = map_of(serde_json::to_value(question).map_err(unreadable)?);
        let options = CallOptions {
            timeout: Some(patience),
            ..CallOptions::default()
        };
        let answer = self.rpc.call_with(context, METHOD, args, options).await?;
        serde_json::from_value(answer).map_err(unreadable)
    }
}
