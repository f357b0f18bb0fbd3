//! Casts: a backlog for rate and cost, then a steady pace for latency; one contestant after the other.
//!
//! The backlog is there before the server starts, so the publisher's speed does not matter. Handled means: with
//! the handler, decoded (not so for the bare consumer), and for the journalled ones: committed and visible to
//! others.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::journal::Journal;
use super::load::Load;
use super::measure::{Contestant, Server, Watcher, own, peer};
use super::report::{Goal, Report, Row, say};
use super::usage::{Meter, percentile, rss_mib};
use super::{Environment, seconds};
use crate::rabbitmq::Vhost;

/// What `bench casts` measures.
#[derive(Debug, clap::Args)]
pub struct Casts {
    /// Backlog for ours and for the bare consumer
    #[arg(long, default_value_t = 40_000)]
    pub messages: u64,
    /// Backlog for the Python peer, which needs far longer for each
    #[arg(long, default_value_t = 5_000)]
    pub peer_messages: u64,
    /// Backlog for the conductor that records each
    #[arg(long, default_value_t = 20_000)]
    pub journalled_messages: u64,
    /// Casts at a steady pace, for the latency
    #[arg(long, default_value_t = 1_000)]
    pub probes: u64,
    /// The pace: casts per second
    #[arg(long, default_value_t = 200)]
    pub pace: u32,
    /// Longest time in seconds for one contestant's backlog; more is an error
    #[arg(long, default_value = "300", value_parser = seconds)]
    pub limit: Duration,
}

const COLUMNS: [&str; 9] = [
    "casts",
    "handled/s",
    "cpu us/cast",
    "broker us/cast",
    "database us/cast",
    "p50 ms",
    "p99 ms",
    "RSS MiB",
    "start s",
];

/// What one contestant did.
struct Measured {
    handled: u64,
    rate: f64,
    cpu_us: f64,
    broker_us: f64,
    database_us: Option<f64>,
    latencies_ms: Vec<f64>,
    rss_mib: f64,
    /// Until the broker showed the consumer, which it does late while it is busy with a backlog.
    start_s: f64,
}

impl Casts {
    /// Measures all contestants.
    pub async fn run(&self, environment: &Environment<'_>) -> Result<Report> {
        let setup = json!({
            "messages": self.messages, "peer_messages": self.peer_messages,
            "journalled_messages": self.journalled_messages, "probes": self.probes, "pace": self.pace,
        });
        let mut report = Report::new("casts", &COLUMNS, setup);
        let bare = self.measure(environment, Contestant::Bare, &mut report).await?;
        let ours = self.measure(environment, Contestant::Ours, &mut report).await?;
        let peer = self.measure(environment, Contestant::Peer, &mut report).await?;
        let journalled = self
            .measure(environment, Contestant::Journalled, &mut report)
            .await?;
        report.goal(Goal::at_most(
            "cpu per cast, share of the peer's",
            ours.cpu_us / peer.cpu_us,
            0.1,
        ));
        report.goal(Goal::at_most(
            "RSS, share of the peer's",
            ours.rss_mib / peer.rss_mib,
            0.25,
        ));
        if let (Some(ours), Some(peer)) = (
            percentile(&ours.latencies_ms, 0.5),
            percentile(&peer.latencies_ms, 0.5),
        ) {
            report.goal(Goal::at_most("p50, share of the peer's", ours / peer, 0.5));
        }
        report.goal(Goal::at_least(
            "rate of journalled casts, share of the bare consumer's",
            journalled.rate / bare.rate,
            0.25,
        ));
        Ok(report)
    }

    async fn measure(
        &self,
        environment: &Environment<'_>,
        contestant: Contestant,
        report: &mut Report,
    ) -> Result<Measured> {
        let vhost = environment.broker.vhost().await?;
        let measured = match contestant {
            Contestant::Journalled => self.journalled(environment, &vhost).await?,
            other => self.self_reporting(environment, other, &vhost).await?,
        };
        report.row(Row {
            name: contestant.name(),
            figures: vec![
                Some(measured.handled as f64),
                Some(measured.rate),
                Some(measured.cpu_us),
                Some(measured.broker_us),
                measured.database_us,
                percentile(&measured.latencies_ms, 0.5),
                percentile(&measured.latencies_ms, 0.99),
                Some(measured.rss_mib),
                Some(measured.start_s),
            ],
        });
        Ok(measured)
    }

