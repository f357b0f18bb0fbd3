//! Answers on their way out.

use std::sync::Arc;

use async_trait::async_trait;
use magnum_rpc::{PublishError, ReplyAddress, Transport};
use magnum_rpc_server as rpc;

use crate::operations::replies::ReplySink;
use crate::operations::stored_reply::Reply;

/// Sends answers of recorded calls through the transport.
#[derive(Clone)]
pub struct TransportSink(pub Arc<dyn Transport>);

#[async_trait]
impl ReplySink for TransportSink {
    async fn answer(&self, to: &ReplyAddress, answer: &Reply) -> Result<(), PublishError> {
        let outcome = match answer {
            Ok(value) => Ok(value.clone()),
            Err(fault) => Err(fault),
        };
        rpc::reply(self.0.as_ref(), to, outcome).await
    }

    async fn alive(&self, to: &ReplyAddress) -> Result<(), PublishError> {
        rpc::alive(self.0.as_ref(), to).await
    }
}
