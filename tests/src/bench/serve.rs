//! The contestants' servers on our side: the real [`RpcServer`], and a consumer that only acknowledges.

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use magnum_rpc::{RpcOptions, connect_with};
use magnum_rpc_server::{Incoming, RpcServer, reply};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::load::{SENT, now_us};

/// Handled together at most, as the conductor does in one transaction.
const BATCH: usize = 64;

/// Prefetch of the bare consumer, equal to our server's own.
const PREFETCH: u16 = 256;

/// A server's command line.
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// Which.
    contestant: Kind,
    /// Where the broker is.
    url: String,
    /// Casts of the backlog: after them, `done` is printed.
    total: u64,
    /// Casts after those: after them, their latencies are printed.
    probes: u64,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Kind {
    Ours,
    Bare,
}

impl Serve {
    pub(super) async fn run(self) -> Result<()> {
        let tally = Tally {
            handled: 0,
            total: self.total,
            done: false,
            probes: self.probes,
            latencies_ms: Vec::new(),
        };
        match self.contestant {
            // On a worker of the runtime, as the conductor's consumer: the main thread would be one hop more.
            Kind::Ours => tokio::spawn(ours(self.url, tally)).await?,
            Kind::Bare => tokio::spawn(bare(self.url, tally)).await?,
        }
    }
}

async fn ours(url: String, mut tally: Tally) -> Result<()> {
    let options = RpcOptions::for_url(&url)?;
    let transport = connect_with(options.clone(), "bench")?;
    let mut server = RpcServer::start(transport.clone(), &options, "bench").await?;
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        let first = tokio::select! {
            first = server.recv() => first.context("the transport is closed")?,
            // In order, as the conductor ends: what was acknowledged is told to the broker.
            _ = terminate.recv() => break,
        };
        let mut batch = vec![first];
        while batch.len() < BATCH
            && let Some(next) = server.try_recv()
        {
            batch.push(next);
        }
        let mut done = Vec::with_capacity(batch.len());
        for Incoming { request, delivery } in batch {
            match request.reply {
                None => {
                    let sent = request.context.get(SENT).and_then(|sent| sent.as_i64());
                    tally.handled(sent);
                    done.push(delivery);
                }
                Some(address) => {
                    let transport = transport.clone();
                    let result = request.args.get("cluster").cloned().unwrap_or(Value::Null);
                    tokio::spawn(async move {
                        // The caller gave up; it counts as failed there.
                        let _gone = reply(transport.as_ref(), &address, Ok(result)).await;
                        delivery.ack().await;
                    });
                }
            }
        }
        for delivery in done {
            delivery.ack().await;
        }
        tally.report();
    }
    server.stop().await;
    Ok(())
}

async fn bare(url: String, mut tally: Tally) -> Result<()> {
    let url = url.replacen("rabbit://", "amqp://", 1);
    let connection = lapin::Connection::connect(&url, lapin::ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.basic_qos(PREFETCH, BasicQosOptions::default()).await?;
    let queue = QueueDeclareOptions::default();
    channel
        .queue_declare("magnum-conductor".into(), queue, FieldTable::default())
        .await?;
    let options = BasicConsumeOptions::default();
    let mut consumer = channel
        .basic_consume(
            "magnum-conductor".into(),
            "bench".into(),
            options,
            FieldTable::default(),
        )
        .await?;
    while let Some(delivery) = consumer.next().await {
        let delivery = delivery?;
        tally.handled(sent_header(&delivery));
        delivery.acker.ack(BasicAckOptions::default()).await?;
        tally.report();
    }
    Ok(())
}

fn sent_header(delivery: &lapin::message::Delivery) -> Option<i64> {
    let headers = delivery.properties.headers().as_ref()?;
    match headers.inner().get(SENT)? {
        AMQPValue::LongString(text) => text.to_string().parse().ok(),
        _ => None,
    }
}

/// Counts, and prints for the measuring process: one line when the backlog is handled, one when the probes are.
struct Tally {
    handled: u64,
    total: u64,
    done: bool,
    probes: u64,
    latencies_ms: Vec<f64>,
}

impl Tally {
    /// A cast is with its handler.
    fn handled(&mut self, sent_us: Option<i64>) {
        self.handled += 1;
        if self.handled > self.total
            && let Some(sent) = sent_us
        {
            self.latencies_ms.push((now_us() - sent) as f64 / 1e3);
        }
    }

    /// What was handled is acknowledged, too.
    fn report(&mut self) {
        if !self.done && self.handled >= self.total {
            self.done = true;
            self.say("done");
        }
        if self.probes > 0 && self.handled >= self.total.saturating_add(self.probes) {
            self.probes = 0;
            self.say(&json!(self.latencies_ms).to_string());
        }
    }

    #[expect(
        clippy::print_stdout,
        reason = "the line is the interface to the measuring process"
    )]
    fn say(&self, line: &str) {
        println!("{line}");
    }
}
