//! Tenants' clusters of the two driver packages for Cluster API, unchanged, and of our driver, under our API and conductor, by the
//! commands of `openstack coe`: a real API server has them, with the real kinds; after each command what the client shows agrees with
//! what is there, and in the end nothing is left of them anywhere.
//!
//! Not proven: what Cluster API's webhooks and rules in CEL would refuse, which this server does not have; what the real chart
//! makes of its values; that a machine starts.

mod conductors;
mod interrupted;
mod misbehaving;
mod side_by_side;
mod tenant;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::capi_deployment::Origin;
use serde_json::Value;
use tenant::Tenant;

const OLDER: &str = "v1.33.4";
const NEWER: &str = "v1.34.1";

const CREATE: &str = "cluster create mine --cluster-template older --node-count 1";

/// Two templates with different versions.
async fn templates(tenant: &mut Tenant) -> Result<()> {
    for (name, image, version) in [
        ("older", "ubuntu-kube-1.33", OLDER),
        ("newer", "ubuntu-kube-1.34", NEWER),
    ] {
        let labels = format!("kube_tag={version}");
        tenant.template(name, image, &labels).await?;
    }
    Ok(())
}

/// A cluster with one master and one worker.
async fn create(tenant: &mut Tenant) -> Result<()> {
    templates(tenant).await?;
    let made = tenant.change(CREATE, "CREATE_COMPLETE").await?;
    is_made(tenant, &made).await
}

async fn is_made(tenant: &mut Tenant, made: &Value) -> Result<()> {
    ensure!(made["api_address"] == "https://192.0.2.10:6443", "{made}");
    ensure!(made["coe_version"] == OLDER, "{made}");
    let machines = [("control-plane", 1), ("default-worker", 1)];
    tenant.machines(OLDER, &machines).await?;
    tenant.is_healthy().await
}

