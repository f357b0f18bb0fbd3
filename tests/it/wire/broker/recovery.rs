//! Losses: a cut line, a broker that restarts or is killed, a process that dies with work in its hands.

use std::time::Duration;

use anyhow::Result;
use magnum_rpc::{Health, PublishError};
use magnum_rpc_server::{Incoming, RpcServer, reply};
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::rabbitmq::{self, Rabbitmq};
use magnum_tests::wait;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Bed, SOON, args, next, nobody};

#[tokio::test]
async fn a_request_in_the_hands_of_a_lost_server_goes_to_another() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let proxy = ChaosProxy::start(vhost.address).await?;
    let lost = Bed::new(
        &vhost.transport_url_via(proxy.address()),
        "rabbit_quorum_queue=true",
    )?;
    let kept = Bed::new(&vhost.transport_url(), "rabbit_quorum_queue=true")?;
    let mut first = lost.server("one").await?;
    kept.client().cast(&nobody(), "m", args(1)).await?;
    let held = next(&mut first).await;
    proxy.cut();
    let mut second = kept.server("two").await?;
    let again = next(&mut second).await;
    assert_eq!(again.request.unique_id, held.request.unique_id);
    assert!(again.delivery.redelivered());
    again.delivery.ack().await;
    // Too late, without effect and without harm.
    held.delivery.ack().await;
    Ok(())
}

/// Acknowledges until the wanted request is there. An acknowledgement that was under way when the line was cut
/// is lost, and its message comes again.
async fn take(server: &mut RpcServer, method: &str, n: u64) {
    loop {
        let Incoming { request, delivery } = next(server).await;
        delivery.ack().await;
        if request.method == method && request.args == args(n) {
            return;
        }
    }
}

#[tokio::test]
async fn a_server_consumes_again_after_its_line_was_cut() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let proxy = ChaosProxy::start(vhost.address).await?;
    let bed = Bed::new(
        &vhost.transport_url_via(proxy.address()),
        "rabbit_quorum_queue=true",
    )?;
    let mut server = bed.server("one").await?;
    let direct = Bed::new(&vhost.transport_url(), "rabbit_quorum_queue=true")?;
    for n in 0..3 {
        proxy.cut();
        direct.client().cast(&nobody(), "m", args(n)).await?;
        proxy.restore();
        take(&mut server, "m", n).await;
        // The same fanout queue is bound again.
        direct.client().fanout_cast(&nobody(), "all", args(n)).await?;
        take(&mut server, "all", n).await;
    }
    assert_eq!(bed.transport.health(), Health::Connected);
    Ok(())
}

#[tokio::test]
async fn a_publish_over_a_dead_line_fails_in_bounded_time_and_works_when_it_is_back() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let proxy = ChaosProxy::start(vhost.address).await?;
    let direct = Bed::new(&vhost.transport_url(), "")?;
    let _server = direct.server("one").await?;
    let mut bed = Bed::new(&vhost.transport_url_via(proxy.address()), "")?;
    bed.options.addressing.publish_timeout = Duration::from_secs(2);
    let client = bed.client();
    client.cast(&nobody(), "m", args(0)).await?;
    for dead in [ChaosProxy::cut as fn(&ChaosProxy), ChaosProxy::stall] {
        dead(&proxy);
        let error = timeout(SOON, client.cast(&nobody(), "m", args(1)))
            .await?
            .unwrap_err();
        assert!(
            matches!(error, PublishError::Disconnected(_) | PublishError::TimedOut),
            "{error}"
        );
        proxy.restore();
        timeout(SOON, client.cast(&nobody(), "m", args(2))).await??;
    }
    Ok(())
}

#[tokio::test]
async fn a_connection_that_confirms_nothing_is_replaced_after_two_messages() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let proxy = ChaosProxy::start(vhost.address).await?;
    let _server = Bed::new(&vhost.transport_url(), "")?.server("one").await?;
    let mut bed = Bed::new(&vhost.transport_url_via(proxy.address()), "")?;
    bed.options.addressing.publish_timeout = Duration::from_secs(1);
    let client = bed.client();
    client.cast(&nobody(), "m", args(0)).await?;
    proxy.forget();
    for n in 1..3 {
        let error = timeout(SOON, client.cast(&nobody(), "m", args(n)))
            .await?
            .unwrap_err();
        assert!(matches!(error, PublishError::TimedOut), "{error}");
    }
    timeout(SOON, client.cast(&nobody(), "m", args(3))).await??;
    Ok(())
}

