//! Each way into the dead-letter queue, with its reason; and what an operator sees of it, puts back and throws away.

use std::io::Write as _;

use anyhow::{Context as _, Result, ensure};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use lapin::BasicProperties;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::process::Launch;
use magnum_tests::raw_rpc::{enveloped, request};
use magnum_tests::wait;
use serde_json::{Value, json};

use super::SOON;

const TOKEN: &str = "gAAAA-token-of-the-user";

struct Bad {
    body: Vec<u8>,
    content_type: Option<&'static str>,
    compression: Option<&'static str>,
    /// What the reason has in it.
    reason: &'static str,
}

fn bad(body: impl Into<Vec<u8>>, reason: &'static str) -> Bad {
    Bad {
        body: body.into(),
        content_type: Some("application/json"),
        compression: None,
        reason,
    }
}

fn zlib(body: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body)?;
    Ok(encoder.finish()?)
}

/// A message with a token in it, which nobody may print.
fn with_token(method: &str) -> Value {
    let mut message = request(method, json!({"uuid": "u"}));
    message["_context_auth_token"] = json!(TOKEN);
    message
}

fn every_way_in() -> Result<Vec<Bad>> {
    let plain = enveloped(&with_token("cluster_delete")).to_string();
    let other = json!({"oslo.version": "3.0", "oslo.message": with_token("cluster_delete").to_string()});
    Ok(vec![
        bad("", "the body is empty"),
        Bad {
            content_type: Some("text/plain"),
            ..bad(plain.clone(), "content type `text/plain`")
        },
        bad(vec![b' '; 9 << 20], "the body has 9437184 bytes"),
        Bad {
            compression: Some("application/x-gzip"),
            ..bad(
                zlib(&vec![b' '; 64 << 20])?,
                "decompresses to more than 8388608 bytes",
            )
        },
        Bad {
            compression: Some("application/x-gzip"),
            ..bad(plain.clone(), "does not decompress")
        },
        Bad {
            compression: Some("application/x-lzma"),
            ..bad(plain.clone(), "compression `application/x-lzma` is not supported")
        },
        bad(
            &plain.as_bytes()[..plain.len() / 2],
            "the body is not a message in Json",
        ),
        bad(other.to_string(), "envelope version `3.0`"),
        bad(
            enveloped(&json!([1, 2])).to_string(),
            "the message inside the envelope",
        ),
        Bad {
            content_type: Some("application/x-msgpack"),
            ..bad(vec![0xc1], "the body is not a message in MessagePack")
        },
        bad(
            enveloped(&with_token("cluster_paint")).to_string(),
            "does not support RPC method cluster_paint",
        ),
    ])
}

async fn send(deployment: &Deployment, messages: &[Bad]) -> Result<()> {
    let connection = lapin::Connection::connect(&deployment.vhost.amqp_url(), Default::default()).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    for message in messages {
        let mut properties = BasicProperties::default().with_delivery_mode(2);
        if let Some(text) = message.content_type {
            properties = properties.with_content_type(text.into());
        }
        if let Some(label) = message.compression {
            let mut headers = FieldTable::default();
            headers.insert("compression".into(), AMQPValue::LongString(label.into()));
            properties = properties.with_headers(headers);
        }
        #[expect(clippy::disallowed_methods, reason = "the confirmation is awaited right here")]
        let published = channel
            .basic_publish(
                "".into(),
                "magnum-conductor".into(),
                BasicPublishOptions::default(),
                &message.body,
                properties,
            )
            .await?;
        ensure!(published.await?.is_ack(), "not confirmed");
    }
    connection.close(200, "OK".into()).await?;
    Ok(())
}

/// What `magnum-conductor dead-letters` prints.
async fn letters(deployment: &Deployment, args: &[&str]) -> Result<String> {
    Launch::program("magnum-conductor")?
        .config(&deployment.config_file("dead-letters")?)
        .args([&["dead-letters"], args].concat())
        .output()
        .await
}

