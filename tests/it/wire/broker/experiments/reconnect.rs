//! The return after a loss.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_rpc::{Health, RpcOptions, connect_with};
use magnum_rpc_server::RpcServer;
use magnum_tests::amqp_tap::AmqpTap;
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::rabbitmq;
use magnum_tests::wait;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::super::SOON;
use super::{assert_documented, experiments};

const FANOUT: &str = "magnum-conductor_fanout_";

/// A method in a few words, random names made equal.
fn in_words(method: &str, name: &str) -> String {
    if name.starts_with(FANOUT) {
        format!("{method} {FANOUT}<random>")
    } else {
        format!("{method} {name}")
    }
}

/// What the real one declares, with the topic's consumer last as ours is.
fn recorded(experiment: &Value) -> Vec<String> {
    assert_documented("A queue of this process that the broker serves no more");
    let methods = experiment["observed"]["methods_after_reconnect"].as_array();
    let words = methods.unwrap().iter().map(|text| {
        let (method, name) = text.as_str().unwrap().split_once(' ').unwrap();
        in_words(method, name)
    });
    let mut words: Vec<String> = words.collect();
    let topic = "basic.consume magnum-conductor";
    words.sort_by_key(|word| word == topic);
    words
}

/// What the connections for requests declared, oldest first, and the names of their fanout queues. The limit of
/// unacknowledged requests is left out: it has a row of differences of its own.
fn declared(tap: &AmqpTap) -> (Vec<Vec<String>>, Vec<String>) {
    let (mut all, mut fanout) = (Vec::new(), Vec::new());
    for connection in tap.connections_named(":requests:") {
        let mut words = Vec::new();
        for method in &connection.methods {
            let kind = method["method"].as_str().unwrap();
            let name = match kind {
                "exchange.declare" => &method["exchange"],
                "queue.declare" | "queue.bind" | "basic.consume" => &method["queue"],
                _ => continue,
            };
            let name = name.as_str().unwrap();
            words.push(in_words(kind, name));
            if name.starts_with(FANOUT) {
                fanout.push(name.to_owned());
            }
        }
        all.push(words);
    }
    (all, fanout)
}

/// Loses the line for as long as `outage` takes; what the second connection declared, and after how long.
async fn after_a_loss(
    query: &str,
    outage: impl AsyncFnOnce(&ChaosProxy) -> Result<()>,
) -> Result<(Vec<String>, Duration)> {
    let vhost = rabbitmq::vhost().await?;
    let tap = AmqpTap::start(vhost.address).await?;
    let proxy = ChaosProxy::start(tap.address()).await?;
    let url = format!("{}?{query}", vhost.transport_url_via(proxy.address()));
    let options = RpcOptions::for_url(&url)?;
    let transport = connect_with(options.clone(), "server")?;
    let server = RpcServer::start(transport.clone(), &options, "gq3dcmbzgu4t");
    let _server = timeout(SOON, server).await??;
    let before = declared(&tap).0.pop().context("nothing was declared")?;
    let lost = Instant::now();
    proxy.cut();
    wait::until("the loss to be noticed", SOON, async || {
        let health = transport.health();
        ensure!(health == Health::Reconnecting, "{health:?}");
        Ok(())
    })
    .await?;
    outage(&proxy).await?;
    proxy.restore();
    wait::until("a whole second declaration", SOON, async || {
        let (all, _) = declared(&tap);
        let is_whole = all.len() > 1 && all.last() == Some(&before);
        ensure!(is_whole, "{all:?}");
        Ok(())
    })
    .await?;
    let took = lost.elapsed();
    let (_, fanout) = declared(&tap);
    let is_one = fanout.iter().all(|name| *name == fanout[0]);
    assert!(is_one, "another fanout queue: {fanout:?}");
    Ok((before, took))
}

#[tokio::test]
async fn every_experiment_with_a_loss_ends_as_recorded_or_as_documented() -> Result<()> {
    let all = experiments("experiments-reconnect");
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "connections cut, broker stays reachable",
            "broker unreachable for 26 s"
        ]
    );

    let (declared, took) = after_a_loss("", async |_| Ok(())).await?;
    assert_eq!(declared, recorded(&all[0].1));
    let recorded_after = &all[0].1["observed"]["connected_again_after_s"][0];
    let recorded_after = Duration::from_secs_f64(recorded_after.as_f64().unwrap());
    assert!(took >= recorded_after, "{took:?}");

    // It never gives up, and comes back with the same declarations. The pauses are short here; `rabbit::reconnect`
    // has the tests for them.
    assert_documented("Pauses between attempts to reconnect");
    let quick = "kombu_reconnect_delay=0.1&rabbit_retry_interval=0.1&rabbit_retry_backoff=0.1&rabbit_interval_max=0.3";
    let attempts = all[1].1["observed"]["refused_attempts_after_s"].as_array();
    let attempts = attempts.unwrap().len();
    let (declared, _) = after_a_loss(quick, async |proxy| {
        let before = proxy.accepted();
        wait::until("as many attempts as were recorded", SOON, async || {
            let made = proxy.accepted() - before;
            ensure!(made >= attempts, "{made}");
            Ok(())
        })
        .await
    })
    .await?;
    assert_eq!(declared, recorded(&all[1].1));
    Ok(())
}
