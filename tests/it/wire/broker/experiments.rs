//! What was tried on a real oslo.messaging and how it behaved: every recorded experiment is a case here. Ours does
//! the same on a real broker, or does what the case says and docs/differences.md has the row that it names.

mod caller;
mod reconnect;
mod server;

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use lapin::options::ConfirmSelectOptions;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use magnum_tests::rabbitmq::Vhost;
use serde_json::Value;

use crate::wire::load;

const DIFFERENCES: &str = include_str!("../../../../docs/differences.md");

/// The experiments of a recording, by name.
fn experiments(recording: &str) -> Vec<(String, Value)> {
    let recording = load("rpc", recording);
    let all = recording["experiments"].as_array().unwrap().iter();
    all.map(|one| (one["name"].as_str().unwrap().to_owned(), one.clone()))
        .collect()
}

/// The page of differences has this row.
fn assert_documented(row: &str) {
    let begin = format!("| {row} |");
    assert!(
        DIFFERENCES.lines().any(|line| line.starts_with(&begin)),
        "docs/differences.md has no row {row:?}"
    );
}

/// Each of these names is an experiment of the recording.
fn assert_recorded(named: &[&str], all: &[(String, Value)]) {
    let all: BTreeSet<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    for name in named {
        assert!(all.contains(name), "{name:?} is not recorded");
    }
}

/// A bare AMQP client.
async fn raw_channel(vhost: &Vhost) -> Result<(Connection, Channel)> {
    let connection = Connection::connect(&vhost.amqp_url(), ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    Ok((connection, channel))
}

/// The properties of a recorded frame, absent ones left out.
fn properties(frame: &Value) -> BasicProperties {
    let mut properties = BasicProperties::default();
    let recorded = &frame["properties"];
    if let Some(text) = recorded["content_type"].as_str() {
        properties = properties.with_content_type(text.into());
    }
    if let Some(text) = recorded["content_encoding"].as_str() {
        properties = properties.with_content_encoding(text.into());
    }
    if let Some(mode) = recorded["delivery_mode"].as_u64() {
        properties = properties.with_delivery_mode(u8::try_from(mode).unwrap());
    }
    if let Some(priority) = recorded["priority"].as_u64() {
        properties = properties.with_priority(u8::try_from(priority).unwrap());
    }
    let mut headers = FieldTable::default();
    for (name, value) in frame["headers"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap();
        headers.insert(name.as_str().into(), AMQPValue::LongString(value.into()));
    }
    properties.with_headers(headers)
}

/// Publishes to a queue and waits for the broker's confirmation.
#[expect(clippy::disallowed_methods, reason = "the confirmation is awaited right here")]
async fn publish(channel: &Channel, queue: &str, body: &[u8], properties: BasicProperties) -> Result<()> {
    let confirmation = channel
        .basic_publish("".into(), queue.into(), Default::default(), body, properties)
        .await?
        .await?;
    confirmation.is_ack().then_some(()).context("not confirmed")
}