async fn listed(deployment: &Deployment) -> Result<Vec<Value>> {
    let text = letters(deployment, &["list", "--json", "--limit", "100"]).await?;
    ensure!(!text.contains(TOKEN), "{text}");
    let list: Value = serde_json::from_str(&text)?;
    list.as_array().cloned().context("a list")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_into_the_dead_letters_has_its_reason_and_the_way_out_is_an_operators() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    ensure!(
        listed(&deployment).await?.is_empty(),
        "nothing was ever set aside"
    );
    let mut conductor = deployment.conductor("c1").await?;
    let messages = every_way_in()?;
    send(&deployment, &messages).await?;
    let found = wait::until("all of them", SOON, async || {
        let found = listed(&deployment).await?;
        ensure!(found.len() == messages.len(), "{found:#?}");
        Ok(found)
    })
    .await?;
    for message in &messages {
        let reason = |one: &&Value| {
            one["reason"]
                .as_str()
                .is_some_and(|text| text.contains(message.reason))
        };
        let one = found.iter().find(reason);
        let one = one.with_context(|| format!("{}: {found:#?}", message.reason))?;
        ensure!(
            one["bytes"] == message.body.len() && one["queue"] == "magnum-conductor",
            "{one}"
        );
        ensure!(
            one["time"].as_str().is_some_and(|time| time.ends_with('Z')),
            "{one}"
        );
        let id = one["id"].as_str().context("an id")?;
        let shown = letters(&deployment, &["show", id]).await?;
        ensure!(!shown.contains(TOKEN), "{shown}");
    }
    ensure!(conductor.ended()?.is_none(), "the conductor is unharmed");
    ensure!(!conductor.log().contains(TOKEN));

    // Listed often, and still all there: a quorum queue counts what is read and left.
    for _ in 0..8 {
        ensure!(listed(&deployment).await?.len() == messages.len());
    }

    let painted = found
        .iter()
        .find(|one| one["method"] == "cluster_paint")
        .context("it is readable")?;
    let id = painted["id"].as_str().context("an id")?;
    let shown = letters(&deployment, &["show", id]).await?;
    let shown: Value = serde_json::from_str(&shown)?;
    ensure!(shown["message"]["args"] == json!({"uuid": "u"}), "{shown:#}");
    ensure!(shown["message"]["_context_auth_token"] == "***", "{shown:#}");

    // Put back, it is tried again, and comes here again: nothing has changed.
    let told = letters(&deployment, &["requeue", id]).await?;
    ensure!(told == "1 put back into `magnum-conductor`\n", "{told}");
    let again = wait::until("it to come back", SOON, async || {
        let found = listed(&deployment).await?;
        let again = found
            .iter()
            .find(|one| one["method"] == "cluster_paint" && one["id"] != id);
        again.cloned().with_context(|| format!("{found:#?}"))
    })
    .await?;
    ensure!(again["message_id"] == painted["message_id"], "{again:#}");

    // Without a conductor it waits in the queue of requests.
    conductor.terminate(SOON).await?;
    let id = again["id"].as_str().context("an id")?;
    letters(&deployment, &["requeue", id]).await?;
    let waiting = deployment.vhost.management().peek("magnum-conductor", 10).await?;
    ensure!(waiting.len() == 1, "{waiting:#?}");
    let headers = waiting[0]["properties"]["headers"].as_object();
    let is_ours = |name: &String| matches!(name.as_str(), "x-reason" | "x-queue" | "x-id" | "x-time");
    ensure!(
        !headers.is_some_and(|headers| headers.keys().any(is_ours)),
        "{waiting:#?}"
    );

    let told = letters(&deployment, &["discard", "--all"]).await?;
    ensure!(told == format!("{} discarded\n", messages.len() - 1), "{told}");
    ensure!(listed(&deployment).await?.is_empty());
    ensure!(
        letters(&deployment, &["discard", id]).await.is_err(),
        "it is gone"
    );
    Ok(())
}
