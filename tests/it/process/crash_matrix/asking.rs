//! How each kind of operation is asked for, and what it leads to.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use magnum_common::ids::ClusterUuid;
use magnum_common::model::NodeGroup;
use magnum_common::secret::Secret;
use magnum_conductor::operations::OperationKind as Kind;
use magnum_conductor::store;
use magnum_config::DatabaseSection;
use magnum_db::Database;
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::raw_rpc::{self, RawRpc};
use magnum_tests::rest::Rest;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(90);

/// The group that is made, changed or taken away.
const POOL: &str = "pool";

/// What a row of the matrix is about.
#[derive(Debug, Clone)]
pub struct Subject {
    pub kind: Kind,
    template: String,
    newer_template: String,
    cluster: String,
    worker: Option<String>,
    pool: String,
}

impl Subject {
    /// Templates, and whatever else has to be there before the request.
    pub async fn prepare(deployment: &Deployment, api: &Api, kind: Kind, driver: &str) -> Result<Self> {
        let mut builder = deployment.conductor("builder").await?;
        let mut subject = Self {
            kind,
            template: api.rest.create_template_for("small", driver).await?,
            newer_template: api.rest.create_template_for("newer", driver).await?,
            cluster: uuid::Uuid::new_v4().to_string(),
            worker: None,
            pool: uuid::Uuid::new_v4().to_string(),
        };
        if kind != Kind::ClusterCreate {
            subject.build(deployment, api).await?;
        }
        if matches!(kind, Kind::NodegroupUpdate | Kind::NodegroupDelete) {
            let mut rpc = RawRpc::connect(&deployment.vhost).await?;
            let create = subject.asked_for(Kind::NodegroupCreate);
            let reply = rpc.call(create.message()?, PATIENCE).await?;
            ensure!(reply["failure"].is_null(), "{}", reply["failure"]);
            api.rest
                .wait_status(&subject.cluster, "UPDATE_COMPLETE", PATIENCE)
                .await?;
        }
        if kind == Kind::ClusterResize {
            // Nodes are chosen for a group that shrinks only.
            drop(api.rest.resize(&subject.cluster, 5).await?.expect(202)?);
            api.rest
                .wait_status(&subject.cluster, "UPDATE_COMPLETE", PATIENCE)
                .await?;
        }
        deployment.settled(PATIENCE).await?;
        builder.terminate(PATIENCE).await?;
        Ok(subject)
    }

    /// Builds the cluster. Needs a conductor.
    async fn build(&mut self, deployment: &Deployment, api: &Api) -> Result<()> {
        self.cluster = api.rest.create_cluster(&self.template, "c", json!({})).await?;
        api.rest
            .wait_status(&self.cluster, "CREATE_COMPLETE", PATIENCE)
            .await?;
        let groups = self.groups(deployment).await?;
        let worker = groups.iter().find(|group| group.name == "default-worker");
        self.worker = worker.map(|group| group.uuid.to_string());
        Ok(())
    }

    /// Several built clusters of the same templates. Needs a conductor.
    pub async fn several(deployment: &Deployment, api: &Api, count: usize) -> Result<Vec<Self>> {
        let template = api.rest.create_template("small").await?;
        let newer_template = api.rest.create_template("newer").await?;
        let mut subjects = Vec::new();
        for _ in 0..count {
            let mut subject = Self {
                kind: Kind::ClusterCreate,
                template: template.clone(),
                newer_template: newer_template.clone(),
                cluster: String::new(),
                worker: None,
                pool: uuid::Uuid::new_v4().to_string(),
            };
            subject.build(deployment, api).await?;
            subjects.push(subject);
        }
        Ok(subjects)
    }

    /// The same cluster and templates, asked for something else.
    pub fn asked_for(&self, kind: Kind) -> Self {
        Self { kind, ..self.clone() }
    }

    /// The cluster.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// Asks through the API where it has a route, and else as an API would cast it. Returns the cluster's uuid.
    pub async fn ask(self, rest: Rest, rpc: RawRpc) -> Result<String> {
        match self.kind {
            Kind::ClusterCreate => return rest.create_cluster(&self.template, "c", json!({})).await,
            Kind::ClusterUpdate => drop(rest.resize(&self.cluster, 2).await?.expect(202)?),
            Kind::ClusterDelete => drop(
                rest.delete(&format!("/clusters/{}", self.cluster))
                    .await?
                    .expect(204)?,
            ),
            _ => rpc.cast(&self.message()?).await?,
        }
        Ok(self.cluster)
    }

