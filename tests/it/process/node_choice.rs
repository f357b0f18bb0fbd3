//! Which nodes go when a group shrinks. The request names none: the driver that can choose does, once, and the resize
//! removes the nodes that it has named, whatever happens in between. The request names some: those go, and names that no
//! node has are refused.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::{Backend, wait};
use serde_json::{Value, json};

use crate::conductor::example_drivers::{disk_nodes, install_disk};

const PATIENCE: Duration = Duration::from_secs(90);

/// A cluster of the driver `disk` with four workers.
struct Cluster {
    uuid: String,
    root: PathBuf,
}

impl Cluster {
    /// Needs a conductor.
    async fn build(root: &Path, api: &Api, labels: Value) -> Result<Self> {
        let rest = &api.rest;
        let template = rest.create_template_for("t", "disk").await?;
        let uuid = rest.create_cluster(&template, "c", labels).await?;
        rest.wait_status(&uuid, "CREATE_COMPLETE", PATIENCE).await?;
        rest.resize(&uuid, 4).await?.expect(202)?;
        rest.wait_status(&uuid, "UPDATE_COMPLETE", PATIENCE).await?;
        Ok(Self {
            uuid,
            root: root.to_owned(),
        })
    }

    /// Asks for another number of workers, by the RPC `cluster_resize`.
    async fn ask(&self, api: &Api, body: Value) -> Result<()> {
        let path = format!("/clusters/{}/actions/resize", self.uuid);
        api.rest.post(&path, &body).await?.expect(202).map(drop)
    }

    /// The workers that there are, by the ends of their names.
    fn workers(&self) -> Result<BTreeSet<String>> {
        let nodes = disk_nodes(&self.root, &self.uuid)?;
        let workers = nodes.keys().filter(|name| name.starts_with("default-worker"));
        let ends = workers.filter_map(|name| name.split_once('/'));
        Ok(ends.map(|(_, node)| node.to_owned()).collect())
    }

    /// What the driver has named, each time that it was asked.
    fn choices(&self) -> Result<Vec<Vec<String>>> {
        let journal = fs::read_to_string(self.root.join("journal.log"))?;
        let lines: Vec<Value> = journal
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        let chosen = lines
            .iter()
            .filter(|line| line["event"] == "chosen" && line["cluster"] == self.uuid.as_str());
        chosen
            .map(|line| Ok(serde_json::from_value(line["nodes"].clone())?))
            .collect()
    }

    /// Turns the order of the workers' ages round: another question would be answered otherwise.
    fn turn_ages_round(&self) -> Result<()> {
        let folder = self.root.join("clusters").join(&self.uuid);
        for (node, mut record) in disk_nodes(&self.root, &self.uuid)? {
            let built = record["built"].as_f64().context("the time it was built")?;
            record["built"] = json!(-built);
            fs::write(folder.join(node).join("node.json"), record.to_string())?;
        }
        Ok(())
    }
}

fn names<const N: usize>(nodes: [&str; N]) -> BTreeSet<String> {
    nodes.map(str::to_owned).into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resize_without_names_removes_the_nodes_that_the_driver_names() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let root = install_disk(&mut deployment)?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let cluster = Cluster::build(&root, &api, json!({"disk_scale": "oldest"})).await?;

    cluster.ask(&api, json!({"node_count": 2})).await?;
    deployment.settled_with(3, PATIENCE).await?;
    ensure!(
        cluster.workers()? == names(["node-2", "node-3"]),
        "{:?}",
        cluster.workers()
    );
    ensure!(cluster.choices()?.len() == 1, "{:?}", cluster.choices());

    // Growing needs no choice, nor does a request that names its nodes.
    cluster.ask(&api, json!({"node_count": 3})).await?;
    deployment.settled_with(4, PATIENCE).await?;
    let grown = names(["node-2", "node-3", "node-4"]);
    ensure!(cluster.workers()? == grown, "{:?}", cluster.workers());
    let nodes = disk_nodes(&root, &cluster.uuid)?;
    let named = nodes
        .keys()
        .find(|name| name.ends_with("/node-3"))
        .context("node-3")?;
    let body = json!({"node_count": 2, "nodes_to_remove": [named]});
    cluster.ask(&api, body).await?;
    deployment.settled_with(5, PATIENCE).await?;
    ensure!(
        cluster.workers()? == names(["node-2", "node-4"]),
        "{:?}",
        cluster.workers()
    );
    ensure!(cluster.choices()?.len() == 1, "{:?}", cluster.choices());
    Ok(())
}

