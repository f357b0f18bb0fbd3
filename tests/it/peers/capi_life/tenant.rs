//! A tenant with the command `openstack`, and with an eye on the management cluster.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::capi_deployment::{CapiDeployment, Origin};
use magnum_tests::deployment::Api;
use magnum_tests::kubernetes_front::KubernetesFront;
use magnum_tests::openstack_command::OpenstackCommand;
use magnum_tests::process::Program;
use magnum_tests::{probe, wait};
use serde_json::{Value, json};

pub const PATIENCE: Duration = Duration::from_secs(90);

/// The finalizer of the tests.
const KEEPS: &str = "tests.example/keeps";

/// A tenant who has one cluster, `mine`, under our API and whoever is conductor.
pub struct Tenant {
    pub(super) capi: CapiDeployment,
    _api: Api,
    pub(super) conductor: Program,
    openstack: OpenstackCommand,
    /// Where the driver has the cluster.
    namespace: String,
}

impl Tenant {
    /// Of a deployment with a driver of this origin, under our conductor.
    pub async fn new(origin: Origin) -> Result<Self> {
        let capi = CapiDeployment::new(origin).await?;
        let conductor = capi.conductor().await?;
        Self::under(capi, conductor, origin).await
    }

    /// The same under Python's conductor.
    pub async fn of_python(origin: Origin) -> Result<Self> {
        let capi = CapiDeployment::new(origin).await?;
        let conductor = capi.python_conductor().await?;
        Self::under(capi, conductor, origin).await
    }

    /// Of our driver, for which the management cluster is behind a line that a test controls.
    pub async fn behind_a_front() -> Result<(Self, KubernetesFront)> {
        let (capi, front) = CapiDeployment::behind_a_front().await?;
        let conductor = capi.conductor().await?;
        Ok((Self::under(capi, conductor, Origin::Shipped).await?, front))
    }

    async fn under(mut capi: CapiDeployment, conductor: Program, origin: Origin) -> Result<Self> {
        Ok(Self {
            _api: capi.api().await?,
            conductor,
            openstack: capi.tenant("alice").await?,
            capi,
            namespace: origin.namespace(),
        })
    }

    /// Runs `openstack coe LINE`.
    pub async fn run(&mut self, line: &str) -> Result<Value> {
        self.openstack.coe(line).await
    }

    /// A template with an image. One of the packages learns the version in it from the label `kube_tag`.
    pub async fn template(&mut self, name: &str, image: &str, labels: &str) -> Result<()> {
        let line = format!(
            "cluster template create {name} --coe kubernetes --image {image} --external-network public \
             --flavor m1.medium --master-flavor m1.medium --network-driver calico --labels {labels}"
        );
        self.run(&line).await.map(drop)
    }

    /// Runs a command that begins an operation. When it has ended well, the cluster has this status.
    pub async fn change(&mut self, line: &str, status: &str) -> Result<Value> {
        self.begin_and_settle(line).await?;
        self.has_reached(line, status).await
    }

    /// Waits for what a command has begun, as a conductor has recorded. When it has ended well, the cluster has this status.
    pub async fn reaches(&mut self, line: &str, status: &str) -> Result<Value> {
        self.settled(line, 0).await?;
        self.has_reached(line, status).await
    }

    async fn has_reached(&mut self, line: &str, status: &str) -> Result<Value> {
        let shown = self.run("cluster show mine -f json").await?;
        ensure!(shown["status"] == status, "{line}: {shown}");
        ensure!(shown["status_reason"].is_null(), "{line}: {shown}");
        Ok(shown)
    }

    /// Waits until the operation waits for a node group that has failed.
    pub async fn waits_for(&mut self, node_group: &str) -> Result<()> {
        let openstack = &mut self.openstack;
        let expected = format!("Node groups have failed: {node_group}.");
        wait::until("the operation to wait", PATIENCE, async || {
            let shown = openstack.coe("cluster show mine -f json").await?;
            let reason = shown["status_reason"].as_str().unwrap_or_default();
            ensure!(reason.starts_with(&expected), "{shown}");
            ensure!(shown["status"] == "UPDATE_IN_PROGRESS", "{shown}");
            Ok(())
        })
        .await
    }

    /// Runs a command that begins what Python's conductor does, and waits until the cluster has this status.
    pub async fn change_by_python(&mut self, line: &str, status: &str) -> Result<Value> {
        self.run(line).await?;
        self.status(status).await
    }

    /// Waits until the cluster has this status.
    pub async fn status(&mut self, status: &str) -> Result<Value> {
        let openstack = &mut self.openstack;
        wait::until(status, PATIENCE, async || {
            let shown = openstack.coe("cluster show mine -f json").await?;
            ensure!(shown["status"] == status, "{shown}");
            Ok(shown)
        })
        .await
    }

