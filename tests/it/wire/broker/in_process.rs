//! The guarantees of both transports, proven on the in-process one; the rest of this room proves them on RabbitMQ.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_rpc::{OutgoingMessage, PublishError, RpcOptions, Transport, WireFormat, connect_with, direct};
use magnum_rpc_client::{CallError, CallOptions, RpcClient};
use magnum_rpc_server::{CallMonitor, Incoming, RpcServer, reply};

const SOON: Duration = Duration::from_secs(5);

struct Bed {
    options: RpcOptions,
    transport: Arc<dyn Transport>,
}

impl Bed {
    fn new(change: impl FnOnce(&mut RpcOptions)) -> Self {
        let mut options = RpcOptions::for_url(&format!("fake://{}", Uuid::new_v4())).unwrap();
        change(&mut options);
        let transport = connect_with(options.clone(), "test").unwrap();
        Self { options, transport }
    }

    fn client(&self) -> RpcClient {
        RpcClient::new(Arc::clone(&self.transport), &self.options)
    }

    async fn server(&self, id: &str) -> RpcServer {
        // A second transport: two halves of a process find each other by the URL.
        let transport = connect_with(self.options.clone(), "server").unwrap();
        RpcServer::start(transport, &self.options, id).await.unwrap()
    }
}

fn nobody() -> RequestContext {
    RequestContext::default()
}

fn args(n: u32) -> Map<String, Value> {
    Map::from_iter([("n".to_owned(), json!(n))])
}

async fn next(server: &mut RpcServer) -> Incoming {
    timeout(SOON, server.recv())
        .await
        .expect("a message")
        .expect("a server")
}

#[tokio::test]
async fn a_cast_before_any_server_is_refused() {
    let bed = Bed::new(|_| {});
    let error = bed.client().cast(&nobody(), "m", Map::new()).await.unwrap_err();
    assert!(matches!(error, PublishError::Unroutable { .. }), "{error}");
}

#[tokio::test]
async fn a_cast_waits_for_the_next_server_and_keeps_its_id() {
    let bed = Bed::new(|_| {});
    bed.server("one").await.stop().await;
    let id = bed.client().cast(&nobody(), "m", args(1)).await.unwrap();
    let mut server = bed.server("two").await;
    let incoming = next(&mut server).await;
    assert_eq!(incoming.request.method, "m");
    assert_eq!(incoming.request.args, args(1));
    assert_eq!(incoming.request.unique_id, Some(id));
    assert!(!incoming.delivery.redelivered());
    incoming.delivery.ack().await;
    assert!(server.try_recv().is_none());
}

#[tokio::test]
async fn servers_compete_for_the_topic() {
    let bed = Bed::new(|options| options.rabbit.rabbit_qos_prefetch_count = 1);
    let (mut one, mut two) = (bed.server("one").await, bed.server("two").await);
    for n in 0..2 {
        bed.client().cast(&nobody(), "m", args(n)).await.unwrap();
    }
    let (first, second) = (next(&mut one).await, next(&mut two).await);
    let mut seen = [first.request.args["n"].clone(), second.request.args["n"].clone()];
    seen.sort_by_key(Value::as_u64);
    assert_eq!(seen, [json!(0), json!(1)]);
}

#[tokio::test]
async fn a_server_holds_no_more_than_its_prefetch() {
    let bed = Bed::new(|options| options.rabbit.rabbit_qos_prefetch_count = 2);
    let mut server = bed.server("one").await;
    for n in 0..3 {
        bed.client().cast(&nobody(), "m", args(n)).await.unwrap();
    }
    let (first, _second) = (next(&mut server).await, next(&mut server).await);
    assert!(timeout(Duration::from_millis(50), server.recv()).await.is_err());
    first.delivery.ack().await;
    assert_eq!(next(&mut server).await.request.args, args(2));
}

#[tokio::test]
async fn unsettled_messages_of_a_stopped_server_are_redelivered_in_order() {
    let bed = Bed::new(|_| {});
    let mut one = bed.server("one").await;
    for n in 0..3 {
        bed.client().cast(&nobody(), "m", args(n)).await.unwrap();
    }
    let held = [next(&mut one).await, next(&mut one).await];
    one.stop().await;
    let mut two = bed.server("two").await;
    for n in 0..3 {
        let incoming = next(&mut two).await;
        assert_eq!(incoming.request.args, args(n));
        assert!(incoming.delivery.redelivered());
        incoming.delivery.ack().await;
    }
    // The old deliveries are settled too late, and without effect.
    for incoming in held {
        incoming.delivery.requeue().await;
    }
    assert!(two.try_recv().is_none());
}

#[tokio::test]
async fn a_delivery_dropped_unsettled_comes_again() {
    let bed = Bed::new(|_| {});
    let mut server = bed.server("one").await;
    bed.client().cast(&nobody(), "m", args(1)).await.unwrap();
    drop(next(&mut server).await);
    let again = next(&mut server).await;
    assert!(again.delivery.redelivered());
    again.delivery.requeue().await;
    next(&mut server).await.delivery.ack().await;
}

#[tokio::test]
async fn a_paused_server_takes_nothing_until_resumed() {
    let bed = Bed::new(|_| {});
    let mut server = bed.server("one").await;
    server.stop_consuming().await;
    bed.client().cast(&nobody(), "m", args(1)).await.unwrap();
    assert!(timeout(Duration::from_millis(50), server.recv()).await.is_err());
    server.resume().await;
    next(&mut server).await.delivery.ack().await;
}

