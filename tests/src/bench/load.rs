//! Casts of the recorded `cluster_create`: a backlog at once, or at a steady pace.
//!
//! Every message has its own id and asks for its own cluster, and tells when it was sent: in its context, where
//! every server keeps what it does not know, and in a header for the consumer that does not decode.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use magnum_common::clock::utc_now;
use magnum_common::ids::MessageId;
use magnum_rpc::topology::{Declaration, control_exchange, topic_queue};
use magnum_rpc::{
    ListenSpec, OutgoingMessage, OwnQueues, Request, RpcOptions, Target, Transport, WireFormat, WireRequest,
    connect_with, encode,
};
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval};
use uuid::Uuid;

use super::measure::fixture;
use crate::rabbitmq::Vhost;

/// Key of the context and header that hold the microsecond of sending.
pub(super) const SENT: &str = "sent";

/// Publishes of a backlog under way at once.
const PUBLISHERS: usize = 64;

/// The recorded request, without an address to answer to.
pub(super) fn recorded() -> Result<Request> {
    let frame: Value = serde_json::from_str(&std::fs::read_to_string(fixture())?)?;
    let wire: WireRequest = serde_json::from_value(frame["inner"].clone())?;
    let mut request = wire
        .check(WireFormat::Json)
        .map_err(|malformed| malformed.fault)?;
    request.reply = None;
    Ok(request)
}

/// Microseconds since 1970. All contestants run on one machine, hence on one clock.
pub(super) fn now_us() -> i64 {
    utc_now().timestamp_micros()
}

/// A publisher.
pub(super) struct Load {
    transport: Arc<dyn Transport>,
    options: RpcOptions,
    request: Request,
}

impl Load {
    /// Connects and declares the topic queue, so that a backlog can wait there for its server.
    pub(super) async fn open(vhost: &Vhost) -> Result<Self> {
        let options = RpcOptions::for_url(&vhost.transport_url())?;
        let transport = connect_with(options.clone(), "bench-load")?;
        let names = &options.addressing.names;
        let spec = ListenSpec {
            purpose: "declare",
            declarations: vec![
                control_exchange(names, &options.rabbit),
                Declaration::Queue(topic_queue(names.topic_queue(), &options.rabbit)),
                Declaration::Bind {
                    queue: names.topic_queue().to_owned(),
                    exchange: names.exchange.clone(),
                    routing_key: names.topic_queue().to_owned(),
                },
            ],
            default_prefetch: 0,
            heartbeat: None,
            delete_at_stop: None,
            own_queues: OwnQueues::default(),
        };
        transport.listen(spec).await?.stop().await;
        Ok(Self {
            transport,
            options,
            request: recorded()?,
        })
    }

    /// Publishes `count` casts as fast as the broker confirms them.
    pub(super) async fn backlog(&self, count: u64) -> Result<()> {
        stream::iter(0..count)
            .map(|_| self.publish())
            .buffer_unordered(PUBLISHERS)
            .try_for_each(|()| async { Ok(()) })
            .await
    }

    /// Publishes `count` casts, one after the other, `per_second`; returns when each was sent.
    pub(super) async fn at_pace(&self, count: u64, per_second: u32) -> Result<Vec<Instant>> {
        let mut ticks = interval(Duration::from_secs(1) / per_second.max(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sent = Vec::new();
        for _ in 0..count {
            ticks.tick().await;
            sent.push(Instant::now());
            self.publish().await?;
        }
        Ok(sent)
    }

    async fn publish(&self) -> Result<()> {
        let message = self.message()?;
        self.transport.publish(message).await?;
        Ok(())
    }

    fn message(&self) -> Result<OutgoingMessage> {
        let sent = now_us();
        let mut request = self.request.clone();
        request.unique_id = Some(MessageId::random());
        request.context.set(SENT, json!(sent));
        let uuid = request
            .args
            .get_mut("cluster")
            .and_then(|cluster| cluster.pointer_mut("/magnum_object.data/uuid"))
            .context("the recorded cluster has no uuid")?;
        *uuid = json!(Uuid::new_v4().to_string());
        let body = encode(&request, WireFormat::Json)?;
        let route = self.options.addressing.names.route(&Target::AnyServer);
        let mut message = OutgoingMessage::new(route, WireFormat::Json, body);
        message.headers = vec![(SENT.to_owned(), sent.to_string())];
        Ok(message)
    }

    pub(super) async fn close(self) {
        self.transport.close().await;
    }
}
