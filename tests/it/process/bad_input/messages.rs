//! Messages that can be read and cannot be carried out: a caller is told with the exception that a Python
//! conductor raises, a cast leaves its reason in the journal, and a message that comes twice counts once.

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::raw_rpc::{RawRpc, object, request};
use magnum_tests::wait;
use serde_json::{Value, json};

use super::{SOON, api_with_template, create, is_unharmed, new_uuid, operations_of, still_works};

fn with(mut message: Value, pointer: &str, value: Value) -> Value {
    if let Some(part) = message.pointer_mut(pointer) {
        *part = value;
    }
    message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_call_gets_its_error_and_bad_cast_is_journalled_with_its_reason() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let mut conductor = deployment.conductor("c1").await?;
    let (_api, template) = api_with_template(&deployment).await?;
    let mut rpc = RawRpc::connect(&deployment.vhost).await?;
    let good = || create(&template, &new_uuid());
    let data = "/args/cluster/magnum_object.data";

    for (message, class, text) in [
        (
            request("cluster_paint", json!({})),
            "NoSuchMethod",
            "cluster_paint",
        ),
        (request("_private", json!({})), "NoSuchMethod", "_private"),
        (
            json!({"method": 5, "args": {}}),
            "TypeError",
            "`method` must be a string",
        ),
        (
            json!({"method": "ping_conductor", "args": [1]}),
            "AttributeError",
            "`args`",
        ),
        (
            json!({"method": "ping_conductor", "args": {}, "version": "1.9"}),
            "UnsupportedVersion",
            "1.9",
        ),
        (
            request("ping_conductor", json!({"loud": true})),
            "TypeError",
            "'loud'",
        ),
        (
            request("cluster_delete", json!({"uuid": 7})),
            "TypeError",
            "'uuid'",
        ),
        (
            with(good(), "/args/create_timeout", json!([])),
            "TypeError",
            "'create_timeout'",
        ),
        (
            with(good(), "/args/cluster/magnum_object.name", json!("Teapot")),
            "UnsupportedObjectError",
            "Teapot",
        ),
        (
            with(good(), "/args/cluster/magnum_object.version", json!("9.9")),
            "IncompatibleObjectVersion",
            "9.9",
        ),
        (
            with(good(), &format!("{data}/status"), json!("PAINTED")),
            "ValueError",
            "PAINTED",
        ),
        (
            with(good(), &format!("{data}/uuid"), json!("not-a-uuid")),
            "InvalidUUID",
            "not-a-uuid",
        ),
        (
            with(good(), &format!("{data}/cluster_template_id"), json!(new_uuid())),
            "ClusterTemplateNotFound",
            "could not be found",
        ),
        (
            with(
                good(),
                &format!("{data}/labels"),
                json!({"min_node_count": "few"}),
            ),
            "InvalidParameterValue",
            "min_node_count",
        ),
        (
            with(good(), &format!("{data}/name"), json!("n".repeat(300))),
            "InvalidParameterValue",
            "name of the cluster is longer than 255",
        ),
        (
            with(good(), "/args/node_count", json!(-1)),
            "InvalidParameterValue",
            "default-worker",
        ),
        (
            request("cluster_delete", json!({"uuid": new_uuid()})),
            "ClusterNotFound",
            "could not be found",
        ),
    ] {
        let reply = rpc.call(message.clone(), SOON).await?;
        let failure = &reply["failure"];
        ensure!(failure["class"] == class, "{message}: {failure}");
        let told = failure["message"].as_str().unwrap_or_default();
        ensure!(told.contains(text), "{message}: {told:?} does not say {text:?}");
    }

    // A cast of the same kind has nobody to tell; the operator finds it.
    let lost = new_uuid();
    rpc.cast(&create(&new_uuid(), &lost)).await?;
    let refused = wait::until("the refusal in the journal", SOON, async || {
        let found = operations_of(&deployment, &lost).await?;
        found
            .into_iter()
            .next()
            .ok_or_else(|| anyhow::anyhow!("no operation"))
    })
    .await?;
    ensure!(refused["state"] == "refused", "{refused}");
    ensure!(
        refused["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("could not be found")),
        "{refused}"
    );
    ensure!(deployment.record.lines()?.is_empty(), "no driver was asked");
    still_works(&deployment, &mut rpc, &template).await?;
    is_unharmed(&mut conductor)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_comes_twice_is_handled_once() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let (mut one, mut other) = tokio::try_join!(deployment.conductor("c1"), deployment.conductor("c2"))?;
    let (_api, template) = api_with_template(&deployment).await?;
    let mut rpc = RawRpc::connect(&deployment.vhost).await?;

    // Spread over both conductors, and a last copy when it is done.
    let uuid = new_uuid();
    let message = create(&template, &uuid);
    for _ in 0..10 {
        rpc.cast(&message).await?;
    }
    wait::until("the cluster", SOON, async || {
        ensure!(deployment.record.is_built(&uuid), "not built");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    rpc.cast(&message).await?;
    still_works(&deployment, &mut rpc, &template).await?;
    let operations = operations_of(&deployment, &uuid).await?;
    ensure!(operations.len() == 1, "{operations:?}");
    ensure!(deployment.record.begun("create", &uuid)?.len() == 1);

    // Another message for a cluster that exists is not the same message: it is told.
    let taken = rpc.call(create(&template, &uuid), SOON).await?;
    ensure!(taken["failure"]["class"] == "ClusterAlreadyExists", "{taken}");

    // A call that is delivered again is answered as before, not carried out again.
    let mut update = request(
        "cluster_update",
        json!({
            "cluster": object("Cluster", "1.24", json!({"uuid": uuid})), "node_count": 4,
            "health_status": null, "health_status_reason": {},
        }),
    );
    update["_msg_id"] = json!(new_uuid());
    let first = rpc.call(update.clone(), SOON).await?;
    ensure!(first["failure"].is_null(), "{first}");
    let second = rpc.call(update, SOON).await?;
    ensure!(first["result"] == second["result"], "{first} {second}");
    ensure!(deployment.record.begun("update", &uuid)?.len() == 1);
    deployment.settled(SOON).await?;
    is_unharmed(&mut one)?;
    is_unharmed(&mut other)
}
