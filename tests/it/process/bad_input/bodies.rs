//! Bodies that are no messages: each moves to the dead-letter queue as it came, with the reason beside it.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::Deployment;
use magnum_tests::raw_rpc::{RawRpc, enveloped, request};
use magnum_tests::{Backend, wait};
use serde_json::{Value, json};

use super::{SOON, api_with_template, create, is_unharmed, new_uuid, still_works};

/// Where the conductors put what they cannot handle.
const DEAD_LETTERS: &str = "magnum-conductor.dead";

const JSON: &str = "application/json";

/// A dead letter: its body and its headers.
type Letter = (Vec<u8>, BTreeMap<String, String>);

/// A bad body.
struct Bad {
    what: &'static str,
    content_type: &'static str,
    body: Vec<u8>,
    /// What the reason has to say.
    reason: &'static str,
}

impl Bad {
    fn json(what: &'static str, body: impl Into<Vec<u8>>, reason: &'static str) -> Self {
        Self {
            what,
            content_type: JSON,
            body: body.into(),
            reason,
        }
    }

    /// A message in a good envelope.
    fn message(what: &'static str, message: &Value, reason: &'static str) -> Self {
        Self::json(what, enveloped(message).to_string(), reason)
    }

    /// A create with one part replaced.
    fn create(what: &'static str, pointer: &str, value: Value, reason: &'static str) -> Result<Self> {
        let mut message = create("t", &new_uuid());
        *message
            .pointer_mut(pointer)
            .ok_or_else(|| anyhow::anyhow!("{pointer}"))? = value;
        Ok(Self::message(what, &message, reason))
    }
}

fn bodies() -> Vec<Bad> {
    let good = enveloped(&create("t", &new_uuid())).to_string();
    let mut not_utf_8 = good.clone().into_bytes();
    let middle = not_utf_8.len() / 2;
    not_utf_8[middle] = 0xff;
    let mut inner_cut = create("t", &new_uuid()).to_string();
    inner_cut.truncate(inner_cut.len() / 2);
    let version = |version: &str| json!({"oslo.version": version, "oslo.message": "{}"}).to_string();
    let huge = request("cluster_delete", json!({"uuid": "x".repeat(10 << 20)}));
    vec![
        Bad::json("nothing", "", "the body is empty"),
        Bad::json(
            "a cut body",
            &good.as_bytes()[..good.len() / 2],
            "not a message in Json: EOF",
        ),
        Bad::json(
            "bytes that are not UTF-8",
            not_utf_8,
            "not a message in Json: invalid",
        ),
        Bad::json("a list", "[1, 2]", "not a message in Json"),
        Bad::json("deep nesting", "[".repeat(100_000), "not a message in Json"),
        Bad::json(
            "an old envelope",
            version("1.0"),
            "envelope version `1.0` is not supported",
        ),
        Bad::json(
            "a newer envelope",
            version("2.1"),
            "envelope version `2.1` is not supported",
        ),
        Bad::json(
            "an empty envelope",
            json!({"oslo.version": "2.0"}).to_string(),
            "`oslo.message` is missing",
        ),
        Bad::json(
            "a cut message in a good envelope",
            json!({"oslo.version": "2.0", "oslo.message": inner_cut}).to_string(),
            "inside the envelope is not valid: EOF",
        ),
        Bad {
            what: "another format",
            content_type: "text/yaml",
            body: b"method: ping_conductor".to_vec(),
            reason: "content type `text/yaml` is not supported",
        },
        Bad {
            what: "MessagePack that is none",
            content_type: "application/x-msgpack",
            body: vec![0xc1, 0xff],
            reason: "not a message in MessagePack",
        },
        Bad::message("10 MiB", &huge, "more than the limit of 8388608"),
    ]
}