/// Twenty confirmed casts come out of the queue after whatever `event` does to the broker.
async fn confirmed_casts_survive(
    options: &str,
    event: impl AsyncFnOnce(&Rabbitmq) -> Result<()>,
) -> Result<()> {
    let node = Rabbitmq::dedicated().await?;
    let vhost = node.vhost().await?;
    let bed = Bed::new(&vhost.transport_url(), options)?;
    let mut server = bed.server("one").await?;
    server.stop_consuming().await;
    for n in 0..20 {
        bed.client().cast(&nobody(), "m", args(n)).await?;
    }
    event(&node).await?;
    server.resume().await;
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 20 {
        let incoming = next(&mut server).await;
        seen.insert(incoming.request.args["n"].as_u64());
        incoming.delivery.ack().await;
    }
    node.stop().await
}

#[tokio::test]
async fn confirmed_casts_in_a_quorum_queue_survive_a_restart_of_the_broker() -> Result<()> {
    let options = "rabbit_quorum_queue=true&rabbit_transient_quorum_queue=true";
    confirmed_casts_survive(options, async |node| node.restart().await).await
}

/// Not with a quorum queue: one that is only seconds old when RabbitMQ 3.10 is killed was seen to answer no
/// declaration for minutes afterwards.
#[tokio::test]
async fn confirmed_casts_in_a_durable_queue_survive_kill_9_of_the_broker() -> Result<()> {
    confirmed_casts_survive("amqp_durable_queues=true", async |node| {
        node.kill().await?;
        node.start().await
    })
    .await
}

#[tokio::test]
async fn calls_and_casts_go_on_after_a_restart_of_the_broker_with_oslos_default_queues() -> Result<()> {
    let node = Rabbitmq::dedicated().await?;
    let vhost = node.vhost().await?;
    let bed = Bed::new(&vhost.transport_url(), "")?;
    let mut server = bed.server("one").await?;
    let transport = std::sync::Arc::clone(&bed.transport);
    tokio::spawn(async move {
        while let Some(Incoming { request, delivery }) = server.recv().await {
            if let Some(address) = &request.reply {
                reply(transport.as_ref(), address, Ok(Value::Object(request.args)))
                    .await
                    .ok();
            }
            delivery.ack().await;
        }
    });
    let client = bed.client();
    assert_eq!(client.call(&nobody(), "m", args(1)).await?, json!({"n": 1}));
    node.restart().await?;
    // Queues that were not durable are gone; server and reply listener declare them again when they are back.
    let answered = async {
        loop {
            match client.call(&nobody(), "m", args(2)).await {
                Ok(value) => return value,
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    };
    assert_eq!(timeout(SOON, answered).await?, json!({"n": 2}));
    node.stop().await
}

/// Cuts the line and holds the new connection in its handshake; what `order` says meanwhile must count.
async fn ordered_during_a_reconnect(bed: &Bed, proxy: &ChaosProxy, order: impl AsyncFnOnce()) -> Result<()> {
    proxy.cut();
    wait::until("the loss to be noticed", SOON, async || {
        match bed.transport.health() {
            Health::Connected => Err("connected"),
            _ => Ok(()),
        }
    })
    .await?;
    let before = proxy.accepted();
    proxy.stall();
    wait::until("a new connection to begin", SOON, async || {
        if proxy.accepted() > before {
            Ok(())
        } else {
            Err("none yet")
        }
    })
    .await?;
    order().await;
    proxy.restore();
    wait::until("the connection", SOON, async || match bed.transport.health() {
        Health::Connected => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await
}

#[tokio::test]
async fn orders_that_come_during_a_reconnect_count() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let proxy = ChaosProxy::start(vhost.address).await?;
    let options = "rabbit_quorum_queue=true";
    let bed = Bed::new(&vhost.transport_url_via(proxy.address()), options)?;
    let direct = Bed::new(&vhost.transport_url(), options)?;
    let mut server = bed.server("one").await?;

    ordered_during_a_reconnect(&bed, &proxy, async || server.stop_consuming().await).await?;
    let mut other = direct.server("two").await?;
    for n in 0..10 {
        direct.client().cast(&nobody(), "m", args(n)).await?;
    }
    // All of them: a server that was told to pause takes none.
    for n in 0..10 {
        take(&mut other, "m", n).await;
    }
    other.stop().await;

    ordered_during_a_reconnect(&bed, &proxy, async || server.resume().await).await?;
    direct.client().cast(&nobody(), "m", args(10)).await?;
    take(&mut server, "m", 10).await;
    Ok(())
}
