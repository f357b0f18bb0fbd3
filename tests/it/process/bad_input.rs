//! Bad input against the real programs: a broker, a database, `magnum-conductor`, and `magnum-api` in front.
//!
//! Of each kind of bad input it is proven that it is told clearly (the field or the reason is named), that it
//! harms only itself, and that nothing is lost: what cannot be handled is in the dead-letter queue with its
//! reason, what can is in the journal, and the next good request is handled by the same process.
//!
//! What a single layer does with bad bytes is proven beside that layer, in more variety.

mod bodies;
mod dead_letters;
mod drivers;
mod full_disk;
mod manifests;
mod messages;
mod requests;
mod values;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::process::Program;
use magnum_tests::raw_rpc::{RawRpc, object, request};
use serde_json::{Value, json};
use uuid::Uuid;

/// Long enough for a loaded machine; nothing waits this long when all is well.
const SOON: Duration = Duration::from_secs(30);

/// A message that creates a cluster, as a good sender writes it.
fn create(template: &str, uuid: &str) -> Value {
    let cluster = object(
        "Cluster",
        "1.24",
        json!({
            "uuid": uuid, "name": "c", "cluster_template_id": template, "project_id": "p", "user_id": "u",
            "keypair": "key", "labels": {}, "create_timeout": 60, "status": "CREATE_IN_PROGRESS",
        }),
    );
    request(
        "cluster_create",
        json!({"cluster": cluster, "master_count": 1, "node_count": 1, "create_timeout": 60}),
    )
}

fn new_uuid() -> String {
    Uuid::new_v4().to_string()
}

/// The conductor that has taken all of it still works: it answers, and it carries out a create.
async fn still_works(deployment: &Deployment, rpc: &mut RawRpc, template: &str) -> Result<()> {
    let pong = rpc.call(request("ping_conductor", json!({})), SOON).await?;
    ensure!(pong["result"] == true, "{pong}");
    let uuid = new_uuid();
    let built = rpc.call(create(template, &uuid), SOON).await?;
    ensure!(built["failure"].is_null(), "{built}");
    ensure!(deployment.record.is_built(&uuid));
    Ok(())
}

/// The operations of one cluster.
async fn operations_of(deployment: &Deployment, cluster: &str) -> Result<Vec<Value>> {
    let mut operations = deployment.operations().await?;
    operations.retain(|operation| operation["cluster"] == cluster);
    Ok(operations)
}

/// A program that has neither ended nor panicked.
fn is_unharmed(program: &mut Program) -> Result<()> {
    let ended = program.ended()?;
    ensure!(ended.is_none(), "{} ended with {ended:?}", program.name());
    ensure!(!program.log().contains("panicked"), "{} panicked", program.name());
    Ok(())
}

/// An API, and the uuid of a template for the scripted driver made through it.
async fn api_with_template(deployment: &Deployment) -> Result<(Api, String)> {
    let api = deployment.api().await?;
    let template = api.rest.create_template("t").await.context("a template")?;
    Ok((api, template))
}
