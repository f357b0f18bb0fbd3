//! The tests' helm keeps releases as helm 3 does, on a real API server that knows Cluster API's real kinds.

use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::helm::Helm;
use magnum_tests::management_cluster::{ManagementCluster, Revision};
use magnum_tests::wait;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

const PATIENCE: Duration = Duration::from_secs(60);
const BUSY: &str = "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress\n";

/// A release in a namespace of its own.
struct Release {
    cluster: &'static ManagementCluster,
    helm: Helm,
    namespace: &'static str,
}

impl Release {
    async fn new(namespace: &'static str) -> Result<Self> {
        let cluster = ManagementCluster::shared().await?;
        cluster.namespace(namespace).await?;
        Ok(Self {
            cluster,
            helm: Helm::new()?,
            namespace,
        })
    }

    async fn start(&self, args: &[&str], values: &Value) -> Result<Child> {
        let mut command = Command::from(self.helm.command(&self.cluster.kubeconfig));
        let mut child = command
            .args(args)
            .args(["--namespace", self.namespace])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut input = child.stdin.take().context("no input")?;
        input.write_all(values.to_string().as_bytes()).await?;
        Ok(child)
    }

    async fn run(&self, args: &[&str]) -> Result<Output> {
        Ok(self.start(args, &Value::Null).await?.wait_with_output().await?)
    }

    /// `helm upgrade --install` of a cluster with node groups.
    async fn upgrading(&self, groups: &[(&str, u32)]) -> Result<Child> {
        let args = "upgrade mine openstack-cluster --install --history-max 3 --output json --timeout 5m --values - \
                    --repo https://charts.example.test --version 0.1";
        let args: Vec<&str> = args.split_whitespace().collect();
        self.start(&args, &values(groups)).await
    }

    async fn upgrade(&self, groups: &[(&str, u32)]) -> Result<Output> {
        Ok(self.upgrading(groups).await?.wait_with_output().await?)
    }

    /// Waits for the helm that is held in this release; its process.
    async fn held(&self) -> Result<Pid> {
        wait::until("a held helm", PATIENCE, async || {
            let held = self.helm.held()?;
            let one = held.first().context("none")?;
            ensure!(one.release == "mine", "{held:?}");
            Ok(Pid::from_raw(one.pid))
        })
        .await
    }

    async fn revisions(&self) -> Result<Vec<Revision>> {
        self.cluster.revisions(self.namespace, "mine").await
    }

    async fn statuses(&self) -> Result<Vec<String>> {
        let revisions = self.revisions().await?.into_iter();
        Ok(revisions
            .map(|one| format!("{} {}", one.version, one.status))
            .collect())
    }

    /// Names of the objects of a kind of the group `cluster.x-k8s.io`.
    async fn names(&self, kinds: &str) -> Result<Vec<String>> {
        let path = format!(
            "/apis/cluster.x-k8s.io/v1beta1/namespaces/{}/{kinds}",
            self.namespace
        );
        let found = self.cluster.kubernetes.get(&path).await?;
        let items = found["items"].as_array().context("no list")?;
        let name = |one: &Value| one["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Ok(items.iter().map(name).collect())
    }
}

/// What a driver gives to the chart.
fn values(groups: &[(&str, u32)]) -> Value {
    let groups: Vec<Value> = groups
        .iter()
        .map(|(name, count)| json!({"name": name, "machineFlavor": "m1.small", "machineCount": count}))
        .collect();
    json!({
        "kubernetesVersion": "1.33.4", "machineImageId": "00000001-1111-4111-8111-111111111111",
        "machineSSHKeyName": null, "cloudCredentialsSecretName": "mine-cloud-credentials",
        "apiServer": {"enableLoadBalancer": true, "loadBalancerProvider": "amphora"},
        "clusterNetworking": {
            "externalNetworkId": "0000000a-2222-4222-8222-222222222222",
            "internalNetwork": {"networkFilter": null, "subnetFilter": null, "nodeCidr": "10.0.0.0/24"}},
        "controlPlane": {"machineFlavor": "m1.medium", "machineCount": 1, "healthCheck": {"enabled": true}},
        "nodeGroupDefaults": {"healthCheck": {"enabled": true}},
        "nodeGroups": groups,
    })
}

fn succeeded(output: &Output) -> Result<()> {
    ensure!(output.status.success(), "{output:?}");
    Ok(())
}

fn failed(output: &Output, error: &str) -> Result<()> {
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1) && told == error, "{output:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_upgrade_of_a_release_is_a_revision_and_changes_what_differs() -> Result<()> {
    let release = Release::new("helm-life").await?;
    let made = release.upgrade(&[("default-worker", 1)]).await?;
    succeeded(&made)?;
    let shown: Value = serde_json::from_slice(&made.stdout)?;
    ensure!(shown["info"]["status"] == "deployed", "{shown}");
    ensure!(release.names("clusters").await? == ["mine"]);
    ensure!(release.names("machinedeployments").await? == ["mine-default-worker"]);

