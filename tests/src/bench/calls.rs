//! Calls that echo a Cluster: our client with our server, oslo's client with oslo's server.
//!
//! Rate and latency are what the client sees: its own work, two passes through the broker (request and reply,
//! each confirmed) and the server's work. The processor time of client, server and broker is told apart. Our
//! client runs in the measuring process, the peer's in a process of its own.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_rpc::{RpcOptions, connect_with};
use magnum_rpc_client::RpcClient;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::load::recorded;
use super::measure::{Contestant, Server, own, peer};
use super::report::{Goal, Report, Row, say};
use super::usage::{Meter, cpu, percentile, rss_mib};
use super::{Environment, seconds};
use crate::rabbitmq::Vhost;

/// Numbers of callers at once.
const CALLERS: [u64; 2] = [1, 16];

/// Calls of each caller before the clock runs: they open connections and channels.
const WARM_UP: u64 = 20;

/// What `bench calls` measures.
#[derive(Debug, clap::Args)]
pub struct Calls {
    /// Calls for ours, with each number of callers
    #[arg(long, default_value_t = 20_000)]
    pub messages: u64,
    /// Calls for the Python peer
    #[arg(long, default_value_t = 2_000)]
    pub peer_messages: u64,
    /// Longest time in seconds for one contestant's calls; what was made until then is measured
    #[arg(long, default_value = "60", value_parser = seconds)]
    pub limit: Duration,
}

const COLUMNS: [&str; 10] = [
    "callers",
    "calls",
    "calls/s",
    "p50 ms",
    "p99 ms",
    "cpu us/call",
    "client us/call",
    "broker us/call",
    "RSS MiB",
    "start s",
];

/// What one contestant did with one number of callers.
struct Measured {
    rate: f64,
    p50_ms: f64,
    cpu_us: f64,
    rss_mib: f64,
    start_s: f64,
}

/// What a client saw.
struct Seen {
    took: Duration,
    latencies_ms: Vec<f64>,
    client_cpu: Duration,
}

impl Calls {
    /// Measures both contestants with each number of callers.
    pub async fn run(&self, environment: &Environment<'_>) -> Result<Report> {
        let setup = json!({"messages": self.messages, "peer_messages": self.peer_messages});
        let mut report = Report::new("calls", &COLUMNS, setup);
        for callers in CALLERS {
            let ours = self
                .measure(environment, Contestant::Ours, callers, &mut report)
                .await?;
            let peer = self
                .measure(environment, Contestant::Peer, callers, &mut report)
                .await?;
            let share = |what: &str| format!("{what} at {callers} callers, share of the peer's");
            report.goal(Goal::at_most(
                &share("cpu per call"),
                ours.cpu_us / peer.cpu_us,
                0.1,
            ));
            report.goal(Goal::at_most(&share("p50"), ours.p50_ms / peer.p50_ms, 0.5));
            if callers > 1 {
                report.goal(Goal::at_least(
                    &format!("calls per second at {callers} callers, times the peer's"),
                    ours.rate / peer.rate,
                    10.0,
                ));
            }
            let start = ours.start_s / peer.start_s;
            report.goal(Goal::at_most(&share("start until consuming"), start, 0.1));
            report.goal(Goal::at_most(&share("RSS"), ours.rss_mib / peer.rss_mib, 0.25));
        }
        Ok(report)
    }