/// What cluster-autoscaler's Magnum provider does when a node is idle: it finds the node's group and its sizes, names the
/// node in a resize, and reads the cluster until that has ended.
#[tokio::test(flavor = "multi_thread")]
async fn an_autoscaler_gets_rid_of_the_node_that_it_names() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    let root = install_disk(&mut deployment)?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let cluster = Cluster::build(&root, &api, json!({})).await?;
    let groups = format!("/clusters/{}/nodegroups", cluster.uuid);
    let listed = api
        .rest
        .get(&format!("{groups}?role=worker"))
        .await?
        .expect(200)?;
    let uuid = listed["nodegroups"][0]["uuid"]
        .as_str()
        .context("a group")?
        .to_owned();
    let group = async || api.rest.get(&format!("{groups}/{uuid}")).await?.expect(200);
    let before = group().await?;
    let addresses = |group: &Value| serde_json::from_value::<Vec<String>>(group["node_addresses"].clone());
    let idle = addresses(&before)?[1].clone();
    ensure!(
        before["min_node_count"].as_i64() < before["node_count"].as_i64(),
        "{before}"
    );

    cluster
        .ask(
            &api,
            json!({"node_count": 3, "nodes_to_remove": [idle], "nodegroup": uuid}),
        )
        .await?;
    let shown = api
        .rest
        .get(&format!("/clusters/{}", cluster.uuid))
        .await?
        .expect(200)?;
    let begun = ["UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"].map(Value::from);
    ensure!(begun.contains(&shown["status"]), "{shown}");
    api.rest
        .wait_status(&cluster.uuid, "UPDATE_COMPLETE", PATIENCE)
        .await?;
    let after = group().await?;
    ensure!(after["node_count"] == 3, "{after}");
    let left = addresses(&after)?;
    ensure!(
        left.len() == 3 && !left.contains(&idle),
        "{idle} was to go: {left:?}"
    );
    ensure!(cluster.choices()?.is_empty(), "the driver was not to choose");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resize_that_names_nodes_which_are_not_there_is_refused() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let root = install_disk(&mut deployment)?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let cluster = Cluster::build(&root, &api, json!({})).await?;
    let nodes = disk_nodes(&root, &cluster.uuid)?;
    let master = nodes
        .keys()
        .find(|name| name.starts_with("default-master"))
        .context("a master")?;
    let worker = nodes
        .keys()
        .find(|name| name.ends_with("/node-1"))
        .context("a worker")?;
    let path = format!("/clusters/{}/actions/resize", cluster.uuid);
    let body = json!({"node_count": 1, "nodes_to_remove": ["nobody", worker, master]});
    let refused = api.rest.post(&path, &body).await?.expect(400)?;
    let detail = refused["errors"][0]["detail"].as_str().unwrap_or_default();
    let told = format!("nodes_to_remove: there is no node nobody, {master} in node group default-worker.");
    ensure!(detail == told, "{refused}");
    ensure!(cluster.workers()?.len() == 4, "{:?}", cluster.workers());
    deployment.settled_with(2, PATIENCE).await?;
    Ok(())
}

/// The driver does not answer the question, and the resize itself works.
#[tokio::test(flavor = "multi_thread")]
async fn names_that_cannot_be_checked_are_looked_at_by_the_resize() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let root = install_disk(&mut deployment)?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let labels = json!({"disk_fail": "permanent", "disk_fail_on": "api"});
    let cluster = Cluster::build(&root, &api, labels).await?;
    cluster
        .ask(&api, json!({"node_count": 3, "nodes_to_remove": ["nobody"]}))
        .await?;
    let shown = api
        .rest
        .wait_status(&cluster.uuid, "UPDATE_FAILED", PATIENCE)
        .await?;
    let reason = shown["status_reason"].as_str().unwrap_or_default();
    ensure!(
        reason.contains("there is no node nobody in default-worker"),
        "{shown}"
    );
    ensure!(cluster.workers()?.len() == 4, "{:?}", cluster.workers());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conductor_killed_after_the_choice_removes_the_same_nodes() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    let root = install_disk(&mut deployment)?;
    let mut builder = deployment.conductor("builder").await?;
    let api = deployment.api().await?;
    let cluster = Cluster::build(&root, &api, json!({})).await?;
    deployment.settled(PATIENCE).await?;
    builder.terminate(PATIENCE).await?;

    let file = deployment.folder.join("crash-point");
    let mut doomed = deployment
        .conductor_launch("doomed")
        .await?
        .env(
            "MAGNUM_TEST_CRASH_POINT",
            "cluster_resize/choose_nodes/after_result",
        )
        .env("MAGNUM_TEST_CRASH_POINT_FILE", &file)
        .start()
        .await?;
    cluster.ask(&api, json!({"node_count": 2})).await?;
    wait::until("the crash point to be reached", PATIENCE, async || {
        file.with_extension("reached")
            .exists()
            .then_some(())
            .context("not yet")
    })
    .await?;
    doomed.kill().await?;
    ensure!(cluster.workers()?.len() == 4, "nothing is removed yet");
    cluster.turn_ages_round()?;

    let _heir = deployment.conductor("heir").await?;
    let operations = deployment.settled(PATIENCE).await?;
    ensure!(
        operations.iter().all(|one| one["state"] == "succeeded"),
        "{operations:#?}"
    );
    // The newest ones, as it was when the driver was asked.
    ensure!(
        cluster.workers()? == names(["node-0", "node-1"]),
        "{:?}",
        cluster.workers()
    );
    ensure!(cluster.choices()?.len() == 1, "{:?}", cluster.choices());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_senseless_choice_fails_the_resize_and_removes_nothing() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let root = install_disk(&mut deployment)?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let cluster = Cluster::build(&root, &api, json!({"disk_scale": "twice"})).await?;
    cluster.ask(&api, json!({"node_count": 2})).await?;
    let shown = api
        .rest
        .wait_status(&cluster.uuid, "UPDATE_FAILED", PATIENCE)
        .await?;
    let reason = shown["status_reason"].as_str().unwrap_or_default();
    ensure!(
        reason.contains("driver disk 1.0.0 chose nodes that cannot be removed: nodes[1] names"),
        "{shown:#}"
    );
    ensure!(shown["node_count"] == 4, "{shown:#}");
    ensure!(cluster.workers()?.len() == 4, "{:?}", cluster.workers());
    ensure!(cluster.choices()?.len() == 1, "{:?}", cluster.choices());
    Ok(())
}
