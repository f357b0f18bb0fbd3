//! Calls that echo a Cluster: our client with our server, oslo's client with oslo's server.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use magnum_common::context::RequestContext;
use magnum_common::rpc::{RpcClient, RpcOptions, WireFormat, WireRequest, connect_with};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::measure::{Contestant, Server, message, peer};
use super::report::{Goal, Table};
use crate::rabbitmq::{Rabbitmq, Vhost};

/// Numbers of callers at once.
const CALLERS: [u64; 2] = [1, 16];

/// What one contestant did with one number of callers.
struct Measured {
    rate: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu_us: f64,
    rss_mib: f64,
}

pub(super) async fn run(messages: u64, peer_messages: u64) -> Result<()> {
    let broker = Rabbitmq::dedicated().await?;
    let columns = [
        "callers",
        "calls/s",
        "p50 ms",
        "p99 ms",
        "server cpu us/call",
        "RSS MiB",
        "start s",
    ];
    let mut table = Table::new("calls", &columns);
    for callers in CALLERS {
        let mut results = Vec::new();
        for (contestant, count) in [(Contestant::Ours, messages), (Contestant::Peer, peer_messages)] {
            let vhost = broker.vhost().await?;
            let server = Server::start(contestant, &vhost, u64::MAX).await?;
            let measured = measure(contestant, &vhost, &server, callers, count).await?;
            table.row(
                contestant.name(),
                &[
                    callers as f64,
                    measured.rate,
                    measured.p50_ms,
                    measured.p99_ms,
                    measured.cpu_us,
                    measured.rss_mib,
                    server.start.as_secs_f64(),
                ],
            );
            server.stop().await?;
            results.push(measured);
        }
        if let [ours, peer] = results.as_slice() {
            let by = format!("at {callers} callers");
            table.goal(Goal::at_most(
                &format!("cpu per call {by}, share of the peer's"),
                ours.cpu_us / peer.cpu_us,
                0.1,
            ));
            table.goal(Goal::at_most(
                &format!("p50 {by}, share of the peer's"),
                ours.p50_ms / peer.p50_ms,
                0.5,
            ));
            if callers > 1 {
                table.goal(Goal::at_least(
                    &format!("calls per second {by}, times the peer's"),
                    ours.rate / peer.rate,
                    10.0,
                ));
            }
            table.goal(Goal::at_most(
                &format!("RSS {by}, share of the peer's"),
                ours.rss_mib / peer.rss_mib,
                0.25,
            ));
        }
    }
    table.print(&json!({"messages": messages, "peer_messages": peer_messages}));
    broker.stop().await
}

async fn measure(
    contestant: Contestant,
    vhost: &Vhost,
    server: &Server,
    callers: u64,
    count: u64,
) -> Result<Measured> {
    // The first calls open connections; they are not counted.
    call(contestant, vhost, callers, callers * 20).await?;
    let before = server.cpu()?;
    let (took, mut latencies) = call(contestant, vhost, callers, count).await?;
    let cpu = server.cpu()?.saturating_sub(before);
    latencies.sort_by(f64::total_cmp);
    let made = latencies.len() as f64;
    let at = |share: f64| {
        latencies
            .get((made * share) as usize)
            .copied()
            .unwrap_or(f64::NAN)
    };
    Ok(Measured {
        rate: made / took.as_secs_f64(),
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        cpu_us: cpu.as_secs_f64() * 1e6 / made,
        rss_mib: server.rss_mib()?,
    })
}

/// Makes `count` calls; returns the time they took together and each one's in milliseconds.
async fn call(
    contestant: Contestant,
    vhost: &Vhost,
    callers: u64,
    count: u64,
) -> Result<(Duration, Vec<f64>)> {
    if contestant == Contestant::Peer {
        let url = vhost.transport_url();
        let output = peer(&["client", &url, &callers.to_string(), &count.to_string()])?
            .output()
            .await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().last().context("the peer's client said nothing")?;
        let said: Value = serde_json::from_str(line)?;
        let latencies = said["latencies_ms"].as_array().context("latencies")?;
        let took = said["seconds"].as_f64().context("seconds")?;
        let latencies = latencies.iter().filter_map(Value::as_f64).collect();
        return Ok((Duration::from_secs_f64(took), latencies));
    }
    let options = RpcOptions::for_url(&vhost.transport_url())?;
    let transport = connect_with(options.clone(), "bench-client")?;
    let client = RpcClient::new(Arc::clone(&transport), &options);
    let wire: WireRequest = serde_json::from_value(message()?)?;
    let request = wire
        .check(WireFormat::Json)
        .map_err(|malformed| malformed.fault)?;
    // Opens both connections before the clock runs, as the peer's client does.
    client
        .call(&request.context, "cluster_create", request.args.clone())
        .await?;
    let began = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..callers {
        let (client, args) = (client.clone(), request.args.clone());
        let context: RequestContext = request.context.clone();
        tasks.push(tokio::spawn(async move {
            let mut latencies = Vec::new();
            for _ in 0..count / callers {
                let sent = Instant::now();
                client.call(&context, "cluster_create", args.clone()).await?;
                latencies.push(sent.elapsed().as_secs_f64() * 1e3);
            }
            anyhow::Ok(latencies)
        }));
    }
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await??);
    }
    let took = began.elapsed();
    transport.close().await;
    Ok((took, latencies))
}