#[tokio::test]
async fn a_fanout_reaches_every_server_and_nobody_is_no_error() {
    let bed = Bed::new(|_| {});
    bed.client().fanout_cast(&nobody(), "m", args(1)).await.unwrap();
    let (mut one, mut two) = (bed.server("one").await, bed.server("two").await);
    bed.client().fanout_cast(&nobody(), "m", args(2)).await.unwrap();
    assert_eq!(next(&mut one).await.request.args, args(2));
    assert_eq!(next(&mut two).await.request.args, args(2));
}

#[tokio::test]
async fn a_call_gets_its_result_or_its_exception() {
    let bed = Bed::new(|_| {});
    let mut server = bed.server("one").await;
    let transport = Arc::clone(&bed.transport);
    tokio::spawn(async move {
        while let Some(Incoming { request, delivery }) = server.recv().await {
            let address = request.reply.clone().unwrap();
            let fault = Fault::cluster_not_found("c");
            let outcome = match request.method.as_str() {
                "good" => Ok(Value::Object(request.args)),
                _ => Err(&fault),
            };
            reply(transport.as_ref(), &address, outcome).await.unwrap();
            delivery.ack().await;
        }
    });
    let client = bed.client();
    // Side by side: each gets its own.
    let context = nobody();
    let calls = (0..20).map(|n| client.call(&context, "good", args(n)));
    for (n, result) in (0..20).zip(futures::future::join_all(calls).await) {
        assert_eq!(result.unwrap(), json!({ "n": n }));
    }
    assert_eq!(
        client.call_to("one", &context, "good", args(7)).await.unwrap(),
        json!({"n": 7})
    );
    let Err(CallError::Remote(remote)) = client.call(&context, "bad", Map::new()).await else {
        panic!("an exception");
    };
    assert_eq!(remote.to_fault().unwrap().exception, Exception::ClusterNotFound);
}

#[tokio::test]
async fn a_call_that_nobody_answers_times_out_and_its_request_expires() {
    let bed = Bed::new(|_| {});
    let server = bed.server("one").await;
    server.stop_consuming().await;
    // To this one: it is not asked whether anybody else takes requests.
    let options = CallOptions {
        server: Some("one".to_owned()),
        timeout: Some(Duration::from_millis(200)),
        ..CallOptions::default()
    };
    let error = bed
        .client()
        .call_with(&nobody(), "m", Map::new(), options)
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
    server.resume().await;
    let mut server = server;
    bed.client().cast(&nobody(), "after", Map::new()).await.unwrap();
    assert_eq!(
        next(&mut server).await.request.method,
        "after",
        "the expired one is gone"
    );
}

#[tokio::test]
async fn a_call_while_nobody_takes_requests_is_refused_at_once_and_not_published() {
    let bed = Bed::new(|_| {});
    let mut server = bed.server("one").await;
    server.stop_consuming().await;
    let client = bed.client();
    let error = client.call(&nobody(), "m", Map::new()).await.unwrap_err();
    assert!(matches!(error, CallError::NoConductor { .. }), "{error}");
    server.resume().await;
    client.cast(&nobody(), "after", Map::new()).await.unwrap();
    assert_eq!(next(&mut server).await.request.method, "after");
}

#[tokio::test]
async fn signs_of_life_carry_a_call_past_its_monitor() {
    let bed = Bed::new(|_| {});
    let mut server = bed.server("one").await;
    let transport = Arc::clone(&bed.transport);
    tokio::spawn(async move {
        while let Some(Incoming { request, delivery }) = server.recv().await {
            let monitor = (request.method == "alive").then(|| CallMonitor::start(&transport, &request));
            // Longer than the monitor's time, which cannot be less than two seconds.
            tokio::time::sleep(Duration::from_millis(2500)).await;
            drop(monitor);
            reply(transport.as_ref(), &request.reply.unwrap(), Ok(json!("done")))
                .await
                .unwrap();
            delivery.ack().await;
        }
    });
    let call = async |method: &str| {
        let options = CallOptions {
            monitor: Some(Duration::from_secs(2)),
            ..CallOptions::default()
        };
        bed.client()
            .call_with(&nobody(), method, Map::new(), options)
            .await
    };
    assert_eq!(call("alive").await.unwrap(), json!("done"));
    assert!(matches!(call("silent").await, Err(CallError::TimedOut { .. })));
}

#[tokio::test]
async fn undecodable_message_moves_to_the_dead_letter_queue() {
    let bed = Bed::new(|_| {});
    let mut server = bed.server("one").await;
    let garbage = OutgoingMessage::new(direct("magnum-conductor"), WireFormat::Json, "{not json");
    bed.transport.publish(garbage).await.unwrap();
    bed.client().cast(&nobody(), "m", args(1)).await.unwrap();
    let incoming = next(&mut server).await;
    assert_eq!(
        incoming.request.method, "m",
        "the bad one does not block the good one"
    );
    let dead = OutgoingMessage::new(direct("magnum-conductor.dead"), WireFormat::Json, "{}");
    timeout(SOON, async {
        // The queue appears with the first dead letter.
        while bed.transport.publish(dead.clone()).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused_before_it_is_sent() {
    let bed = Bed::new(|_| {});
    let _server = bed.server("one").await;
    let big = Map::from_iter([("x".to_owned(), json!("x".repeat(9 << 20)))]);
    let error = bed.client().cast(&nobody(), "m", big).await.unwrap_err();
    assert!(matches!(error, PublishError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn a_closed_transport_refuses_and_ends_its_servers() {
    let bed = Bed::new(|_| {});
    let mut server = RpcServer::start(Arc::clone(&bed.transport), &bed.options, "one")
        .await
        .unwrap();
    bed.transport.close().await;
    assert!(timeout(SOON, server.recv()).await.unwrap().is_none());
    assert!(bed.client().cast(&nobody(), "m", Map::new()).await.is_err());
}