    async fn measure(
        &self,
        environment: &Environment<'_>,
        contestant: Contestant,
        callers: u64,
        report: &mut Report,
    ) -> Result<Measured> {
        let count = match contestant {
            Contestant::Peer => self.peer_messages,
            _ => self.messages,
        };
        say(&format!(
            "calls, {}, {callers} callers: {count}, at most for {:?}",
            contestant.name(),
            self.limit
        ));
        let vhost = environment.broker.vhost().await?;
        let command = match contestant {
            Contestant::Peer => peer(&["server", &vhost.transport_url(), &u64::MAX.to_string(), "0"])?,
            _ => own(environment, "ours", &vhost, u64::MAX, 0),
        };
        let server = Server::start(command, &vhost).await?;
        self.call(contestant, &vhost, callers, callers * WARM_UP).await?;
        let meter = Meter::start([server.pid, environment.broker.pid().await?])?;
        let seen = self.call(contestant, &vhost, callers, count).await?;
        let made = seen.latencies_ms.len();
        ensure!(made > 0, "no call was made within {:?} (see --limit)", self.limit);
        let cpu = meter.per_message(made as u64)?;
        let at = |share| percentile(&seen.latencies_ms, share).context("no latency");
        let measured = Measured {
            rate: made as f64 / seen.took.as_secs_f64(),
            p50_ms: at(0.5)?,
            cpu_us: cpu[0],
            rss_mib: rss_mib(server.pid)?,
            start_s: server.start.as_secs_f64(),
        };
        report.row(Row {
            name: contestant.name(),
            figures: vec![
                Some(callers as f64),
                Some(made as f64),
                Some(measured.rate),
                Some(measured.p50_ms),
                Some(at(0.99)?),
                Some(measured.cpu_us),
                Some(seen.client_cpu.as_secs_f64() * 1e6 / made as f64),
                Some(cpu[1]),
                Some(measured.rss_mib),
                Some(measured.start_s),
            ],
        });
        server.stop().await?;
        Ok(measured)
    }

    /// Has a client make `count` calls, or as many as the limit allows.
    async fn call(&self, contestant: Contestant, vhost: &Vhost, callers: u64, count: u64) -> Result<Seen> {
        // Beyond the limit there is only the last call of each caller, which has its own timeout.
        let patience = self.limit + Duration::from_secs(130);
        let calls = async {
            match contestant {
                Contestant::Peer => self.peers_calls(vhost, callers, count).await,
                _ => self.our_calls(vhost, callers, count).await,
            }
        };
        timeout(patience, calls)
            .await
            .with_context(|| format!("the client of {} hangs", contestant.name()))?
    }

    async fn peers_calls(&self, vhost: &Vhost, callers: u64, count: u64) -> Result<Seen> {
        let (url, limit) = (vhost.transport_url(), self.limit.as_secs().to_string());
        let output = peer(&["client", &url, &callers.to_string(), &count.to_string(), &limit])?
            .kill_on_drop(true)
            .output()
            .await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().last().with_context(|| {
            let log = String::from_utf8_lossy(&output.stderr);
            format!("the peer's client said nothing but:\n{log}")
        })?;
        let said: Value = serde_json::from_str(line)?;
        let seconds = |name: &'static str| said[name].as_f64().map(Duration::from_secs_f64).context(name);
        let latencies = said["latencies_ms"].as_array().context("latencies_ms")?;
        Ok(Seen {
            took: seconds("seconds")?,
            latencies_ms: latencies.iter().filter_map(Value::as_f64).collect(),
            client_cpu: seconds("cpu_seconds")?,
        })
    }

    async fn our_calls(&self, vhost: &Vhost, callers: u64, count: u64) -> Result<Seen> {
        let options = RpcOptions::for_url(&vhost.transport_url())?;
        let transport = connect_with(options.clone(), "bench-client")?;
        let client = RpcClient::new(Arc::clone(&transport), &options);
        let request = recorded()?;
        // Opens both connections before the clock runs, as the peer's client does.
        client
            .call(&request.context, "cluster_create", request.args.clone())
            .await?;
        let before = cpu(std::process::id())?;
        let began = Instant::now();
        let ends = began + self.limit;
        let mut tasks = Vec::new();
        for _ in 0..callers {
            let (client, request) = (client.clone(), request.clone());
            tasks.push(tokio::spawn(async move {
                let mut latencies = Vec::new();
                for _ in 0..count / callers {
                    let sent = Instant::now();
                    if sent >= ends {
                        break;
                    }
                    client
                        .call(&request.context, "cluster_create", request.args.clone())
                        .await?;
                    latencies.push(sent.elapsed().as_secs_f64() * 1e3);
                }
                anyhow::Ok(latencies)
            }));
        }
        let mut latencies_ms = Vec::new();
        for task in tasks {
            latencies_ms.extend(task.await??);
        }
        let took = began.elapsed();
        let client_cpu = cpu(std::process::id())?.saturating_sub(before);
        transport.close().await;
        Ok(Seen {
            took,
            latencies_ms,
            client_cpu,
        })
    }
}