    /// Measures a contestant that reports by itself how many casts it has handled, and their latencies.
    async fn self_reporting(
        &self,
        environment: &Environment<'_>,
        contestant: Contestant,
        vhost: &Vhost,
    ) -> Result<Measured> {
        let count = match contestant {
            Contestant::Peer => self.peer_messages,
            _ => self.messages,
        };
        let load = self.filled(contestant, vhost, count).await?;
        let (url, total, probes) = (vhost.transport_url(), count.to_string(), self.probes.to_string());
        let command = match contestant {
            Contestant::Peer => peer(&["server", &url, &total, &probes])?,
            Contestant::Bare => own(environment, "bare", vhost, count, self.probes),
            _ => own(environment, "ours", vhost, count, self.probes),
        };
        let broker = environment.broker.pid().await?;
        let broker_only = Meter::start([broker])?;
        let mut server = Server::start(command, vhost).await?;
        let meter = Meter::start([server.pid])?;
        let done = server.next_line(self.limit).await?;
        ensure!(done == "done", "the contestant said `{done}`");
        let took = server.began.elapsed();
        let (cpu, broker) = (meter.per_message(count)?, broker_only.per_message(count)?);
        let mut latencies_ms: Vec<f64> = Vec::new();
        if self.probes > 0 {
            let sent = load.at_pace(self.probes, self.pace).await?;
            latencies_ms = serde_json::from_str(&server.next_line(self.limit).await?)?;
            ensure!(
                latencies_ms.len() == sent.len(),
                "{} latencies",
                latencies_ms.len()
            );
        }
        let measured = Measured {
            handled: count + self.probes,
            rate: count as f64 / took.as_secs_f64(),
            cpu_us: cpu[0],
            broker_us: broker[0],
            database_us: None,
            latencies_ms,
            rss_mib: rss_mib(server.pid)?,
            start_s: server.start.as_secs_f64(),
        };
        server.stop().await?;
        load.close().await;
        Watcher::new(vhost).await?.assert_empty().await?;
        Ok(measured)
    }

    /// The conductor: what it has recorded is seen in the database.
    async fn journalled(&self, environment: &Environment<'_>, vhost: &Vhost) -> Result<Measured> {
        let count = self.journalled_messages;
        let journal = Journal::prepare(environment, vhost).await?;
        let load = self.filled(Contestant::Journalled, vhost, count).await?;
        let servers = [environment.broker.pid().await?, environment.database.pid().await?];
        let servers = Meter::start(servers)?;
        let server = Server::start(journal.conductor(environment), vhost).await?;
        let meter = Meter::start([server.pid])?;
        let moments = journal.watch(0, count, self.limit).await?;
        let took = moments.last().map_or(self.limit, |last| *last - server.began);
        let (cpu, servers) = (meter.per_message(count)?, servers.per_message(count)?);
        let (sent, seen) = tokio::join!(
            load.at_pace(self.probes, self.pace),
            journal.watch(count, count + self.probes, self.limit)
        );
        let latencies_ms = sent?
            .into_iter()
            .zip(seen?)
            .map(|(sent, seen)| (seen - sent).as_secs_f64() * 1e3)
            .collect();
        let measured = Measured {
            handled: count + self.probes,
            rate: count as f64 / took.as_secs_f64(),
            cpu_us: cpu[0],
            broker_us: servers[0],
            database_us: Some(servers[1]),
            latencies_ms,
            rss_mib: rss_mib(server.pid)?,
            start_s: server.start.as_secs_f64(),
        };
        server.stop().await?;
        load.close().await;
        journal.check(count + self.probes).await?;
        Watcher::new(vhost).await?.assert_empty().await?;
        Ok(measured)
    }

    async fn filled(&self, contestant: Contestant, vhost: &Vhost, count: u64) -> Result<Load> {
        say(&format!(
            "casts, {}: {count} at once, then {} at {} per second",
            contestant.name(),
            self.probes,
            self.pace
        ));
        let load = Load::open(vhost).await?;
        load.backlog(count).await?;
        Ok(load)
    }
}