    succeeded(&release.upgrade(&[("default-worker", 1), ("pool", 2)]).await?)?;
    ensure!(release.names("machinedeployments").await? == ["mine-default-worker", "mine-pool"]);
    ensure!(release.statuses().await? == ["1 superseded", "2 deployed"]);
    for _ in 3..=4 {
        succeeded(&release.upgrade(&[("default-worker", 3)]).await?)?;
    }
    ensure!(release.names("machinedeployments").await? == ["mine-default-worker"]);
    let workers =
        "/apis/cluster.x-k8s.io/v1beta1/namespaces/helm-life/machinedeployments/mine-default-worker";
    let workers = release.cluster.kubernetes.get(workers).await?;
    ensure!(workers["spec"]["replicas"] == 3, "{workers}");
    ensure!(release.statuses().await? == ["2 superseded", "3 superseded", "4 deployed"]);

    succeeded(&release.run(&["uninstall", "mine", "--timeout", "5m"]).await?)?;
    // Controllers, if there are any in this process, need their time for it.
    wait::until("the cluster to go", PATIENCE, async || {
        let names = release.names("clusters").await?;
        ensure!(names.is_empty(), "{names:?}");
        Ok(())
    })
    .await?;
    ensure!(release.revisions().await?.is_empty());
    let unknown = release.run(&["delete", "mine"]).await?;
    failed(
        &unknown,
        "Error: uninstall: Release not loaded: mine: release: not found\n",
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_helm_that_is_killed_leaves_a_pending_revision_which_refuses_upgrades_until_a_rollback()
-> Result<()> {
    let release = Release::new("helm-killed").await?;
    succeeded(&release.upgrade(&[("default-worker", 1)]).await?)?;
    release.helm.hold()?;
    let mut held = release.upgrading(&[("default-worker", 2), ("pool", 1)]).await?;
    kill(release.held().await?, Signal::SIGKILL)?;
    held.wait().await?;
    release.helm.let_go()?;

    ensure!(release.statuses().await? == ["1 deployed", "2 pending-upgrade"]);
    ensure!(release.names("machinedeployments").await? == ["mine-default-worker"]);
    failed(&release.upgrade(&[("default-worker", 2)]).await?, BUSY)?;
    ensure!(release.statuses().await? == ["1 deployed", "2 pending-upgrade"]);

    succeeded(&release.run(&["rollback", "mine"]).await?)?;
    succeeded(&release.upgrade(&[("default-worker", 2)]).await?)?;
    ensure!(release.statuses().await? == ["2 pending-upgrade", "3 superseded", "4 deployed"]);
    succeeded(&release.run(&["uninstall", "mine"]).await?)?;
    ensure!(release.revisions().await?.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_that_was_killed_is_pending_and_one_that_was_asked_to_end_has_failed() -> Result<()> {
    let release = Release::new("helm-first").await?;
    release.helm.hold()?;
    let mut held = release.upgrading(&[("default-worker", 1)]).await?;
    kill(release.held().await?, Signal::SIGKILL)?;
    held.wait().await?;
    release.helm.let_go()?;
    ensure!(release.statuses().await? == ["1 pending-install"]);
    failed(&release.upgrade(&[("default-worker", 1)]).await?, BUSY)?;
    succeeded(&release.run(&["uninstall", "mine"]).await?)?;

    let release = Release {
        helm: Helm::new()?,
        ..release
    };
    release.helm.hold()?;
    let ended = release.upgrading(&[("default-worker", 1)]).await?;
    kill(release.held().await?, Signal::SIGTERM)?;
    failed(&ended.wait_with_output().await?, "Error: context canceled\n")?;
    release.helm.let_go()?;
    ensure!(release.statuses().await? == ["1 failed"]);
    succeeded(&release.upgrade(&[("default-worker", 1)]).await?)?;
    ensure!(release.statuses().await? == ["1 superseded", "2 deployed"]);
    succeeded(&release.run(&["uninstall", "mine"]).await?)
}
