//! The management cluster of drivers for Cluster API: the real API server of [`crate::kubernetes`] with Cluster API's real
//! kinds. Releases in it are those of [`crate::helm`].
//!
//! One for all tests of the process; a project's clusters lie in a namespace of its own, or under names of their own. Doubles
//! of Cluster API's controllers have clusters and machines come about; no machine runs, and whoever asks for a cluster's own
//! API server gets this one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::kubernetes::Kubernetes;
use crate::oslo_peer::python;
use crate::process::{Launch, little_environment};
use crate::run_dir::{base, run_dir};
use crate::server::ServerProcess;

/// The API server, as an operator of drivers has it.
#[derive(Debug)]
pub struct ManagementCluster {
    /// The server.
    pub kubernetes: &'static Kubernetes,
    /// A file that names it, and an administrator.
    pub kubeconfig: PathBuf,
}

impl ManagementCluster {
    /// The one of this process.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<ManagementCluster> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    async fn start() -> Result<Self> {
        let kubernetes = Kubernetes::shared().await?;
        let kubeconfig = run_dir()?.folder("management-cluster")?.join("kubeconfig");
        fs::write(&kubeconfig, kubernetes.kubeconfig().to_string())?;
        let kinds = Launch::command("kinds-of-cluster-api", Command::new(python()?))
            .args(["-B"])
            .args([testbed().join("crds.py"), kubeconfig.clone()]);
        kinds.output().await?;
        Ok(Self {
            kubernetes,
            kubeconfig,
        })
    }

    /// The same with controllers, which see to all clusters in it from now on.
    pub async fn controlled() -> Result<&'static Self> {
        static CONTROLLERS: OnceCell<ServerProcess> = OnceCell::const_new();
        let cluster = Self::shared().await?;
        let start = async || {
            let mut command = Command::new(python()?);
            little_environment(&mut command)
                .arg("-B")
                .arg(testbed().join("controllers.py"))
                .arg(&cluster.kubeconfig);
            ServerProcess::spawn("cluster-api-controllers", command, Signal::SIGKILL)
        };
        CONTROLLERS.get_or_try_init(start).await?;
        Ok(cluster)
    }

    /// A file that names it and the account of a driver, with what `deploy/kubernetes` allows that and nothing else.
    pub async fn kubeconfig_of(&self, driver: &str) -> Result<PathBuf> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/kubernetes");
        self.kubeconfig_of_account(&manifest.join(format!("{driver}.yaml")))
            .await
    }

    /// A file that names it and the service account in a manifest, which is made with all that is in there.
    pub async fn kubeconfig_of_account(&self, manifest: &Path) -> Result<PathBuf> {
        let own = run_dir()?.folder("management-cluster")?.join("kubeconfig");
        let account = Launch::command("account", Command::new(python()?))
            .args(["-B"])
            .args([testbed().join("account.py"), self.kubeconfig.clone()])
            .args([manifest, &own]);
        account.output().await?;
        Ok(own)
    }

    /// Has the machine deployments of these node groups of a cluster end with the phase `Failed`, and of no others of it.
    pub async fn fail_node_groups(&self, namespace: &str, stack: &str, names: &[&str]) -> Result<()> {
        let names: serde_json::Map<String, Value> = names
            .iter()
            .map(|name| (format!("{stack}-{name}"), json!("")))
            .collect();
        // Each cluster has a manager of its own, who does not touch what the others have.
        let path =
            format!("/api/v1/namespaces/{namespace}/configmaps/failing-node-groups?fieldManager={stack}");
        let switch = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "failing-node-groups"}, "data": names});
        self.kubernetes.apply(&path, &switch).await.map(drop)
    }

    /// Makes a namespace that may be there already.
    pub async fn namespace(&self, name: &str) -> Result<()> {
        let path = format!("/api/v1/namespaces/{name}?fieldManager=tests");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.kubernetes.apply(&path, &namespace).await.map(drop)
    }

    /// The objects of a kind in a namespace; `kind` is one of [`KINDS`], by its last word.
    pub async fn list(&self, namespace: &str, kind: &str) -> Result<Vec<Value>> {
        let path = KINDS.iter().find(|path| path.rsplit('/').next() == Some(kind));
        let (version, kind) = path
            .and_then(|path| path.rsplit_once('/'))
            .context("an unknown kind")?;
        let path = format!("/{version}/namespaces/{namespace}/{kind}");
        let found = self.kubernetes.get(&path).await?;
        Ok(found["items"].as_array().context("no list")?.clone())
    }

    /// What is in a namespace that has one of these words in its name or its labels, as `kind name`.
    pub async fn with(&self, namespace: &str, words: &[&str]) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for kind in KINDS.iter().filter_map(|path| path.rsplit('/').next()) {
            for one in self.list(namespace, kind).await? {
                let metadata = &one["metadata"];
                let text = format!("{} {}", metadata["name"], metadata["labels"]);
                if words.iter().any(|word| text.contains(word)) {
                    found.push(format!("{kind} {}", metadata["name"].as_str().context("a name")?));
                }
            }
        }
        Ok(found)
    }

    /// Has the leases with this word in their name be out of date, as they will be if nobody renews them. There has to be one.
    pub async fn expire_leases(&self, namespace: &str, word: &str) -> Result<()> {
        let mut found = 0;
        for lease in self.list(namespace, "leases").await? {
            let name = lease["metadata"]["name"].as_str().context("a name")?;
            if name.contains(word) {
                let path = format!(
                    "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}?fieldManager=tests&force=true"
                );
                let old = json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
                    "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}});
                self.kubernetes.apply(&path, &old).await?;
                found += 1;
            }
        }
        ensure!(found > 0, "no lease has {word} in its name");
        Ok(())
    }

    /// The revisions of a release as helm keeps them, the oldest first.
    pub async fn revisions(&self, namespace: &str, release: &str) -> Result<Vec<Revision>> {
        let path =
            format!("/api/v1/namespaces/{namespace}/secrets?labelSelector=owner%3Dhelm,name%3D{release}");
        let found = self.kubernetes.get(&path).await?;
        let items = found["items"].as_array().context("no list")?;
        let mut revisions = items
            .iter()
            .map(Revision::read)
            .collect::<Result<Vec<Revision>>>()?;
        revisions.sort_by_key(|one| one.version);
        Ok(revisions)
    }
}