fn messages() -> Result<Vec<Bad>> {
    let mut extra = create("t", &new_uuid());
    extra["args"]["force"] = json!(true);
    let mut incomplete = create("t", &new_uuid());
    incomplete["args"]
        .as_object_mut()
        .map(|args| args.remove("node_count"));
    let data = "/args/cluster/magnum_object.data";
    Ok(vec![
        Bad::message("no method", &json!({"args": {}}), "`method` is missing"),
        Bad::message(
            "a method that is a number",
            &json!({"method": 5}),
            "`method` must be a string",
        ),
        Bad::message(
            "arguments in a list",
            &json!({"method": "ping_conductor", "args": [1]}),
            "`args` of ping_conductor must be an object",
        ),
        Bad::message(
            "another RPC version",
            &json!({"method": "ping_conductor", "args": {}, "version": "2.0"}),
            "does not support RPC version 2.0",
        ),
        Bad::message(
            "an unknown method",
            &request("cluster_paint", json!({})),
            "does not support RPC method cluster_paint",
        ),
        Bad::message("a missing argument", &incomplete, "node_count"),
        Bad::message("an unexpected argument", &extra, "force"),
        Bad::message("no uuid to delete", &request("cluster_delete", json!({})), "uuid"),
        Bad::create("a count in words", "/args/node_count", json!("two"), "node_count")?,
        Bad::create("no object", "/args/cluster", json!(5), "versioned object")?,
        Bad::create(
            "an unknown object",
            "/args/cluster/magnum_object.name",
            json!("Teapot"),
            "Unsupported object type Teapot",
        )?,
        Bad::create(
            "an object of another project",
            "/args/cluster/magnum_object.namespace",
            json!("nova"),
            "nova.Cluster",
        )?,
        Bad::create(
            "an object from the future",
            "/args/cluster/magnum_object.version",
            json!("2.0"),
            "Version 2.0 of Cluster is not supported",
        )?,
        Bad::create(
            "an unknown status",
            &format!("{data}/status"),
            json!("PAINTED"),
            "PAINTED",
        )?,
        Bad::create(
            "labels that are text",
            &format!("{data}/labels"),
            json!("a=b"),
            "labels",
        )?,
        Bad::create("null for the uuid", &format!("{data}/uuid"), Value::Null, "uuid")?,
        Bad::message(
            "an unknown health status",
            &request(
                "cluster_update",
                json!({
                    "cluster": create("t", &new_uuid())["args"]["cluster"], "node_count": 1,
                    "health_status": "SPLENDID", "health_status_reason": {},
                }),
            ),
            "SPLENDID",
        ),
    ])
}

/// Takes all dead letters, until there are as many as were sent.
async fn dead_letters(rpc: &RawRpc, count: usize) -> Result<Vec<Letter>> {
    let mut taken = Vec::new();
    wait::until("every bad body to be set aside", SOON, async || {
        // The queue is made with the first dead letter; asking for it before closes the channel.
        while let Some(letter) = rpc.take(DEAD_LETTERS).await? {
            taken.push(letter);
        }
        ensure!(taken.len() >= count, "{} of {count}", taken.len());
        Ok(())
    })
    .await?;
    Ok(taken)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undecodable_message_is_dead_lettered_with_its_reason_and_the_next_is_handled() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let mut conductor = deployment.conductor("c1").await?;
    let (_api, template) = api_with_template(&deployment).await?;
    let mut rpc = RawRpc::connect(&deployment.vhost).await?;
    let mut bad = bodies();
    bad.extend(messages()?);
    for one in &bad {
        rpc.send(&one.body, one.content_type).await?;
    }
    still_works(&deployment, &mut rpc, &template).await?;

    wait::until("the dead-letter queue", SOON, async || {
        deployment.vhost.management().queue(DEAD_LETTERS).await
    })
    .await?;
    let letters = dead_letters(&rpc, bad.len()).await?;
    ensure!(letters.len() == bad.len(), "{} of {}", letters.len(), bad.len());
    for one in &bad {
        let mut found = letters.iter().filter(|(body, _)| *body == one.body);
        let (Some((_, headers)), None) = (found.next(), found.next()) else {
            anyhow::bail!("{}: not there, or not once", one.what);
        };
        let reason = headers
            .get("x-reason")
            .context("a dead letter without a reason")?;
        ensure!(
            reason.contains(one.reason),
            "{}: {reason:?} does not say {:?}",
            one.what,
            one.reason
        );
        ensure!(headers["x-queue"] == "magnum-conductor", "{headers:?}");
    }
    let operations = deployment.settled(SOON).await?;
    ensure!(
        operations.len() == 1,
        "only the good one is recorded: {operations:?}"
    );
    is_unharmed(&mut conductor)
}