    /// The request as a message.
    pub fn message(&self) -> Result<Value> {
        let cluster = raw_rpc::object(
            "Cluster",
            "1.24",
            json!({
                "uuid": self.cluster, "name": "c", "project_id": "noauth", "user_id": "noauth",
                "cluster_template_id": self.template, "labels": {}, "create_timeout": 60,
            }),
        );
        let worker = || -> Result<Value> {
            let uuid = self.worker.as_deref().context("a worker group")?;
            Ok(self.group(uuid, "default-worker", 1))
        };
        let args = match self.kind {
            Kind::ClusterCreate => {
                json!({"cluster": cluster, "master_count": 1, "node_count": 1, "create_timeout": 60})
            }
            Kind::ClusterUpdate => {
                json!({"cluster": cluster, "node_count": 2, "health_status": null, "health_status_reason": null})
            }
            Kind::ClusterDelete => json!({"uuid": self.cluster}),
            Kind::ClusterResize => {
                json!({"cluster": cluster, "node_count": 3, "nodes_to_remove": [], "nodegroup": worker()?})
            }
            Kind::ClusterUpgrade => {
                let template = json!({"uuid": self.newer_template, "name": "newer"});
                let template = raw_rpc::object("ClusterTemplate", "1.21", template);
                json!({"cluster": cluster, "cluster_template": template, "max_batch_size": 1, "nodegroup": worker()?})
            }
            Kind::NodegroupCreate => {
                json!({"cluster": cluster, "nodegroup": self.group(&self.pool, POOL, 2)})
            }
            Kind::NodegroupUpdate => {
                let mut group = self.group(&self.pool, POOL, 2);
                group["magnum_object.data"]["max_node_count"] = json!(7);
                group["magnum_object.changes"] = json!(["max_node_count"]);
                json!({"cluster": cluster, "nodegroup": group})
            }
            Kind::NodegroupDelete => {
                json!({"cluster": cluster, "nodegroup": self.group(&self.pool, POOL, 2)})
            }
            Kind::RotateCaCertificate | Kind::CredentialRotate => json!({"cluster": cluster}),
            Kind::ClusterRebuild => {
                json!({"cluster": cluster, "nodegroup": worker()?, "nodes": []})
            }
            Kind::ClusterReboot => {
                json!({"cluster": cluster, "reboot_type": "hard", "nodegroup": null, "nodes": ["node-1"]})
            }
        };
        let mut message = raw_rpc::request(self.kind.as_str(), args);
        // The project of the clusters that come from the API.
        message["_context_project_id"] = json!("noauth");
        Ok(message)
    }

    fn group(&self, uuid: &str, name: &str, node_count: i32) -> Value {
        raw_rpc::object(
            "NodeGroup",
            "1.2",
            json!({
                "uuid": uuid, "name": name, "cluster_id": self.cluster, "project_id": "noauth",
                "node_count": node_count, "role": "worker", "labels": {}, "node_addresses": [],
            }),
        )
    }

    async fn groups(&self, deployment: &Deployment) -> Result<Vec<NodeGroup>> {
        let section = DatabaseSection {
            connection: Secret::new(deployment.database.url()),
            ..DatabaseSection::default()
        };
        let database = Database::connect(&section).await?;
        let cluster = ClusterUuid::new(self.cluster.clone());
        Ok(database
            .run(move |conn| store::node_groups::of(conn, &cluster))
            .await?)
    }

    /// The status that the cluster has in the end; none when it is gone.
    pub fn leads_to(&self) -> Option<&'static str> {
        match self.kind {
            // Its status is not a credential's business.
            Kind::ClusterCreate | Kind::CredentialRotate => Some("CREATE_COMPLETE"),
            Kind::ClusterDelete => None,
            _ => Some("UPDATE_COMPLETE"),
        }
    }

    /// What only this kind changes.
    pub async fn has_happened(&self, deployment: &Deployment, rest: &Rest, cluster: &str) -> Result<()> {
        let groups = Self {
            cluster: cluster.to_owned(),
            ..self.clone()
        };
        let groups = groups.groups(deployment).await?;
        let find = |name: &str| groups.iter().find(|group| group.name == name);
        let workers = find("default-worker").map(|group| group.node_count);
        let pool = find(POOL);
        match self.kind {
            Kind::ClusterCreate
            | Kind::RotateCaCertificate
            | Kind::CredentialRotate
            | Kind::ClusterRebuild
            | Kind::ClusterReboot => {
                ensure!(workers == Some(1), "{workers:?}");
            }
            Kind::ClusterUpdate => ensure!(workers == Some(2), "{workers:?}"),
            Kind::ClusterResize => ensure!(workers == Some(3), "{workers:?}"),
            Kind::ClusterDelete => ensure!(groups.is_empty(), "{groups:#?}"),
            Kind::ClusterUpgrade => {
                let shown = rest.get(&format!("/clusters/{cluster}")).await?.expect(200)?;
                ensure!(
                    shown["cluster_template_id"] == self.newer_template.as_str(),
                    "{shown}"
                );
            }
            Kind::NodegroupCreate => ensure!(pool.is_some_and(|pool| pool.node_count == 2), "{pool:#?}"),
            Kind::NodegroupUpdate => {
                ensure!(
                    pool.is_some_and(|pool| pool.max_node_count == Some(7)),
                    "{pool:#?}"
                );
            }
            Kind::NodegroupDelete => ensure!(pool.is_none(), "{pool:#?}"),
        }
        let unsettled: Vec<_> = groups
            .iter()
            .filter(|group| !group.status.is_some_and(|status| status.is_complete()))
            .collect();
        if !unsettled.is_empty() {
            bail!("not settled: {unsettled:#?}");
        }
        Ok(())
    }
}
