//! The operations of a cluster, over REST.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::process::Program;
use magnum_tests::rest::Rest;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

struct Scene {
    deployment: Deployment,
    _conductor: Program,
    api: Api,
    owner: Rest,
    cluster: String,
}

impl Scene {
    /// A cluster of the project `north`, made at the second attempt.
    async fn set() -> Result<Self> {
        let deployment = Deployment::new(Backend::Sqlite).await?;
        let conductor = deployment.conductor("very-internal-host").await?;
        let api = deployment.api().await?;
        let owner = api.rest.as_somebody("north", "anna").with_token("hunter2");
        let template = owner.create_template("small").await?;
        let labels = json!({"scripted_create": "transient:1", "registry_password": "hunter2"});
        let cluster = owner.create_cluster(&template, "mine", labels).await?;
        owner.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
        deployment.settled(PATIENCE).await?;
        Ok(Self {
            deployment,
            _conductor: conductor,
            api,
            owner,
            cluster,
        })
    }

    fn path(&self, query: &str) -> String {
        format!("/clusters/{}/operations{query}", self.cluster)
    }
}

fn list(body: &Value) -> Result<&Vec<Value>> {
    body["operations"]
        .as_array()
        .with_context(|| format!("no operations in {body}"))
}

fn kinds(body: &Value) -> Result<Vec<&str>> {
    Ok(list(body)?
        .iter()
        .filter_map(|one| one["kind"].as_str())
        .collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owner_sees_the_operations_and_administrator_sees_conductor_and_reason_too() -> Result<()> {
    let scene = Scene::set().await?;
    let body = scene.owner.get(&scene.path("")).await?.expect(200)?;
    let made = &list(&body)?[0];
    ensure!(
        kinds(&body)? == ["cluster_create"] && made["state"] == "succeeded",
        "{body}"
    );
    ensure!(made["attempts"] == 2 && made["failures"] == 1, "{body}");
    ensure!(
        made["project_id"] == "north" && made["user_id"] == "anna",
        "{body}"
    );
    ensure!(
        made["request_id"]
            .as_str()
            .is_some_and(|id| id.starts_with("req-")),
        "{body}"
    );
    let events: Vec<&str> = made["events"]
        .as_array()
        .context("events")?
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect();
    for wanted in ["accepted", "claimed", "failed", "ended"] {
        ensure!(events.contains(&wanted), "{wanted} is not in {events:?}");
    }
    let text = body.to_string();
    for hidden in ["very-internal-host", "hunter2", "lease", "message_id"] {
        ensure!(!text.contains(hidden), "{hidden} is shown: {body}");
    }

    let body = scene.api.rest.get(&scene.path("")).await?.expect(200)?;
    let made = &list(&body)?[0];
    let text = body.to_string();
    ensure!(
        text.contains("very-internal-host") && made["lease_epoch"].is_i64(),
        "{body}"
    );
    let failed = made["events"]
        .as_array()
        .and_then(|events| events.iter().find(|event| event["event"] == "failed"));
    ensure!(failed.is_some_and(|event| event["detail"].is_string()), "{body}");
    ensure!(!text.contains("hunter2"), "{body}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_are_visible_only_with_access_to_the_cluster_and_the_version() -> Result<()> {
    let scene = Scene::set().await?;
    let stranger = scene.api.rest.as_somebody("south", "bob");
    ensure!(stranger.get(&scene.path("")).await?.status.as_u16() == 404);
    ensure!(stranger.get("/clusters/mine/operations").await?.status.as_u16() == 404);
    ensure!(
        scene
            .owner
            .get("/clusters/mine/operations")
            .await?
            .status
            .is_success()
    );
    let refused = scene.owner.at_version("1.14").get(&scene.path("")).await?;
    ensure!(refused.status.as_u16() == 406, "{}", refused.body);
    for (query, status) in [("?sort_key=reason", 400), ("?wrong=1", 400), ("?limit=0", 400)] {
        ensure!(
            scene.owner.get(&scene.path(query)).await?.status.as_u16() == status,
            "{query}"
        );
    }
    let nobody = "11111111-2222-3333-4444-555555555555";
    let marker = scene.path(&format!("?marker={nobody}"));
    ensure!(scene.owner.get(&marker).await?.status.as_u16() == 404);
    ensure!(
        scene
            .owner
            .get(&format!("/clusters/{nobody}/operations"))
            .await?
            .status
            .as_u16()
            == 404
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_follow_one_another_and_a_deleted_cluster_is_remembered() -> Result<()> {
    let scene = Scene::set().await?;
    scene.owner.resize(&scene.cluster, 2).await?.expect(202)?;
    scene
        .owner
        .wait_status(&scene.cluster, "UPDATE_COMPLETE", PATIENCE)
        .await?;
    // The administrator's project has asked for the end of somebody else's cluster.
    let deleted = scene
        .api
        .rest
        .delete(&format!("/clusters/{}", scene.cluster))
        .await?;
    ensure!(deleted.status.as_u16() == 204, "{}", deleted.body);
    scene.owner.wait_gone(&scene.cluster, PATIENCE).await?;
    scene.deployment.settled(PATIENCE).await?;

    let (mut path, mut seen) = (scene.path("?limit=1"), Vec::new());
    for _ in 0..4 {
        let body = scene.owner.get(&path).await?.expect(200)?;
        seen.extend(kinds(&body)?.into_iter().map(str::to_owned));
        match body["next"].as_str() {
            Some(next) => {
                path = next
                    .strip_prefix(scene.owner.base())
                    .context("a link of ours")?
                    .to_owned()
            }
            None => break,
        }
    }
    ensure!(
        seen == ["cluster_create", "cluster_update", "cluster_delete"],
        "{seen:?}"
    );
    let body = scene
        .owner
        .get(&scene.path("?sort_dir=desc&limit=2"))
        .await?
        .expect(200)?;
    ensure!(kinds(&body)? == ["cluster_delete", "cluster_update"], "{body}");

    let strangers = [
        scene.api.rest.as_somebody("south", "bob"),
        // Of the administrator's project, but no administrator.
        scene.api.rest.as_somebody("noauth", "eve"),
    ];
    for stranger in &strangers {
        ensure!(
            stranger.get(&scene.path("")).await?.status.as_u16() == 404,
            "{stranger:?}"
        );
    }
    // Where the creation is forgotten, a project still sees what it has asked for itself, and nothing else.
    scene
        .deployment
        .database
        .execute("delete from conductor_operation where kind = 'cluster_create'")
        .await?;
    let body = strangers[1].get(&scene.path("")).await?.expect(200)?;
    ensure!(kinds(&body)? == ["cluster_delete"], "{body}");
    let body = scene.owner.get(&scene.path("")).await?.expect(200)?;
    ensure!(kinds(&body)? == ["cluster_update"], "{body}");
    ensure!(strangers[0].get(&scene.path("")).await?.status.as_u16() == 404);
    Ok(())
}
