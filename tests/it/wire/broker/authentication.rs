//! Signed messages on a real RabbitMQ: what reaches a server, what a caller takes for a reply, and how keys change.

use anyhow::{Result, ensure};
use magnum_config::MessageAuthentication::{self, Off, Require, Sign};
use magnum_rpc::{Authentication, OutgoingMessage, SIGNATURE, connect_with, direct};
use magnum_rpc_server::reply;
use magnum_tests::rabbitmq::{self, Vhost};
use magnum_tests::{raw_rpc, wait};
use serde_json::json;

use super::{Bed, SOON, args, next, nobody};

/// A side with these keys, each a byte repeated.
fn bed(vhost: &Vhost, mode: MessageAuthentication, keys: &[u8]) -> Result<Bed> {
    let mut bed = Bed::new(&vhost.transport_url(), "rabbit_quorum_queue=true")?;
    let keys: Vec<[u8; 32]> = keys.iter().map(|byte| [*byte; 32]).collect();
    bed.options.authentication = Authentication::with_keys(mode, &keys, None);
    bed.transport = connect_with(bed.options.clone(), "test")?;
    Ok(bed)
}

/// The reasons of all dead letters, when there are so many.
async fn reasons(vhost: &Vhost, count: usize) -> Result<Vec<String>> {
    wait::until("dead letters", SOON, async || {
        let found = vhost.management().peek("magnum-conductor.dead", 100).await?;
        let reasons: Vec<String> = found
            .iter()
            .filter_map(|one| {
                one["properties"]["headers"]["x-reason"]
                    .as_str()
                    .map(str::to_owned)
            })
            .collect();
        ensure!(reasons.len() == count, "{reasons:?}");
        Ok(reasons)
    })
    .await
}

/// A message as a side with these keys would send it.
fn message(by: &Bed, to: &str) -> OutgoingMessage {
    let request = raw_rpc::enveloped(&raw_rpc::request("m", json!({"n": 0})));
    let mut message = OutgoingMessage::new(direct(to), Default::default(), request.to_string());
    by.options.authentication.sign(&mut message);
    message
}

#[tokio::test]
async fn only_what_a_holder_of_the_key_sent_to_this_queue_reaches_a_server() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let ours = bed(&vhost, Require, &[1])?;
    let mut server = ours.server("one").await?;
    let stranger = bed(&vhost, Off, &[])?;
    let with_another_key = bed(&vhost, Sign, &[9])?;

    stranger.client().cast(&nobody(), "m", args(0)).await?;
    with_another_key.client().cast(&nobody(), "m", args(0)).await?;
    // What somebody can make of a message of ours that he has read.
    let mut changed = message(&ours, "magnum-conductor");
    let mut body = changed.body.to_vec();
    *body.last_mut().expect("a body") = b' ';
    changed.body = body.into();
    let mut moved = message(&ours, "reply_1");
    moved.route = direct("magnum-conductor");
    let mut relabelled = message(&ours, "magnum-conductor");
    relabelled.content_type = Some("application/msgpack".to_owned());
    for message in [changed, moved, relabelled] {
        stranger.transport.publish(message).await?;
    }
    // Ours come through, by each way in; nothing came before them.
    ours.client().cast(&nobody(), "m", args(7)).await?;
    let incoming = next(&mut server).await;
    ensure!(incoming.request.args == args(7), "{:?}", incoming.request.args);
    incoming.delivery.ack().await;
    let found = reasons(&vhost, 5).await?;
    for (reason, count) in [
        ("the message is not signed", 1),
        ("which is not in [conductor] message_key_file", 1),
        ("signature is wrong", 3),
    ] {
        let those = found.iter().filter(|found| found.contains(reason)).count();
        ensure!(those == count, "{reason}: {found:?}");
    }

    ours.client().fanout_cast(&nobody(), "m", args(8)).await?;
    let incoming = next(&mut server).await;
    ensure!(incoming.request.args == args(8));
    incoming.delivery.ack().await;
    Ok(())
}

#[tokio::test]
async fn a_caller_takes_no_reply_from_a_stranger() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let ours = bed(&vhost, Require, &[1])?;
    let mut server = ours.server("one").await?;
    let stranger = bed(&vhost, Off, &[])?;
    let client = ours.client();
    let calling = tokio::spawn(async move { client.call(&nobody(), "m", args(1)).await });
    let incoming = next(&mut server).await;
    let address = incoming.request.reply.clone().expect("a call");
    reply(stranger.transport.as_ref(), &address, Ok(json!("forged"))).await?;
    reply(ours.transport.as_ref(), &address, Ok(json!("ours"))).await?;
    incoming.delivery.ack().await;
    ensure!(calling.await?? == json!("ours"));
    Ok(())
}

#[tokio::test]
async fn keys_change_without_a_refused_message_while_both_are_on_all_hosts() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let (old, both, turned, new) = (
        bed(&vhost, Require, &[1])?,
        bed(&vhost, Require, &[1, 2])?,
        bed(&vhost, Require, &[2, 1])?,
        bed(&vhost, Require, &[2])?,
    );
    let mut server = both.server("one").await?;
    for (n, sender) in [(1, &old), (2, &both), (3, &turned), (4, &new)] {
        sender.client().cast(&nobody(), "m", args(n)).await?;
        let incoming = next(&mut server).await;
        ensure!(incoming.request.args == args(n));
        incoming.delivery.ack().await;
    }
    server.stop().await;
    let mut server = new.server("two").await?;
    old.client().cast(&nobody(), "m", args(5)).await?;
    new.client().cast(&nobody(), "m", args(6)).await?;
    let incoming = next(&mut server).await;
    ensure!(incoming.request.args == args(6), "the old key is removed");
    incoming.delivery.ack().await;
    let found = reasons(&vhost, 1).await?;
    let id = old.options.authentication.key_ids()[0].to_owned();
    ensure!(found[0].contains(&format!("signed with key {id}")), "{found:?}");
    Ok(())
}

#[tokio::test]
async fn while_signing_is_rolled_out_messages_without_a_signature_are_let_in() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let (signing, off) = (bed(&vhost, Sign, &[1])?, bed(&vhost, Off, &[])?);
    for (from, to) in [(&off, &signing), (&signing, &off), (&signing, &signing)] {
        let mut server = to.server("one").await?;
        let client = from.client();
        let calling = tokio::spawn(async move { client.call(&nobody(), "m", args(1)).await });
        let incoming = next(&mut server).await;
        let address = incoming.request.reply.clone().expect("a call");
        let is_signed = incoming.delivery.message().signature.is_some();
        let signs = !from.options.authentication.key_ids().is_empty();
        ensure!(is_signed == signs);
        reply(to.transport.as_ref(), &address, Ok(json!(1))).await?;
        incoming.delivery.ack().await;
        ensure!(calling.await?? == json!(1));
        server.stop().await;
    }
    ensure!(
        message(&off, "q")
            .headers
            .iter()
            .all(|(name, _)| name != SIGNATURE)
    );
    Ok(())
}