/// Another node group, another worker, the other template, and no other node group any more.
async fn change(tenant: &mut Tenant) -> Result<()> {
    let line = "nodegroup create mine pool --node-count 2";
    tenant.change(line, "UPDATE_COMPLETE").await?;
    tenant.node_group("pool", "CREATE_COMPLETE", 2).await?;
    let machines = [("control-plane", 1), ("default-worker", 1), ("pool", 2)];
    tenant.machines(OLDER, &machines).await?;

    tenant.change("cluster resize mine 2", "UPDATE_COMPLETE").await?;
    tenant.node_group("default-worker", "UPDATE_COMPLETE", 2).await?;
    let machines = [("control-plane", 1), ("default-worker", 2), ("pool", 2)];
    tenant.machines(OLDER, &machines).await?;

    let line = "cluster upgrade mine newer";
    tenant.change(line, "UPDATE_COMPLETE").await?;
    tenant.machines(NEWER, &machines).await?;

    let line = "nodegroup delete mine pool";
    let left = tenant.change(line, "UPDATE_COMPLETE").await?;
    // The drivers read it when they look at node groups. Their look after the upgrade may have come before the controllers.
    ensure!(left["coe_version"] == NEWER, "{left}");
    tenant.machines(NEWER, &machines[..2]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_makes_changes_and_deletes_a_cluster_of_magnum_capi_helm() -> Result<()> {
    helm_release(Origin::CapiHelm).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_makes_changes_and_deletes_a_cluster_of_our_driver_with_helm() -> Result<()> {
    helm_release(Origin::Shipped).await
}

/// The whole life of a cluster that is a release of helm.
async fn helm_release(origin: Origin) -> Result<()> {
    let mut tenant = Tenant::new(origin).await?;
    create(&mut tenant).await?;
    let (uuid, stack) = tenant.identity().await?;
    ensure!(stack.starts_with("mine-"), "{stack}");
    let credential = tenant.credentials().await?;
    ensure!(
        credential.len() == 1 && credential[0].starts_with(&format!("magnum-{uuid}-")),
        "{credential:?}"
    );
    ensure!(tenant.release().await? == ["1 deployed"]);
    change(&mut tenant).await?;
    let release = tenant.release().await?;
    ensure!(
        release.len() == 5 && release.ends_with(&["5 deployed".to_owned()]),
        "{release:?}"
    );

    // The driver fails the node group, and not the cluster: the operation waits for the node group to recover.
    tenant.fail_node_groups(&["ill"]).await?;
    let line = "nodegroup create mine ill --node-count 1";
    tenant.run(line).await?;
    tenant.waits_for("ill").await?;
    tenant.node_group("ill", "CREATE_FAILED", 1).await?;
    let is_named = |reasons: &Value| reasons["nodegroup"] == "ill waiting on ['Available', 'Ready']";
    tenant.health("UNHEALTHY", is_named).await?;
    tenant.fail_node_groups(&[]).await?;
    tenant.reaches(line, "UPDATE_COMPLETE").await?;
    tenant.node_group("ill", "CREATE_COMPLETE", 1).await?;
    tenant
        .change("nodegroup delete mine ill", "UPDATE_COMPLETE")
        .await?;

    tenant.change("credential rotate mine", "UPDATE_COMPLETE").await?;
    let rotated = tenant.credentials().await?;
    ensure!(
        rotated.len() == 1 && rotated != credential,
        "{credential:?} {rotated:?}"
    );
    tenant.is_healthy().await?;
    tenant.delete().await?;
    tenant.nothing_is_left(&uuid, &stack).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_makes_changes_and_deletes_a_cluster_of_magnum_cluster_api() -> Result<()> {
    let mut tenant = Tenant::new(Origin::ClusterApi).await?;
    create(&mut tenant).await?;
    let (uuid, stack) = tenant.identity().await?;
    ensure!(stack.starts_with("kube-"), "{stack}");
    let credential = tenant.credentials().await?;
    ensure!(credential == [uuid.as_str()], "{credential:?}");
    change(&mut tenant).await?;

    // The machine goes whose server is named. Of two that are alike the controllers would choose the first.
    let servers = tenant.servers("default-worker").await?;
    let named = servers.last().context("a server")?;
    let line = format!("cluster resize mine 1 --nodes-to-remove {named}");
    tenant.change(&line, "UPDATE_COMPLETE").await?;
    tenant
        .machines(NEWER, &[("control-plane", 1), ("default-worker", 1)])
        .await?;
    ensure!(
        tenant.servers("default-worker").await? == servers[..1],
        "{servers:?}"
    );
    tenant.is_healthy().await?;
    tenant.delete().await?;
    tenant.nothing_is_left(&uuid, &stack).await
}

/// A cluster with an autoscaler, which goes with it.
async fn autoscaled(origin: Origin, labels: &str) -> Result<()> {
    let mut tenant = Tenant::new(origin).await?;
    let labels = format!("kube_tag={OLDER},auto_scaling_enabled=true{labels}");
    tenant.template("older", "ubuntu-kube-1.33", &labels).await?;
    tenant.change(CREATE, "CREATE_COMPLETE").await?;
    let (uuid, stack) = tenant.identity().await?;
    ensure!(tenant.release().await? == ["1 deployed"]);
    let autoscaler = format!("deployments {stack}-autoscaler");
    let there = tenant.objects().await?;
    ensure!(there.contains(&autoscaler), "{there:?}");
    tenant.delete().await?;
    tenant.nothing_is_left(&uuid, &stack).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_autoscaler_of_magnum_capi_helm_comes_and_goes_with_the_clusters_release() -> Result<()> {
    autoscaled(Origin::CapiHelm, ",min_node_count=1,max_node_count=3").await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_autoscaler_of_our_driver_comes_and_goes_with_the_clusters_release() -> Result<()> {
    autoscaled(Origin::Shipped, ",min_node_count=1,max_node_count=3").await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_autoscaler_of_magnum_cluster_api_comes_as_a_release_and_goes_with_the_cluster() -> Result<()> {
    autoscaled(Origin::ClusterApi, "").await
}

/// Python's conductor makes a cluster with a package; ours goes on with it, and deletes it.
async fn moves(origin: Origin) -> Result<()> {
    let mut tenant = Tenant::of_python(origin).await?;
    templates(&mut tenant).await?;
    let by_python = tenant.change_by_python(CREATE, "CREATE_COMPLETE").await?;
    let (uuid, stack) = tenant.identity().await?;
    tenant.move_to_our_conductor().await?;
    let here = tenant.run("cluster show mine -f json").await?;
    for field in ["status", "cluster_id", "api_address", "coe_version", "node_count"] {
        ensure!(here[field] == by_python[field], "{field}: {here} {by_python}");
    }
    is_made(&mut tenant, &here).await?;
    change(&mut tenant).await?;
    tenant.delete().await?;
    tenant.nothing_is_left(&uuid, &stack).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_pythons_conductor_made_with_magnum_capi_helm_goes_on_under_ours() -> Result<()> {
    moves(Origin::CapiHelm).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_pythons_conductor_made_with_magnum_capi_helm_goes_on_under_our_driver() -> Result<()>
{
    moves(Origin::Shipped).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_pythons_conductor_made_with_magnum_cluster_api_goes_on_under_ours() -> Result<()> {
    moves(Origin::ClusterApi).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_our_conductor_made_with_magnum_capi_helm_goes_on_under_pythons() -> Result<()> {
    moves_back(Origin::CapiHelm).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_our_driver_made_goes_on_under_pythons_conductor_with_magnum_capi_helm() -> Result<()>
{
    moves_back(Origin::Shipped).await
}

/// Our conductor makes a cluster; Python's goes on with it, and deletes it.
///
/// Not shown with magnum-cluster-api: its lock is waited for ten seconds, and Python's conductor forgets a request that has
/// met it, as when the same conductor just asks for the cluster's health.
async fn moves_back(origin: Origin) -> Result<()> {
    let mut tenant = Tenant::new(origin).await?;
    create(&mut tenant).await?;
    let (uuid, stack) = tenant.identity().await?;
    tenant.move_to_pythons_conductor().await?;
    let line = "cluster resize mine 2";
    tenant.change_by_python(line, "UPDATE_COMPLETE").await?;
    let machines = [("control-plane", 1), ("default-worker", 2)];
    tenant.machines(OLDER, &machines).await?;
    tenant.delete_by_python().await?;
    // Python's conductor leaves two of the cluster's four certificates.
    let tables = ["cluster", "nodegroup"];
    tenant.nothing_is_left_of(&uuid, &stack, &tables).await
}
