//! Clusters of our driver while the management cluster misbehaves: nothing is lost, and nothing asked for that a watch tells.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::capi_deployment::{CapiDeployment, Origin};
use magnum_tests::kubernetes_front::Fault;
use magnum_tests::wait;

use super::tenant::{PATIENCE, Tenant};
use super::{CREATE, create, is_made, templates};

/// What a controller still has to see to keeps a cluster, for as long as it takes.
#[tokio::test(flavor = "multi_thread")]
async fn looks_at_a_cluster_that_does_not_change_ask_the_management_cluster_nothing() -> Result<()> {
    let (mut tenant, front) = Tenant::behind_a_front().await?;
    create(&mut tenant).await?;
    tenant.keep(true).await?;
    let (uuid, stack) = tenant.identity().await?;
    tenant.run("cluster delete mine").await?;
    wait::until("looks without a request", PATIENCE, async || {
        front.take_asked();
        let (at_status, at_health) = tenant.looks().await?;
        wait::until("looks", PATIENCE, async || {
            let (status, health) = tenant.looks().await?;
            ensure!(status > at_status && health > at_health, "{status}, {health}");
            Ok(())
        })
        .await?;
        let mut asked = front.take_asked();
        asked.retain(|one| !one.contains("watch=true"));
        ensure!(asked.is_empty(), "{asked:?}");
        Ok(())
    })
    .await?;
    let kept = tenant.run("cluster show mine -f json").await?;
    ensure!(kept["status"] == "DELETE_IN_PROGRESS", "{kept}");
    ensure!(tenant.credentials().await?.len() == 1);
    tenant.keep(false).await?;
    tenant.is_gone().await?;
    tenant.nothing_is_left(&uuid, &stack).await
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_made_while_watches_are_broken_are_seen_when_they_recover() -> Result<()> {
    let (mut tenant, front) = Tenant::behind_a_front().await?;
    create(&mut tenant).await?;
    let (uuid, stack) = tenant.identity().await?;
    tenant.fail_node_groups(&["ill"]).await?;
    let line = "nodegroup create mine ill --node-count 1";
    tenant.run(line).await?;
    tenant.waits_for("ill").await?;
    front.cut();
    tenant.fail_node_groups(&[]).await?;
    // Those that go on where they were are told that this is too long ago.
    front.order("GET", "watch=true", Fault::Expired, 3);
    front.mend();
    tenant.reaches(line, "UPDATE_COMPLETE").await?;
    tenant.node_group("ill", "CREATE_COMPLETE", 1).await?;
    tenant.is_healthy().await?;
    ensure!(
        front.ordered() == 0,
        "{} watches have not begun anew",
        front.ordered()
    );
    tenant.delete().await?;
    tenant.nothing_is_left(&uuid, &stack).await
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_the_management_cluster_refuses_for_now_are_made_again() -> Result<()> {
    let (mut tenant, front) = Tenant::behind_a_front().await?;
    templates(&mut tenant).await?;
    for (method, words, fault) in [
        ("PATCH", "/api/v1/namespaces/magnum-", Fault::Status(429)),
        ("PATCH", "-cloud-credentials?", Fault::Status(409)),
        ("PATCH", "-etcd?", Fault::Status(503)),
        ("GET", "/kubeadmcontrolplanes/", Fault::Status(500)),
        ("GET", "/openstackclusters/", Fault::Status(404)),
    ] {
        front.order(method, words, fault, 1);
    }
    front.order("PATCH", "-proxy?", Fault::Status(403), usize::MAX);
    tenant.run(CREATE).await?;
    tenant
        .is_tried_again_for("-proxy cannot be applied: HTTP 403")
        .await?;
    front.lift("-proxy?");
    let made = tenant.reaches(CREATE, "CREATE_COMPLETE").await?;
    is_made(&mut tenant, &made).await?;
    ensure!(front.ordered() == 0, "{} requests were not made", front.ordered());
    ensure!(tenant.credentials().await?.len() == 1);
    let (uuid, stack) = tenant.identity().await?;
    tenant.delete().await?;
    tenant.nothing_is_left(&uuid, &stack).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conductor_says_what_its_driver_lacks_in_the_management_cluster() -> Result<()> {
    let mut capi = CapiDeployment::new(Origin::Shipped).await?;
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/kubernetes/magnum-capi-helm.yaml");
    let account = fs::read_to_string(shipped)?
        .replace("magnum-capi-helm", "magnum-that-lacks")
        .replace("verbs: [list, watch]", "verbs: [list]");
    let manifest = capi.deployment.folder.join("account.yaml");
    fs::write(&manifest, account)?;
    let kubeconfig = capi.management.kubeconfig_of_account(&manifest).await?;
    let kubeconfig = kubeconfig.to_str().context("a path that is no text")?;
    capi.deployment.set("capi_helm", "kubeconfig_file", kubeconfig);
    let conductor = capi.conductor().await?;
    wait::until("what the driver lacks", PATIENCE, async || {
        let log = conductor.log();
        let lacks = "lacks=\"the account in the management cluster may not watch helmchartproxies.addons.cluster.x-k8s.io\"";
        ensure!(log.contains(lacks), "{log}");
        Ok(())
    })
    .await?;
    wait::until("the number of them in the metrics", PATIENCE, async || {
        let metrics = capi.deployment.metrics("ours").await?;
        let lacks = "\nmagnum_driver_lacks{driver=\"k8s_capi_helm_v1\"} 1\n";
        ensure!(metrics.contains(lacks), "{metrics}");
        Ok(())
    })
    .await
}