    /// Runs a command that begins an operation, and waits until that has ended well.
    async fn begin_and_settle(&mut self, line: &str) -> Result<()> {
        let known = self.capi.deployment.operations().await?.len();
        self.run(line).await?;
        self.settled(line, known + 1).await
    }

    /// Waits until there are so many operations at least and all have ended, which has to be well.
    async fn settled(&self, line: &str, least: usize) -> Result<()> {
        let operations = self.capi.deployment.settled_with(least, PATIENCE).await?;
        let failed: Vec<&Value> = operations
            .iter()
            .filter(|one| one["state"] != "succeeded")
            .collect();
        ensure!(failed.is_empty(), "{line}: {failed:#?}");
        Ok(())
    }

    /// How many operations our conductors have recorded.
    pub async fn operations(&self) -> Result<usize> {
        Ok(self.capi.deployment.operations().await?.len())
    }

    /// The cluster's uuid, and its name in the management cluster.
    pub async fn identity(&mut self) -> Result<(String, String)> {
        let shown = self.run("cluster show mine -f json").await?;
        let text = |name: &str| shown[name].as_str().map(str::to_owned).context("no text");
        Ok((text("uuid")?, text("cluster_id")?))
    }

    /// A node group has this status and so many nodes.
    pub async fn node_group(&mut self, name: &str, status: &str, nodes: usize) -> Result<()> {
        let shown = self.run(&format!("nodegroup show mine {name} -f json")).await?;
        ensure!(
            shown["status"] == status && shown["node_count"] == nodes,
            "{shown}"
        );
        Ok(())
    }

    /// Waits until the cluster has exactly these machines, so many of each owner, all of them running this version. A package
    /// may say that it is done before controllers have begun.
    pub async fn machines(&mut self, version: &str, expected: &[(&str, usize)]) -> Result<()> {
        let (_, stack) = self.identity().await?;
        let (management, namespace) = (self.capi.management, &self.namespace);
        let expected: Vec<String> = expected
            .iter()
            .flat_map(|(group, count)| vec![format!("{stack}-{group} {version} Running"); *count])
            .collect();
        wait::until("the machines", PATIENCE, async || {
            let mut found = Vec::new();
            for one in management.list(namespace, "machines").await? {
                if one["spec"]["clusterName"] == stack.as_str() {
                    let name = one["metadata"]["name"].as_str().context("a name")?;
                    let owner = name.rsplit_once('-').context("a suffix")?.0;
                    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
                    let (version, phase) = (text(&one["spec"]["version"]), text(&one["status"]["phase"]));
                    found.push(format!("{owner} {version} {phase}"));
                }
            }
            found.sort();
            ensure!(found == expected, "{found:?} instead of {expected:?}");
            Ok(())
        })
        .await
    }

    /// The revisions of the cluster's release, as `number status`.
    pub async fn release(&mut self) -> Result<Vec<String>> {
        let (_, stack) = self.identity().await?;
        let revisions = self.capi.management.revisions(&self.namespace, &stack).await?;
        Ok(revisions
            .into_iter()
            .map(|one| format!("{} {}", one.version, one.status))
            .collect())
    }

    /// Has machine deployments of these node groups fail.
    pub async fn fail_node_groups(&mut self, names: &[&str]) -> Result<()> {
        let (_, stack) = self.identity().await?;
        let management = self.capi.management;
        management.fail_node_groups(&self.namespace, &stack, names).await
    }

    /// How many looks have begun at the cluster's status, and at its health.
    pub async fn looks(&self) -> Result<(u64, u64)> {
        let db = probe::open(&self.capi.deployment.database).await?;
        let query = "SELECT CAST(p.lease_epoch AS CHAR) AS line FROM conductor_cluster_poll p \
                     UNION ALL SELECT CAST(h.lease_epoch AS CHAR) AS line FROM conductor_cluster_health h";
        let found = db.run(move |conn| probe::lines(conn, query)).await?;
        match found.as_slice() {
            [status, health] => Ok((status.parse()?, health.parse()?)),
            other => anyhow::bail!("{other:?}"),
        }
    }

    /// Has something that the tests see to keep the cluster's object from going, or nothing any more.
    pub async fn keep(&mut self, keeps: bool) -> Result<()> {
        let (_, stack) = self.identity().await?;
        let path = format!(
            "/apis/cluster.x-k8s.io/v1beta1/namespaces/{}/clusters/{stack}",
            self.namespace
        );
        let kubernetes = self.capi.management.kubernetes;
        let mut finalizers = kubernetes.get(&path).await?["metadata"]["finalizers"].take();
        let all = finalizers.as_array_mut().context("no finalizers")?;
        match keeps {
            true => all.push(KEEPS.into()),
            false => all.retain(|one| *one != KEEPS),
        }
        let patch = json!({"metadata": {"finalizers": finalizers}});
        kubernetes.merge(&path, &patch).await
    }

