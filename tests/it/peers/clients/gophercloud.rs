//! gophercloud, Debian's package: what programs in Go ask of this service. `tests/peers/gophercloud` calls the package's
//! functions, and waits for a cluster as such programs do: by looking at it until it has a status.
//!
//! The package is of 2020. It cannot upgrade a cluster, ask for statistics, list quotas or rotate a credential, so neither is
//! asked here.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::openstack::PASSWORD;
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::process::little_environment;
use magnum_tests::rest::IMAGE;
use magnum_tests::run_dir::base;
use serde_json::{Value, json};

use super::world::{ANNA, BERT, BOSS, PATIENCE, RITA, Stack, Who};

/// The highest version of the API that the package has functions for: node groups.
const MICROVERSION: &str = "1.10";
const NOT_FOUND: &str = "ErrDefault404";

/// The stack, and the program in Go.
struct Go {
    stack: Stack,
    client: OsloPeer,
}

impl Go {
    async fn start() -> Result<Self> {
        let stack = Stack::start().await?;
        let program = base().join("gophercloud/client");
        ensure!(
            program.exists(),
            "{} is missing: tests/run makes it",
            program.display()
        );
        let mut command = Command::new(program);
        little_environment(&mut command).args([
            stack.cloud.openstack.keystone_url().as_str(),
            &stack.region,
            PASSWORD,
        ]);
        let client = OsloPeer::start_command("gophercloud", command).await?;
        Ok(Self { stack, client })
    }

    async fn told(&mut self, who: Who, call: &str, on: &[&str], opts: Value) -> Result<Value> {
        let request = json!({
            "do": call, "user": who.0, "project": who.1, "on": on, "opts": opts, "microversion": MICROVERSION});
        Ok(self.client.ask(request).await??)
    }

    /// A function of the package, called by a member of the project.
    async fn call(&mut self, call: &str, on: &[&str], opts: Value) -> Result<Value> {
        let told = self.told(ANNA, call, on, opts).await;
        told.with_context(|| call.to_owned())
    }

    /// A function that begins an operation of the cluster. Back when that has ended: a status that an earlier one has left is
    /// not waited for.
    async fn carried_out(&mut self, call: &str, on: &[&str], opts: Value) -> Result<Value> {
        let before = self.stack.deployment.operations().await?.len();
        let told = self.call(call, on, opts).await?;
        self.stack.deployment.settled_with(before + 1, PATIENCE).await?;
        Ok(told)
    }

    /// The cluster, as soon as it has this status.
    async fn waited(&mut self, cluster: &str, status: &str) -> Result<Value> {
        self.call("clusters.WaitFor", &[cluster, status], Value::Null)
            .await
    }

    /// A function that must end with this error of the package.
    async fn fails(&mut self, who: Who, call: &str, on: &[&str], class: &str) -> Result<()> {
        match self.told(who, call, on, Value::Null).await {
            Ok(found) => anyhow::bail!("{who:?} {call} {on:?} was let through: {found}"),
            Err(error) => {
                let told = format!("{error:#}");
                ensure!(
                    told.contains(class),
                    "{who:?} {call} {on:?}: {told} instead of {class}"
                );
                Ok(())
            }
        }
    }
}

