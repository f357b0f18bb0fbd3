//! Both directions with the real thing: Magnum's own client code drives our conductor, and Magnum's own object
//! layer rebuilds what our API publishes.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::{Backend, wait};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(90);

async fn peer(deployment: &Deployment, script: &str) -> Result<OsloPeer> {
    OsloPeer::start(script, &[&deployment.config_file("peer")?.display().to_string()]).await
}

/// A recorded request: method, arguments and context as they were on the wire.
struct Frame {
    method: String,
    args: Value,
    context: Value,
    is_call: bool,
}

fn frame(name: &str) -> Result<Frame> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/rpc/{name}.json"));
    let recorded: Value =
        serde_json::from_str(&std::fs::read_to_string(&path).with_context(|| path.display().to_string())?)?;
    let body: Value = serde_json::from_str(recorded["body"].as_str().context("body")?)?;
    let message: Value = serde_json::from_str(body["oslo.message"].as_str().context("message")?)?;
    let keys = message.as_object().context("object")?;
    let context = keys
        .iter()
        .filter_map(|(key, value)| Some((key.strip_prefix("_context_")?.to_owned(), value.clone())))
        .collect();
    Ok(Frame {
        method: message["method"].as_str().context("method")?.to_owned(),
        args: message["args"].clone(),
        context,
        is_call: message["_msg_id"].is_string(),
    })
}

/// The template that the recorded frames name: made through the API, then given its recorded uuid.
async fn recorded_template(deployment: &Deployment, api: &Api, uuid: &str) -> Result<()> {
    let made = api.rest.create_template("recorded").await?;
    deployment
        .database
        .execute(&format!(
            "UPDATE cluster_template SET uuid = '{uuid}' WHERE uuid = '{made}'"
        ))
        .await
}

