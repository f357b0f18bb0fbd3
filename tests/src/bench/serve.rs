//! The contestants' servers on our side: the real [`RpcServer`], and a consumer that only acknowledges.

use anyhow::{Result, bail};
use futures::StreamExt as _;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use magnum_common::rpc::{Incoming, RpcOptions, RpcServer, connect_with, reply};
use serde_json::Value;

/// Acknowledged together at most, as the conductor does after a commit.
const BATCH: usize = 64;

/// Prefetch of the bare consumer, equal to our server's own.
const PREFETCH: u16 = 256;

pub(super) async fn run(contestant: &str, url: &str, total: u64) -> Result<()> {
    match contestant {
        "ours" => ours(url, total).await,
        "bare" => bare(url, total).await,
        other => bail!("no contestant `{other}`"),
    }
}

async fn ours(url: &str, total: u64) -> Result<()> {
    let options = RpcOptions::for_url(url)?;
    let transport = connect_with(options.clone(), "bench")?;
    let mut server = RpcServer::start(transport.clone(), &options, "bench").await?;
    let mut handled = 0;
    while let Some(first) = server.recv().await {
        let mut batch = vec![first];
        while batch.len() < BATCH
            && let Some(next) = server.try_recv()
        {
            batch.push(next);
        }
        let count = batch.len();
        let mut acks = Vec::with_capacity(count);
        for Incoming { request, delivery } in batch {
            match request.reply {
                None => acks.push(delivery.ack()),
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
        futures::future::join_all(acks).await;
        handled += u64::try_from(count)?;
        report(handled, total);
    }
    Ok(())
}

async fn bare(url: &str, total: u64) -> Result<()> {
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
    let mut handled = 0;
    while let Some(delivery) = consumer.next().await {
        delivery?.acker.ack(BasicAckOptions::default()).await?;
        handled += 1;
        report(handled, total);
    }
    Ok(())
}

/// One line to whoever measures, when all are handled.
#[expect(
    clippy::print_stdout,
    reason = "the line is the interface to the measuring process"
)]
fn report(handled: u64, total: u64) {
    if handled == total {
        println!("done");
    }
}
