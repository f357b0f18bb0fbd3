//! A backlog of casts, handled by each contestant in turn.
//!
//! The backlog is there before the server starts, so the publisher's speed does not matter.

use std::time::Duration;

use anyhow::Result;
use futures::StreamExt as _;
use futures::stream;
use magnum_common::rpc::topology::{Declaration, control_exchange, topic_queue};
use magnum_common::rpc::{
    ListenSpec, OutgoingMessage, RpcOptions, Target, WireFormat, WireRequest, connect_with, encode,
};
use serde_json::json;

use super::measure::{Contestant, Server, message};
use super::report::{Goal, Table};
use crate::rabbitmq::{Rabbitmq, Vhost};

/// Publishes under way at once.
const PUBLISHERS: usize = 64;

/// What one contestant did.
struct Measured {
    rate: f64,
    cpu_us: f64,
    rss_mib: f64,
    start: Duration,
}

pub(super) async fn run(messages: u64, peer_messages: u64) -> Result<()> {
    let broker = Rabbitmq::dedicated().await?;
    let mut table = Table::new("casts", &["handled/s", "cpu us/cast", "RSS MiB", "start s"]);
    let mut results = Vec::new();
    for (contestant, count) in [
        (Contestant::Bare, messages),
        (Contestant::Ours, messages),
        (Contestant::Peer, peer_messages),
    ] {
        let vhost = broker.vhost().await?;
        fill(&vhost, count).await?;
        let measured = measure(contestant, &vhost, count).await?;
        table.row(
            contestant.name(),
            &[
                measured.rate,
                measured.cpu_us,
                measured.rss_mib,
                measured.start.as_secs_f64(),
            ],
        );
        results.push(measured);
    }
    if let [_bare, ours, peer] = results.as_slice() {
        table.goal(Goal::at_most(
            "cpu per cast, share of the peer's",
            ours.cpu_us / peer.cpu_us,
            0.1,
        ));
        table.goal(Goal::at_most(
            "RSS, share of the peer's",
            ours.rss_mib / peer.rss_mib,
            0.25,
        ));
        let start = ours.start.as_secs_f64() / peer.start.as_secs_f64();
        table.goal(Goal::at_most(
            "start until consuming, share of the peer's",
            start,
            0.1,
        ));
    }
    table.print(&json!({"messages": messages, "peer_messages": peer_messages}));
    broker.stop().await
}

/// Puts `count` casts into the topic queue.
async fn fill(vhost: &Vhost, count: u64) -> Result<()> {
    let options = RpcOptions::for_url(&vhost.transport_url())?;
    let transport = connect_with(options.clone(), "bench-fill")?;
    let names = &options.addressing.names;
    let wire: WireRequest = serde_json::from_value(message()?)?;
    let mut request = wire
        .check(WireFormat::Json)
        .map_err(|malformed| malformed.fault)?;
    request.reply = None;
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
        delete_at_stop: None,
    };
    transport.listen(spec).await?.stop().await;
    let publishes = (0..count).map(|_| {
        // A fresh id each, as a Python server drops repeated ones.
        request.unique_id = Some(magnum_common::ids::MessageId::random());
        let body = encode(&request, WireFormat::Json);
        let route = names.route(&Target::AnyServer);
        let transport = &transport;
        async move {
            anyhow::Ok(
                transport
                    .publish(OutgoingMessage::new(route, WireFormat::Json, body?))
                    .await?,
            )
        }
    });
    let mut publishes = stream::iter(publishes).buffer_unordered(PUBLISHERS);
    while let Some(published) = publishes.next().await {
        published?;
    }
    drop(publishes);
    transport.close().await;
    Ok(())
}

async fn measure(contestant: Contestant, vhost: &Vhost, count: u64) -> Result<Measured> {
    let mut server = Server::start(contestant, vhost, count).await?;
    let before = server.cpu()?;
    let took = server.done().await?;
    let per_message = |duration: Duration| duration.as_secs_f64() / count as f64;
    let measured = Measured {
        rate: 1.0 / per_message(took),
        cpu_us: per_message(server.cpu()?.saturating_sub(before)) * 1e6,
        rss_mib: server.rss_mib()?,
        start: server.start,
    };
    server.stop().await?;
    Ok(measured)
}
