//! A broker that serves some queues no more, and the others as before.
//!
//! RabbitMQ 3.10 does that to a quorum queue if it is killed just after it has made it: the queue is still there, its Raft member
//! has no leader and never elects one, and whoever asks anything of the queue waits for ever. Here that member is suspended, which
//! looks the same from outside and needs no luck.

use std::time::Duration;

use anyhow::Result;
use magnum_rpc::Health;
use magnum_rpc_client::CallOptions;
use magnum_rpc_server::{Incoming, RpcServer, reply};
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::rabbitmq::Rabbitmq;
use magnum_tests::wait;
use serde_json::{Value, json};

use super::{Bed, SOON, args, next, nobody};

/// Twice ten seconds until each side gives its queue up, and the pauses.
const REPLACED_WITHIN: Duration = Duration::from_secs(90);

async fn answer(bed: &Bed, server: &mut RpcServer) -> Result<()> {
    loop {
        let Incoming { request, delivery } = server.recv().await.expect("a server");
        if let Some(address) = request.reply {
            // The queue of a caller that was replaced takes nothing more.
            let _unanswered = reply(bed.transport.as_ref(), &address, Ok(Value::Object(request.args))).await;
        }
        delivery.ack().await;
    }
}

#[tokio::test]
async fn queues_of_ones_own_that_are_served_no_more_are_replaced() -> Result<()> {
    let node = Rabbitmq::dedicated().await?;
    let vhost = node.vhost().await?;
    let proxy = ChaosProxy::start(vhost.address).await?;
    let url = vhost.transport_url_via(proxy.address());
    let bed = Bed::new(&url, "rabbit_quorum_queue=true")?;
    let caller = Bed::new(
        &url,
        "rabbit_quorum_queue=true&rabbit_transient_quorum_queue=true",
    )?;
    let client = caller.client();
    let call = async |n| {
        // By the key of the server's own queue, and with a reply to the caller's.
        let options = CallOptions {
            server: Some("two".to_owned()),
            timeout: Some(Duration::from_secs(5)),
            ..CallOptions::default()
        };
        client.call_with(&nobody(), "m", args(n), options).await
    };
    let mut server = bed.server("two").await?;
    let answered = tokio::select! {
        answered = call(1) => answered?,
        ended = answer(&bed, &mut server) => return ended,
    };
    assert_eq!(answered, json!({"n": 1}));

    let queues = vhost.management().queues().await?;
    let names = queues.iter().filter_map(|queue| queue["name"].as_str());
    for name in names.filter(|name| name.starts_with("reply_") || *name == "magnum-conductor.two") {
        let suspend = format!("sys:suspend(whereis('{}_{name}')).", vhost.name);
        node.control(&["eval", &suspend]).await?;
    }
    proxy.cut();
    for side in [&bed, &caller] {
        wait::until("the loss to be noticed", SOON, async || {
            match side.transport.health() {
                Health::Reconnecting => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
    }
    proxy.restore();

    caller.client().cast(&nobody(), "m", args(2)).await?;
    let incoming = next(&mut server).await;
    assert_eq!(incoming.request.args, args(2));
    incoming.delivery.ack().await;
    let answered = wait::until("an answer", REPLACED_WITHIN, async || call(3).await);
    let answered = tokio::select! {
        answered = answered => answered?,
        ended = answer(&bed, &mut server) => return ended,
    };
    assert_eq!(answered, json!({"n": 3}));
    // Nothing that is published waits for the old one.
    let bindings = vhost.management().bindings().await?;
    let of_exchange = bindings.iter().filter(|one| one["source"] == "magnum");
    let queues: Vec<_> = of_exchange.map(|one| &one["destination"]).collect();
    assert!(queues.contains(&&json!("magnum-conductor.two.2")), "{queues:?}");
    assert!(!queues.contains(&&json!("magnum-conductor.two")), "{queues:?}");
    // It would wait for the suspended ones.
    node.kill().await
}