/// How a recorded frame ends when a real oslo client sends it to our conductor.
enum End {
    /// Accepted or answered with the cluster, which then gets this status.
    Reaches(&'static str),
    /// A call that changes nothing, which Magnum answers with null.
    Unchanged,
    /// Accepted or answered with null, and the cluster is no more.
    Gone,
    /// A call that raises this class of Magnum's.
    Raises(&'static str),
    /// Accepted, or answered with null; the cluster keeps this status.
    Keeps(&'static str),
    /// A call of what Magnum never had, which raises Python's own exception.
    NotImplemented,
    /// A cast that goes to the dead letters with this in its reason.
    SetAside(&'static str),
}

const MAGNUM: &str = "magnum.common.exception";

/// Every recorded request that names a cluster and is recorded as an operation, and those about federations, in an
/// order in which the cluster that they all name can live.
const FRAMES: &[(&str, End)] = &[
    ("cluster_delete-ClusterNotFound", End::Raises("ClusterNotFound")),
    ("cluster_create-cast", End::Reaches("CREATE_COMPLETE")),
    ("cluster_update-cast", End::Reaches("UPDATE_COMPLETE")),
    ("cluster_update-call", End::Reaches("UPDATE_COMPLETE")),
    // Asks for what the one before has made true.
    ("cluster_update-nested-template", End::Unchanged),
    ("cluster_resize-call", End::Reaches("UPDATE_COMPLETE")),
    ("cluster_resize-cast", End::Reaches("UPDATE_COMPLETE")),
    ("cluster_upgrade-call", End::Reaches("UPDATE_COMPLETE")),
    ("cluster_upgrade-async", End::Reaches("UPDATE_COMPLETE")),
    ("nodegroup_create-cast", End::Reaches("UPDATE_COMPLETE")),
    // The group is there by now.
    ("nodegroup_create-call", End::Raises("NodeGroupAlreadyExists")),
    ("nodegroup_update-cast", End::Reaches("UPDATE_COMPLETE")),
    ("nodegroup_update-call", End::Reaches("UPDATE_COMPLETE")),
    // They name a default group, which Magnum's API would not let through.
    ("nodegroup_delete-cast", End::Keeps("UPDATE_COMPLETE")),
    (
        "nodegroup_delete-call",
        End::Raises("DeletingDefaultNGNotSupported"),
    ),
    ("credential_rotate-cast", End::Keeps("UPDATE_COMPLETE")),
    ("credential_rotate-call", End::Keeps("UPDATE_COMPLETE")),
    ("federation_create-call", End::NotImplemented),
    ("federation_create-cast", End::SetAside("not yet implemented")),
    ("federation_update-call", End::NotImplemented),
    ("federation_update-cast", End::SetAside("not yet implemented")),
    ("federation_delete-call", End::NotImplemented),
    ("federation_delete-cast", End::SetAside("not yet implemented")),
    ("cluster_delete-cast", End::Gone),
    ("cluster_create-call", End::Reaches("CREATE_COMPLETE")),
    // The recorded cluster was at work; ours gets a status before that, which no update is allowed in either.
    ("cluster_update-NotSupported", End::Raises("NotSupported")),
    ("cluster_delete-call", End::Gone),
];

/// How the names of those requests begin.
const OPERATIONS: &[&str] = &["cluster_", "nodegroup_", "credential_rotate", "federation_"];

/// The default worker group of the recorded cluster.
const WORKER: &str = "22222222-2222-4222-8222-222222222222";

#[test]
fn the_table_has_every_recorded_cluster_frame() -> Result<()> {
    let mut recorded = Vec::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/rpc"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let request = name
            .strip_prefix("request-")
            .and_then(|name| name.strip_suffix(".json"));
        recorded.extend(
            request
                .filter(|name| OPERATIONS.iter().any(|prefix| name.starts_with(prefix)))
                .map(str::to_owned),
        );
    }
    let mut table: Vec<String> = FRAMES.iter().map(|(name, _)| (*name).to_owned()).collect();
    recorded.sort();
    table.sort();
    ensure!(
        recorded == table,
        "recorded: {recorded:#?}\nin the table: {table:#?}"
    );
    Ok(())
}

/// Waits until there is one operation more than before, and none is open. Neither alone would do after a cast: nothing
/// is open either as long as the conductor has not taken it, and most leave the cluster the status that it had.
async fn carried_out(deployment: &Deployment, before: usize) -> Result<()> {
    let operations = deployment.settled_with(before + 1, PATIENCE).await?;
    ensure!(operations.len() == before + 1, "{operations:#?}");
    Ok(())
}

async fn sent_by_oslo(
    deployment: &Deployment,
    api: &Api,
    python: &mut OsloPeer,
    name: &str,
    end: &End,
) -> Result<()> {
    let Frame {
        method,
        args,
        context,
        is_call,
    } = frame(&format!("request-{name}"))?;
    let how = if is_call { "call" } else { "cast" };
    let before = deployment.operations().await?.len();
    let answer = python
        .ask(json!({"do": how, "method": method, "args": args, "context": context}))
        .await?;
    let data = &args["cluster"]["magnum_object.data"];
    let uuid = data["uuid"]
        .as_str()
        .or_else(|| args["uuid"].as_str())
        .or_else(|| args["federation"]["magnum_object.data"]["uuid"].as_str())
        .context("uuid")?;
    match end {
        End::Reaches(status) => {
            let answer = answer?;
            let about = if method.starts_with("nodegroup_") {
                &args["nodegroup"]["magnum_object.data"]["uuid"]
            } else {
                &data["uuid"]
            };
            ensure!(
                !is_call || answer["magnum_object.data"]["uuid"] == *about,
                "answered with {answer}"
            );
            carried_out(deployment, before).await?;
            let cluster = api.rest.wait_status(uuid, status, PATIENCE).await?;
            ensure!(cluster["name"] == data["name"], "{cluster}");
            ensure!(
                method != "cluster_create" || cluster["labels"] == data["labels"],
                "{cluster}"
            );
            ensure!(
                args["node_count"].is_null() || cluster["node_count"] == args["node_count"],
                "{cluster}"
            );
        }
        End::Keeps(status) => {
            let answer = answer?;
            ensure!(answer.is_null(), "answered with {answer}");
            carried_out(deployment, before).await?;
            ensure!(api.rest.status(uuid).await?.as_deref() == Some(*status));
        }
        End::NotImplemented => {
            let raised = answer.err().context("nothing was raised")?;
            ensure!(raised.class == "NotImplementedError", "{raised}");
        }
        End::Unchanged => {
            let answer = answer?;
            ensure!(is_call && answer.is_null(), "answered with {answer}");
        }
        End::Gone => {
            let answer = answer?;
            ensure!(answer.is_null(), "answered with {answer}");
            carried_out(deployment, before).await?;
            api.rest.wait_gone(uuid, PATIENCE).await?;
        }
        End::Raises(class) => {
            ensure!(is_call, "a cast raises nothing");
            let raised = answer.err().context("nothing was raised")?;
            ensure!(
                (raised.module.as_str(), raised.class.as_str()) == (MAGNUM, *class),
                "{raised}"
            );
        }
        End::SetAside(words) => {
            ensure!(!is_call, "a call is answered");
            let letters = wait::until("the dead letter", PATIENCE, async || {
                let letters = deployment
                    .vhost
                    .management()
                    .peek("magnum-conductor.dead", 10)
                    .await?;
                let ours = letters.into_iter().map(|letter| letter.to_string());
                let ours: Vec<String> = ours.filter(|letter| letter.contains(&method)).collect();
                ensure!(!ours.is_empty(), "none yet");
                Ok::<_, anyhow::Error>(ours)
            })
            .await?;
            ensure!(letters.len() == 1 && letters[0].contains(words), "{letters:#?}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_cluster_frame_sent_by_oslo_ends_as_it_should() -> Result<()> {
    let deployment = Deployment::new(Backend::Mariadb).await?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let mut python = peer(&deployment, "oslo_client.py").await?;
    let pong = python
        .ask(json!({"do": "call", "method": "ping_conductor", "args": {}, "context": {}}))
        .await??;
    ensure!(pong == true);
    let template =
        &frame("request-cluster_create-cast")?.args["cluster"]["magnum_object.data"]["cluster_template_id"];
    recorded_template(&deployment, &api, template.as_str().context("template")?).await?;
    for (name, end) in FRAMES {
        if name.ends_with("NotSupported") {
            deployment
                .database
                .execute("UPDATE cluster SET status = 'CREATE_FAILED'")
                .await?;
        }
        if *name == "cluster_resize-call" {
            let recorded = format!("UPDATE nodegroup SET uuid = '{WORKER}' WHERE name = 'default-worker'");
            deployment.database.execute(&recorded).await?;
        }
        sent_by_oslo(&deployment, &api, &mut python, name, end)
            .await
            .with_context(|| (*name).to_owned())?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_at_work_refuses_an_update_with_magnums_own_exception() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let mut python = peer(&deployment, "oslo_client.py").await?;

    // A cluster that is being worked on refuses an update.
    let template = api.rest.create_template("small").await?;
    let cluster = api
        .rest
        .create_cluster(&template, "busy", json!({"scripted_create": "wait"}))
        .await?;
    let seen = json!({"object": "Cluster", "saved": {"uuid": cluster, "cluster_template_id": template, "status": "CREATE_COMPLETE"}});
    let update = json!({"do": "api", "method": "cluster_update", "args": [seen, 3, null, null], "context": {"project_id": "noauth"}});
    let raised = python.ask(update).await?.unwrap_err();
    ensure!(
        (raised.module.as_str(), raised.class.as_str()) == (MAGNUM, "NotSupported"),
        "{raised}"
    );
    deployment.record.let_go(&cluster)?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn magnums_server_decodes_the_messages_of_our_api() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    deployment.set("api", "accept_wait", 0);
    let api = deployment.api().await?;
    let (template, existing) = {
        let _conductor = deployment.conductor("one").await?;
        let template = api.rest.create_template("small").await?;
        let existing = api.rest.create_cluster(&template, "existing", json!({})).await?;
        api.rest
            .wait_status(&existing, "CREATE_COMPLETE", PATIENCE)
            .await?;
        deployment.settled(PATIENCE).await?;
        (template, existing)
    };

    let mut python = peer(&deployment, "oslo_server.py").await?;
    let created = api
        .rest
        .create_cluster(&template, "new", json!({"k": "v ü"}))
        .await?;
    let seen = python.next_event(PATIENCE).await?;
    ensure!(
        seen["method"] == "cluster_create" && seen["args"]["node_count"] == 1,
        "{seen}"
    );
    let cluster = &seen["args"]["cluster"];
    ensure!(
        cluster["object"] == "Cluster" && cluster["fields"]["uuid"] == created.as_str(),
        "{seen}"
    );
    ensure!(
        cluster["fields"]["labels"]["k"] == "v ü" && cluster["fields"]["name"] == "new",
        "{seen}"
    );
    ensure!(
        cluster["changes"]
            .as_array()
            .is_some_and(|changes| changes.contains(&json!("name"))),
        "{seen}"
    );
    ensure!(seen["context"]["project_id"] == "noauth", "{seen}");

    api.rest.resize(&existing, 4).await?.expect(202)?;
    let seen = python.next_event(PATIENCE).await?;
    ensure!(
        seen["method"] == "cluster_update" && seen["args"]["node_count"] == 4,
        "{seen}"
    );
    ensure!(
        seen["args"]["cluster"]["fields"]["status"] == "CREATE_COMPLETE",
        "{seen}"
    );

    api.rest
        .delete(&format!("/clusters/{existing}"))
        .await?
        .expect(204)?;
    let seen = python.next_event(PATIENCE).await?;
    ensure!(
        seen["method"] == "cluster_delete" && seen["args"]["uuid"] == existing.as_str(),
        "{seen}"
    );
    Ok(())
}
