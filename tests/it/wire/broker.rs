//! The promises of `magnum_rpc::Transport`, on a real RabbitMQ: taken or told why not, delivered until
//! settled, back after every loss.

mod authentication;
mod declarations;
mod experiments;
mod in_process;
mod interop;
mod options;
mod recovery;
mod tls;
mod topology;
mod unserved_queue;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_common::context::RequestContext;
use magnum_rpc::{PublishError, RpcOptions, Transport, connect_with};
use magnum_rpc_client::RpcClient;
use magnum_rpc_server::{Incoming, RpcServer};
use magnum_tests::{rabbitmq, wait};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

/// Generous: two cores are shared by all tests, and a reconnect has its own pauses.
const SOON: Duration = Duration::from_secs(60);

/// One side of a conversation.
struct Bed {
    options: RpcOptions,
    transport: Arc<dyn Transport>,
}

impl Bed {
    /// A transport to `url`, with query parameters for options.
    fn new(url: &str, query: &str) -> Result<Self> {
        // Short pauses: what is proven is that it comes back, not that it waits.
        let quick = "kombu_reconnect_delay=0.1&rabbit_retry_interval=0.1&rabbit_retry_backoff=0.1&rabbit_interval_max=0.5";
        let options = RpcOptions::for_url(&format!("{url}?{quick}&{query}"))?;
        let transport = connect_with(options.clone(), "test")?;
        Ok(Self { options, transport })
    }

    fn client(&self) -> RpcClient {
        RpcClient::new(Arc::clone(&self.transport), &self.options)
    }

    async fn server(&self, id: &str) -> Result<RpcServer> {
        let starting = RpcServer::start(Arc::clone(&self.transport), &self.options, id);
        Ok(timeout(SOON, starting).await??)
    }
}

fn args(n: u64) -> Map<String, Value> {
    Map::from_iter([("n".to_owned(), json!(n))])
}

fn nobody() -> RequestContext {
    RequestContext::default()
}

async fn next(server: &mut RpcServer) -> Incoming {
    timeout(SOON, server.recv())
        .await
        .expect("a message")
        .expect("a server")
}

#[tokio::test]
async fn a_cast_is_refused_until_a_server_has_declared_the_queue() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let bed = Bed::new(&vhost.transport_url(), "rabbit_quorum_queue=true")?;
    let error = bed.client().cast(&nobody(), "m", args(1)).await.unwrap_err();
    assert!(matches!(error, PublishError::Unroutable { .. }), "{error}");
    bed.server("one").await?.stop().await;
    let id = bed.client().cast(&nobody(), "m", args(2)).await?;
    let mut server = bed.server("two").await?;
    let incoming = next(&mut server).await;
    assert_eq!(
        (incoming.request.unique_id, &incoming.request.args),
        (Some(id), &args(2))
    );
    incoming.delivery.ack().await;
    bed.transport.close().await;
    Ok(())
}

