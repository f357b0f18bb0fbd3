//! Signs of life for callers that asked for them.
//!
//! A caller that sends `_timeout` gives up when it hears nothing for that long, and expects a reply with
//! `ending: false` twice in that time. A caller that did not ask breaks on one.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use magnum_rpc::{PublishError, ReplyAddress, Request, Transport, WireReply};
use magnum_telemetry::field;

/// Sends signs of life until dropped. Drop it before the final reply is sent.
#[derive(Debug)]
pub struct CallMonitor(JoinHandle<()>);

impl CallMonitor {
    /// Begins, if the request is a call that asks for it.
    pub fn start(transport: &Arc<dyn Transport>, request: &Request) -> Option<Self> {
        let (address, timeout) = (request.reply.clone()?, request.call_monitor?);
        Some(Self(tokio::spawn(run(
            Arc::clone(transport),
            address,
            timeout / 2,
        ))))
    }
}

impl Drop for CallMonitor {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends one heartbeat to a caller that asked for them, without retries: the next one comes soon.
///
/// # Errors
/// The broker did not take it.
pub async fn alive(transport: &dyn Transport, address: &ReplyAddress) -> Result<(), PublishError> {
    let mut message = WireReply::alive(address).into_message(address, transport.options())?;
    transport.authentication().sign(&mut message);
    transport.publish(message).await
}

async fn run(transport: Arc<dyn Transport>, address: ReplyAddress, period: Duration) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is immediate; the caller knows that much.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        if let Err(error) = alive(transport.as_ref(), &address).await {
            tracing::debug!(%error, { field::CALL } = %address.msg_id, "sign of life not delivered");
        }
    }
}
