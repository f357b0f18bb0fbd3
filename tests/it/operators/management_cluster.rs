//! `magnum-driver-manage management-cluster check` says what a management cluster lacks, and what to do, before a tenant finds out.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use magnum_tests::kubernetes::Kubernetes;
use magnum_tests::management_cluster::ManagementCluster;
use magnum_tests::process::{Finished, Launch};
use magnum_tests::{plugin_world, run_dir};

/// What the command says; `KUBECONFIG` names the file.
async fn check(kubeconfig: &Path) -> Result<Finished> {
    Launch::program("magnum-driver-manage")?
        .args(["management-cluster", "check"])
        .env("KUBECONFIG", kubeconfig)
        .finish()
        .await
}

fn folder() -> Result<PathBuf> {
    run_dir::run_dir()?.folder("kubeconfigs")
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_missing_for_the_account_that_deploy_has() -> Result<()> {
    let cluster = ManagementCluster::shared().await?;
    let account = cluster.kubeconfig_of("magnum-capi-helm").await?;
    let checked = check(&account).await?;
    ensure!(checked.status.success(), "{checked:?}");
    ensure!(checked.stdout.contains("nothing is missing"), "{checked:?}");
    ensure!(checked.stdout.contains("| cluster.x-k8s.io "), "{checked:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_permission_that_an_account_lacks_is_named() -> Result<()> {
    let cluster = ManagementCluster::shared().await?;
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/kubernetes/magnum-capi-helm.yaml");
    let poorer = fs::read_to_string(shipped)?
        .replace("magnum-capi-helm", "magnum-poorer")
        .replace(
            "resources: [namespaces]\n    verbs: [create, patch]",
            "resources: [namespaces]\n    verbs: [create]",
        )
        .replace(
            "resources: [machinedeployments/scale]\n    verbs: [get, patch, update]",
            "resources: [machinedeployments/scale]\n    verbs: [get]",
        );
    let manifest = folder()?.join("magnum-poorer.yaml");
    fs::write(&manifest, poorer)?;
    let checked = check(&cluster.kubeconfig_of_account(&manifest).await?).await?;
    ensure!(checked.status.code() == Some(1), "{checked:?}");
    let told: Vec<&str> = checked.stderr.lines().collect();
    ensure!(
        told == [
            "the account may not patch namespaces",
            "the account may not patch machinedeployments/scale.cluster.x-k8s.io",
            "the account may not update machinedeployments/scale.cluster.x-k8s.io",
            "deploy/kubernetes has an account with all these permissions: apply it, and use its token",
        ],
        "{checked:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubernetes_without_cluster_api_and_one_that_is_away_are_told_apart() -> Result<()> {
    let kubernetes = Kubernetes::dedicated().await?;
    let kubeconfig = folder()?.join("kubeconfig");
    fs::write(&kubeconfig, kubernetes.kubeconfig().to_string())?;
    let checked = check(&kubeconfig).await?;
    ensure!(checked.status.code() == Some(1), "{checked:?}");
    for provider in [
        "install Cluster API  ",
        "install Cluster API's provider OpenStack",
        "install the add-on provider",
    ] {
        ensure!(checked.stdout.contains(provider), "{provider}: {checked:?}");
    }
    ensure!(
        checked.stderr.is_empty(),
        "an administrator may do all: {checked:?}"
    );
    kubernetes.kill().await?;
    let checked = check(&kubeconfig).await?;
    ensure!(checked.status.code() == Some(1), "{checked:?}");
    let address = kubernetes.address().to_string();
    let first = checked.stderr.lines().next().context("no reason")?;
    ensure!(
        first.contains(&address) && first.contains("cannot be asked"),
        "{checked:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_read_is_named_and_no_other_is_taken() -> Result<()> {
    let missing = folder()?.join("missing");
    let checked = check(&missing).await?;
    ensure!(checked.status.code() == Some(1), "{checked:?}");
    ensure!(
        checked.stderr.contains(&missing.display().to_string()),
        "{checked:?}"
    );
    ensure!(checked.stdout.is_empty(), "{checked:?}");
    Ok(())
}

/// The driver of `deploy` as an operator checks it on a host that has this `PATH` and this kubeconfig.
async fn check_driver(path: &Path, kubeconfig: &Path) -> Result<Finished> {
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/drivers/k8s_capi_helm_v1");
    Launch::program("magnum-driver-manage")?
        .args([Path::new("check"), &driver])
        .env("PATH", path)
        .env("KUBECONFIG", kubeconfig)
        .finish()
        .await
}

#[tokio::test]
async fn a_host_without_helm_and_without_a_kubeconfig_is_told_what_the_driver_misses() -> Result<()> {
    let folder = folder()?;
    let checked = check_driver(&folder, &folder.join("missing")).await?;
    ensure!(checked.status.code() == Some(1), "{checked:?}");
    let told: Vec<&str> = checked.stderr.lines().collect();
    ensure!(told.len() == 2, "{checked:?}");
    ensure!(
        told[0].ends_with("the command helm is not on PATH: install it where conductors find it"),
        "{checked:?}"
    );
    ensure!(told[1].contains("missing of KUBECONFIG"), "{checked:?}");

    let kubeconfig = folder.join("kubeconfig");
    fs::write(&kubeconfig, plugin_world::kubeconfig_of_none().to_string())?;
    let helm = folder.join("helm");
    fs::write(&helm, "")?;
    let checked = check_driver(&folder, &kubeconfig).await?;
    ensure!(
        checked.stderr.contains("helm is not on PATH"),
        "one that cannot be run: {checked:?}"
    );
    fs::set_permissions(&helm, fs::Permissions::from_mode(0o755))?;
    let checked = check_driver(&folder, &kubeconfig).await?;
    ensure!(
        checked.status.success() && checked.stderr.is_empty(),
        "{checked:?}"
    );
    Ok(())
}
