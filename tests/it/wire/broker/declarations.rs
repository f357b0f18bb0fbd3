//! What the broker holds after our declarations, and how what was there before is used.

use anyhow::Result;
use lapin::options::{ExchangeDeclareOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use magnum_tests::rabbitmq::{self, Vhost};
use serde_json::json;

use super::{Bed, args, next, nobody};

#[tokio::test]
async fn quorum_options_give_durable_quorum_queues_and_confirmed_persistent_messages() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let options = "rabbit_quorum_queue=true&rabbit_transient_quorum_queue=true";
    let bed = Bed::new(&vhost.transport_url(), options)?;
    let server = bed.server("one").await?;
    for name in ["magnum-conductor", "magnum-conductor.one"] {
        let queue = vhost.management().queue(name).await?;
        assert_eq!(queue["durable"], true, "{name}");
        assert_eq!(queue["arguments"], json!({"x-queue-type": "quorum"}), "{name}");
    }
    server.stop().await;
    let queues = vhost.management().queues().await?;
    assert_eq!(
        queues.len(),
        2,
        "the fanout queue went with its server: {queues:?}"
    );

    bed.client().cast(&nobody(), "m", args(1)).await?;
    let waiting = vhost.management().peek("magnum-conductor", 1).await?;
    let properties = &waiting[0]["properties"];
    assert_eq!(properties["delivery_mode"], 2);
    assert_eq!(properties["priority"], 0);
    assert_eq!(properties["content_type"], "application/json");
    assert_eq!(properties["content_encoding"], "utf-8");
    assert_eq!(waiting[0]["exchange"], "magnum");
    assert_eq!(waiting[0]["routing_key"], "magnum-conductor");
    Ok(())
}

#[tokio::test]
async fn connections_have_distinct_names() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let bed = Bed::new(&vhost.transport_url(), "")?;
    let _server = bed.server("one").await?;
    bed.client().cast(&nobody(), "m", args(1)).await?;
    // The broker's statistics lag behind.
    let names = async {
        loop {
            let connections = vhost.management().connections().await.unwrap_or_default();
            let mut purposes: Vec<String> = connections
                .iter()
                .filter_map(|connection| connection["client_properties"]["connection_name"].as_str())
                .filter_map(|name| name.split(':').nth(2).map(str::to_owned))
                .collect();
            purposes.sort();
            if purposes.len() == 2 {
                return purposes;
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    assert_eq!(
        tokio::time::timeout(super::SOON, names).await?,
        ["requests", "sender"]
    );
    Ok(())
}

/// Somebody else declared the topic, with other options than ours.
async fn declared_by_another(vhost: &Vhost, durable: bool, arguments: FieldTable) -> Result<()> {
    let properties = lapin::ConnectionProperties::default();
    let connection = lapin::Connection::connect(&vhost.amqp_url(), properties).await?;
    let channel = connection.create_channel().await?;
    let exchange = ExchangeDeclareOptions {
        durable,
        ..Default::default()
    };
    channel
        .exchange_declare(
            "magnum".into(),
            lapin::ExchangeKind::Topic,
            exchange,
            FieldTable::default(),
        )
        .await?;
    let queue = QueueDeclareOptions {
        durable,
        ..Default::default()
    };
    channel
        .queue_declare("magnum-conductor".into(), queue, arguments)
        .await?;
    connection.close(200, "OK".into()).await?;
    Ok(())
}

#[tokio::test]
async fn a_topic_with_other_arguments_is_used_as_it_is() -> Result<()> {
    for (durable, ours) in [
        (false, "rabbit_quorum_queue=true"),
        (true, "amqp_durable_queues=false"),
    ] {
        let vhost = rabbitmq::vhost().await?;
        declared_by_another(&vhost, durable, FieldTable::default()).await?;
        let bed = Bed::new(
            &vhost.transport_url(),
            &format!("{ours}&rabbit_qos_prefetch_count=1"),
        )?;
        let mut server = bed.server("one").await?;
        for n in 0..2 {
            bed.client().cast(&nobody(), "m", args(n)).await?;
        }
        let first = next(&mut server).await;
        assert_eq!(first.request.args, args(0));
        let early = tokio::time::timeout(std::time::Duration::from_millis(300), server.recv()).await;
        assert!(
            early.is_err(),
            "the prefetch holds on the channel that replaced the closed one"
        );
        first.delivery.ack().await;
        next(&mut server).await.delivery.ack().await;
        let queue = vhost.management().queue("magnum-conductor").await?;
        assert_eq!(queue["durable"], durable);
    }
    Ok(())
}

#[tokio::test]
async fn a_queue_with_another_limit_is_used_as_it_is() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(5));
    declared_by_another(&vhost, true, arguments).await?;
    let bed = Bed::new(&vhost.transport_url(), "rabbit_quorum_queue=true")?;
    let mut server = bed.server("one").await?;
    bed.client().cast(&nobody(), "m", args(1)).await?;
    next(&mut server).await.delivery.ack().await;
    Ok(())
}