#[tokio::test]
async fn many_publishers_at_once_each_learn_their_own_fate() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let bed = Bed::new(&vhost.transport_url(), "")?;
    let mut server = bed.server("one").await?;
    let client = bed.client();
    let context = nobody();
    // Half of them name a server that does not exist: a returned message must not be taken for another's.
    let sends = (0..200_u64).map(async |n| {
        let options = magnum_rpc_client::CallOptions {
            server: (n % 2 == 1).then(|| "nobody".to_owned()),
            timeout: Some(Duration::from_secs(30)),
            ..Default::default()
        };
        client.call_with(&context, "m", args(n), options).await
    });
    let answering = async {
        for _ in 0..100 {
            let Incoming { request, delivery } = next(&mut server).await;
            let address = request.reply.expect("a call");
            magnum_rpc_server::reply(bed.transport.as_ref(), &address, Ok(Value::Object(request.args)))
                .await?;
            delivery.ack().await;
        }
        anyhow::Ok(())
    };
    let (results, answered) = tokio::join!(futures::future::join_all(sends), answering);
    answered?;
    for (n, result) in (0_u64..).zip(results) {
        match result {
            Ok(value) => assert_eq!(value, json!({ "n": n })),
            Err(error) => assert!(
                n % 2 == 1 && error.to_string().contains("no queue takes"),
                "{n}: {error}"
            ),
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_prefetch_leaves_the_rest_to_other_servers() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let bed = Bed::new(&vhost.transport_url(), "rabbit_qos_prefetch_count=1")?;
    let (mut one, mut two) = (bed.server("one").await?, bed.server("two").await?);
    for n in 0..2 {
        bed.client().cast(&nobody(), "m", args(n)).await?;
    }
    let (first, second) = (next(&mut one).await, next(&mut two).await);
    assert_ne!(first.request.args, second.request.args);
    first.delivery.ack().await;
    second.delivery.requeue().await;
    let again = tokio::select! {
        incoming = next(&mut one) => incoming,
        incoming = next(&mut two) => incoming,
    };
    assert!(again.delivery.redelivered());
    Ok(())
}

#[tokio::test]
async fn a_fanout_reaches_every_server_and_pausing_holds_requests_back() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let bed = Bed::new(&vhost.transport_url(), "")?;
    let (mut one, mut two) = (bed.server("one").await?, bed.server("two").await?);
    bed.client().fanout_cast(&nobody(), "all", args(1)).await?;
    for server in [&mut one, &mut two] {
        let incoming = next(server).await;
        assert_eq!(incoming.request.method, "all");
        incoming.delivery.ack().await;
    }
    two.stop().await;
    one.stop_consuming().await;
    bed.client().cast(&nobody(), "m", args(2)).await?;
    assert!(timeout(Duration::from_millis(300), one.recv()).await.is_err());
    one.resume().await;
    next(&mut one).await.delivery.ack().await;
    Ok(())
}

#[tokio::test]
async fn a_queue_that_deletes_itself_outlives_a_pause_with_its_messages() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let bed = Bed::new(&vhost.transport_url(), "amqp_auto_delete=true")?;
    let mut server = bed.server("one").await?;
    bed.client().cast(&nobody(), "m", args(1)).await?;
    let first = next(&mut server).await;
    server.stop_consuming().await;
    bed.client().cast(&nobody(), "m", args(2)).await?;
    server.resume().await;
    first.delivery.ack().await;
    let second = next(&mut server).await;
    assert_eq!(second.request.args["n"], 2);
    second.delivery.ack().await;
    Ok(())
}

#[tokio::test]
async fn undecodable_message_is_dead_lettered_with_its_reason() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let bed = Bed::new(&vhost.transport_url(), "rabbit_quorum_queue=true")?;
    let mut server = bed.server("one").await?;
    let bodies: [Vec<u8>; 3] = [
        b"{\"oslo.version\": \"2.0\"".to_vec(),
        b"\xff\xfe\x00".to_vec(),
        vec![b' '; 10 << 20],
    ];
    for body in bodies {
        let route = magnum_rpc::direct("magnum-conductor");
        let message = magnum_rpc::OutgoingMessage::new(route, Default::default(), body);
        bed.transport.publish(message).await?;
    }
    bed.client().cast(&nobody(), "m", args(1)).await?;
    next(&mut server).await.delivery.ack().await;
    // One that the broker has not confirmed in time is published once more: it may be there twice.
    let found = wait::until("three kinds of dead letters", SOON, async || {
        let found = vhost.management().peek("magnum-conductor.dead", 10).await?;
        let by_reason: BTreeMap<String, u64> = found
            .iter()
            .filter_map(|one| {
                let reason = one["properties"]["headers"]["x-reason"].as_str()?;
                Some((reason.to_owned(), one["payload_bytes"].as_u64()?))
            })
            .collect();
        ensure!(by_reason.len() == 3, "{by_reason:?}");
        Ok(by_reason)
    })
    .await?;
    let (reason, size) = found.first_key_value().context("none")?;
    assert!(reason.contains("10485760 bytes"), "{found:?}");
    assert_eq!(*size, 10 << 20, "the body is kept whole");
    Ok(())
}