/// Where the kinds are that driver packages and controllers make objects of.
pub const KINDS: &[&str] = &[
    "api/v1/secrets",
    "api/v1/configmaps",
    "api/v1/serviceaccounts",
    "apis/rbac.authorization.k8s.io/v1/roles",
    "apis/rbac.authorization.k8s.io/v1/rolebindings",
    "apis/apps/v1/deployments",
    "apis/coordination.k8s.io/v1/leases",
    "apis/cluster.x-k8s.io/v1beta1/clusters",
    "apis/cluster.x-k8s.io/v1beta1/machinedeployments",
    "apis/cluster.x-k8s.io/v1beta1/machinesets",
    "apis/cluster.x-k8s.io/v1beta1/machines",
    "apis/cluster.x-k8s.io/v1beta1/machinehealthchecks",
    "apis/controlplane.cluster.x-k8s.io/v1beta1/kubeadmcontrolplanes",
    "apis/bootstrap.cluster.x-k8s.io/v1beta1/kubeadmconfigtemplates",
    "apis/infrastructure.cluster.x-k8s.io/v1beta1/openstackclusters",
    "apis/infrastructure.cluster.x-k8s.io/v1beta1/openstackmachines",
    "apis/infrastructure.cluster.x-k8s.io/v1beta1/openstackmachinetemplates",
    "apis/addons.stackhpc.com/v1alpha1/helmreleases",
    "apis/addons.stackhpc.com/v1alpha1/manifests",
    "apis/addons.cluster.x-k8s.io/v1beta1/clusterresourcesets",
];

/// A revision of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// Its number.
    pub version: u64,
    /// Its status, of which the Secret's label and the revision itself both speak.
    pub status: String,
    /// What helm says of how it came to that.
    pub description: String,
}

impl Revision {
    fn read(secret: &Value) -> Result<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
        let release = STANDARD.decode(STANDARD.decode(text(&secret["data"]["release"])?)?)?;
        let release: Value = serde_json::from_reader(GzDecoder::new(release.as_slice()))?;
        let status = text(&release["info"]["status"])?;
        let labels = &secret["metadata"]["labels"];
        let version = release["version"].as_u64().context("no version")?;
        let labelled: Option<u64> = labels["version"].as_str().and_then(|one| one.parse().ok());
        ensure!(
            labels["status"] == status.as_str() && labelled == Some(version),
            "{labels} and {status} {version}"
        );
        Ok(Self {
            version,
            status,
            description: text(&release["info"]["description"])?,
        })
    }
}

/// Where the doubles of what is around an API server lie.
pub(crate) fn testbed() -> PathBuf {
    base().with_file_name("testbed").join("kubernetes")
}