fn text<'a>(found: &'a Value, name: &str) -> Result<&'a str> {
    found[name]
        .as_str()
        .with_context(|| format!("no {name} in {found}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gophercloud_makes_changes_and_deletes_a_cluster() -> Result<()> {
    let mut go = Go::start().await?;
    let none = Value::Null;
    let versions = go.call("apiversions.List", &[], none.clone()).await?;
    ensure!(
        versions[0]["id"] == "v1"
            && versions[0]["status"] == "CURRENT"
            && versions[0]["min_version"] == "1.1",
        "{versions}"
    );

    let version = go.call("apiversions.Get", &["v1"], none.clone()).await?;
    ensure!(version == versions[0], "{version}");

    let made = json!({
        "name": "small", "coe": "kubernetes", "image_id": IMAGE, "external_network_id": "public", "keypair_id": "key",
        "flavor_id": "m1.small", "network_driver": "calico", "labels": {"tier": "gold"}, "floating_ip_enabled": true,
        "docker_volume_size": 3});
    let made = go.call("clustertemplates.Create", &[], made).await?;
    let template = text(&made, "uuid")?.to_owned();
    let change = json!([{"op": "replace", "path": "/dns_nameserver", "value": "9.9.9.9"}]);
    go.call("clustertemplates.Update", &[&template], change).await?;
    let shown = go
        .call("clustertemplates.Get", &[&template], none.clone())
        .await?;
    ensure!(
        shown["dns_nameserver"] == "9.9.9.9"
            && shown["labels"] == json!({"tier": "gold"})
            && shown["docker_volume_size"] == 3,
        "{shown}"
    );
    let listed = go.call("clustertemplates.List", &[], none.clone()).await?;
    ensure!(listed[0]["uuid"] == *template && listed[1].is_null(), "{listed}");

    // What is not said of `create_timeout` the package sends as null.
    let cluster = json!({"name": "one", "cluster_template_id": template, "node_count": 2, "master_count": 1});
    let cluster = go.call("clusters.Create", &[], cluster).await?;
    let cluster = cluster.as_str().context("an id")?.to_owned();
    let shown = go.waited(&cluster, "CREATE_COMPLETE").await?;
    ensure!(
        shown["node_count"] == 2
            && shown["api_address"] == "https://192.0.2.1:6443"
            && shown["keypair"] == "key",
        "{shown}"
    );
    let second =
        json!({"name": "two", "cluster_template_id": template, "node_count": 1, "create_timeout": 30});
    let second = go.call("clusters.Create", &[], second).await?;
    let second = second.as_str().context("an id")?.to_owned();
    let shown = go.waited(&second, "CREATE_COMPLETE").await?;
    ensure!(shown["create_timeout"] == 30, "{shown}");
    let pages = go.call("clusters.List", &[], json!({"limit": 1})).await?;
    ensure!(pages == json!([1, 1]), "clusters on each page: {pages}");
    let listed = go.call("clusters.ListDetail", &[], none.clone()).await?;
    ensure!(
        listed[0]["status"] == "CREATE_COMPLETE" && listed[1]["name"] == "two",
        "{listed}"
    );

    change_nodes(&mut go, &cluster).await?;
    certificates(&mut go, &cluster).await?;

    for (who, class) in [(BERT, NOT_FOUND), (RITA, "ErrDefault403")] {
        go.fails(who, "clusters.Delete", &[&cluster], class).await?;
    }
    let project = text(&shown, "project_id")?;
    let limit = json!({"project_id": project, "resource": "Cluster", "hard_limit": 5});
    let quota = go.told(BOSS, "quotas.Create", &[], limit).await?;
    ensure!(
        quota["hard_limit"] == 5 && quota["project_id"] == project,
        "{quota}"
    );

    for cluster in [&cluster, &second] {
        go.call("clusters.Delete", &[cluster], none.clone()).await?;
    }
    for cluster in [&cluster, &second] {
        go.waited(cluster, "gone").await?;
        go.fails(ANNA, "clusters.Get", &[cluster], NOT_FOUND).await?;
    }
    go.call("clustertemplates.Delete", &[&template], none).await?;
    go.stack.deployment.settled(PATIENCE).await?;
    Ok(())
}

async fn change_nodes(go: &mut Go, cluster: &str) -> Result<()> {
    let none = Value::Null;
    go.carried_out("clusters.Resize", &[cluster], json!({"node_count": 3}))
        .await?;
    let shown = go.waited(cluster, "UPDATE_COMPLETE").await?;
    ensure!(shown["node_count"] == 3, "{shown}");
    let change = json!([{"op": "replace", "path": "/node_count", "value": 1}]);
    go.carried_out("clusters.Update", &[cluster], change).await?;
    let shown = go.waited(cluster, "UPDATE_COMPLETE").await?;
    ensure!(shown["node_count"] == 1, "{shown}");

    let group = json!({"name": "gpu", "node_count": 2, "flavor_id": "m1.large", "labels": {"c": "d"}});
    let made = go.carried_out("nodegroups.Create", &[cluster], group).await?;
    let group = text(&made, "uuid")?.to_owned();
    go.waited(cluster, "UPDATE_COMPLETE").await?;
    let change = json!([{"op": "replace", "path": "/max_node_count", "value": 5}]);
    go.carried_out("nodegroups.Update", &[cluster, &group], change)
        .await?;
    let shown = go.waited(cluster, "UPDATE_COMPLETE").await?;
    ensure!(shown["node_count"] == 3, "{shown}");
    let shown = go
        .call("nodegroups.Get", &[cluster, &group], none.clone())
        .await?;
    ensure!(
        shown["max_node_count"] == 5
            && shown["node_count"] == 2
            && shown["flavor_id"] == "m1.large"
            && shown["labels"]["c"] == "d",
        "{shown}"
    );
    go.carried_out("nodegroups.Delete", &[cluster, &group], none.clone())
        .await?;
    go.waited(cluster, "UPDATE_COMPLETE").await?;
    let listed = go.call("nodegroups.List", &[cluster], none).await?;
    let names: Vec<_> = listed
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| &one["name"])
        .collect();
    ensure!(names == ["default-master", "default-worker"], "{listed}");
    Ok(())
}

async fn certificates(go: &mut Go, cluster: &str) -> Result<()> {
    const BEGIN: &str = "BEGIN CERTIFICATE";
    let first = go.call("certificates.Get", &[cluster], Value::Null).await?;
    ensure!(text(&first, "pem")?.contains(BEGIN), "{first}");
    let csr = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/csr/rsa-2048.pem"))?;
    let signed = json!({"cluster_uuid": cluster, "csr": csr});
    let signed = go.call("certificates.Create", &[], signed).await?;
    let pem = text(&signed, "pem")?;
    ensure!(pem.contains(BEGIN) && pem != text(&first, "pem")?, "{signed}");
    go.carried_out("certificates.Update", &[cluster], Value::Null)
        .await?;
    go.waited(cluster, "UPDATE_COMPLETE").await?;
    let second = go.call("certificates.Get", &[cluster], Value::Null).await?;
    ensure!(second["pem"] != first["pem"], "{second}");
    Ok(())
}
