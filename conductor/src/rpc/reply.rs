//! Answers on their way out.

use std::sync::Arc;

use async_trait::async_trait;
use magnum_rpc::{self as rpc, PublishError, ReplyAddress, Transport};

use crate::operations::answer::Answer;
use crate::operations::replies::AnswerSink;

/// Sends answers of recorded calls through the transport.
#[derive(Clone)]
pub struct TransportSink(pub Arc<dyn Transport>);

#[async_trait]
impl AnswerSink for TransportSink {
    async fn answer(&self, to: &ReplyAddress, answer: &Answer) -> Result<(), PublishError> {
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