    /// What there is of the cluster in the management cluster, as `kind name`.
    pub async fn objects(&mut self) -> Result<Vec<String>> {
        let (uuid, stack) = self.identity().await?;
        self.capi.management.with(&self.namespace, &[&uuid, &stack]).await
    }

    /// Names of application credentials.
    pub async fn credentials(&mut self) -> Result<Vec<String>> {
        Ok(serde_json::from_value(
            self.capi.world.in_cloud().await?["credentials"].clone(),
        )?)
    }

    /// Waits until a look has found the cluster healthy.
    pub async fn is_healthy(&mut self) -> Result<()> {
        self.health("HEALTHY", |_| true).await
    }

    /// Waits until a look has found this health, for such reasons.
    pub async fn health(&mut self, status: &str, is_reason: impl Fn(&Value) -> bool) -> Result<()> {
        let openstack = &mut self.openstack;
        wait::until(status, PATIENCE, async || {
            let shown = openstack.coe("cluster show mine -f json").await?;
            let is_so = shown["health_status"] == status && is_reason(&shown["health_status_reason"]);
            ensure!(is_so, "{shown}");
            Ok(())
        })
        .await
    }

    /// Ids of the servers of a machine deployment.
    pub async fn servers(&mut self, owner: &str) -> Result<Vec<String>> {
        let (_, stack) = self.identity().await?;
        let begin = format!("{stack}-{owner}-");
        let mut servers = Vec::new();
        for one in self.capi.management.list(&self.namespace, "machines").await? {
            if one["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.starts_with(&begin))
            {
                let server = one["spec"]["providerID"].as_str().context("a server")?;
                servers.push(server.trim_start_matches("openstack:///").to_owned());
            }
        }
        Ok(servers)
    }

    /// Deletes the cluster, and waits until it is gone.
    pub async fn delete(&mut self) -> Result<()> {
        let there = self.objects().await?;
        // What is looked for below is found before.
        for kind in ["clusters", "machines", "openstackclusters", "secrets"] {
            ensure!(there.iter().any(|one| one.starts_with(kind)), "{there:?}");
        }
        self.begin_and_settle("cluster delete mine").await?;
        let listed = self.run("cluster list -f json").await?;
        ensure!(listed == json!([]), "{listed}");
        Ok(())
    }

    /// Has Python's conductor delete the cluster, and waits until it is gone.
    pub async fn delete_by_python(&mut self) -> Result<()> {
        self.run("cluster delete mine").await?;
        self.is_gone().await
    }

    /// Waits until the cluster is gone.
    pub async fn is_gone(&mut self) -> Result<()> {
        let openstack = &mut self.openstack;
        wait::until("the cluster to be gone", PATIENCE, async || {
            let listed = openstack.coe("cluster list -f json").await?;
            ensure!(listed == json!([]), "{listed}");
            Ok(())
        })
        .await
    }

    /// Nothing is left of the cluster, and our conductor ends without leaving processes or files.
    pub async fn nothing_is_left(&mut self, uuid: &str, stack: &str) -> Result<()> {
        self.nothing_is_left_of(uuid, stack, &["cluster", "nodegroup", "x509keypair"])
            .await?;
        self.conductor_leaves_nothing().await
    }

    /// Neither the management cluster nor the cloud nor these tables have anything of the cluster.
    pub async fn nothing_is_left_of(&mut self, uuid: &str, stack: &str, tables: &[&str]) -> Result<()> {
        // A look or a question for the cluster's health that has begun before may hold its lock for a moment.
        wait::until(
            "all to be gone from the management cluster",
            PATIENCE,
            async || {
                let left = self.capi.management.with(&self.namespace, &[uuid, stack]).await?;
                ensure!(left.is_empty(), "{left:?}");
                Ok(())
            },
        )
        .await?;
        let cloud = self.capi.world.in_cloud().await?;
        ensure!(
            cloud == json!({"credentials": [], "server_groups": []}),
            "{cloud}"
        );
        let db = probe::open(&self.capi.deployment.database).await?;
        for table in tables {
            let query = format!("SELECT CAST(COUNT(*) AS CHAR) AS line FROM {table}");
            let count = db.run(move |conn| probe::lines(conn, &query)).await?;
            ensure!(count == ["0"], "{count:?} in {table}");
        }
        Ok(())
    }
}
