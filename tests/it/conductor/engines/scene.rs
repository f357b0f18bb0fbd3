//! A cluster, and what may be asked of a driver for it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use magnum_common::context::{Caller, RequestContext};
use magnum_common::ids::{ClusterUuid, NodeGroupUuid, OperationId, RequestId, TemplateUuid};
use magnum_common::model::{Cluster, ClusterStatus, ClusterTemplate, NodeGroup, RebootType};
use magnum_driver_api::{
    ApiCall, ApiReply, Driver, DriverCall, DriverError, DriverReport, NoProgress, Nodes, ProgressSink,
    Reason, SharedObjects, Shrinking, Task, limits,
};
use magnum_drivers::api_exchange::{NODE_GROUP, NODES};
use magnum_drivers::{ApiMethod, Capabilities};
use tokio_util::sync::CancellationToken;

/// One cluster with the rows around it, as they are when a driver is called.
#[derive(Clone)]
pub struct Scene {
    pub cluster: Cluster,
    pub groups: Vec<NodeGroup>,
    pub template: ClusterTemplate,
    /// What an upgrade goes to.
    pub newer: ClusterTemplate,
    /// Where a driver finds the rows that reads them itself.
    pub rows: Option<Arc<dyn Rows>>,
}

/// Rows of a database.
#[async_trait]
pub trait Rows: Send + Sync {
    /// Those of the scene as it is now.
    async fn of(&self, scene: &Scene) -> Result<SharedObjects>;
}

/// What is asked for: the rows are changed first, as the conductor does, then comes the call.
pub struct TaskCase {
    /// The driver's word for it.
    pub word: &'static str,
    /// Whether a driver with these capabilities must be able to do it.
    pub is_declared: fn(&Capabilities) -> bool,
    /// Changes the rows to what shall be.
    pub change: fn(&mut Scene),
    /// The call.
    pub task: fn(&Scene) -> Task<'_>,
    /// What the rows are when it has been done.
    pub afterwards: fn(&mut Scene),
}

/// Every task but create and delete, in an order in which they can follow each other.
pub const TASKS: &[TaskCase] = &[
    TaskCase {
        word: "update",
        is_declared: |_| true,
        change: |scene| scene.worker().node_count = 2,
        task: |_| Task::Update { rollback: false },
        afterwards: |_| {},
    },
    TaskCase {
        word: "resize",
        is_declared: |_| true,
        change: |scene| scene.worker().node_count = 3,
        task: |scene| Task::Resize {
            node_group: &scene.groups[1].uuid,
            remove: &[],
        },
        afterwards: |_| {},
    },
    TaskCase {
        word: "create_nodegroup",
        is_declared: |_| true,
        change: |scene| {
            let mut group = scene.group("pool", "worker", 2);
            group.status = Some(ClusterStatus::CreateInProgress);
            scene.groups.push(group);
        },
        task: |scene| Task::CreateNodeGroup(&scene.groups[2].uuid),
        afterwards: |scene| scene.groups[2].status = Some(ClusterStatus::CreateComplete),
    },
    TaskCase {
        word: "update_nodegroup",
        is_declared: |_| true,
        change: |scene| scene.groups[2].max_node_count = Some(5),
        task: |scene| Task::UpdateNodeGroup(&scene.groups[2].uuid),
        afterwards: |_| {},
    },
    TaskCase {
        word: "delete_nodegroup",
        is_declared: |_| true,
        change: |scene| scene.groups[2].status = Some(ClusterStatus::DeleteInProgress),
        task: |scene| Task::DeleteNodeGroup(&scene.groups[2].uuid),
        afterwards: |scene| scene.groups.truncate(2),
    },
    TaskCase {
        word: "upgrade",
        is_declared: |capabilities| capabilities.upgrade,
        change: |_| {},
        task: |scene| Task::Upgrade {
            to: &scene.newer,
            node_group: &scene.groups[0].uuid,
            max_batch_size: Some(1),
        },
        afterwards: |_| {},
    },
    TaskCase {
        word: "rotate_ca",
        is_declared: |capabilities| capabilities.rotate_ca,
        change: |scene| scene.cluster.ca_cert_ref = Some("a new CA".into()),
        task: |_| Task::RotateCa,
        afterwards: |_| {},
    },
    TaskCase {
        word: "rotate_credential",
        is_declared: |capabilities| capabilities.rotate_credential,
        change: |_| {},
        task: |_| Task::RotateCredential,
        afterwards: |_| {},
    },
    TaskCase {
        word: "rebuild",
        is_declared: |capabilities| capabilities.rebuild,
        change: |_| {},
        task: |_| Task::Rebuild(EVERY_NODE),
        afterwards: |_| {},
    },
    TaskCase {
        word: "reboot (soft)",
        is_declared: |capabilities| capabilities.soft_reboot,
        change: |_| {},
        task: |scene| Task::Reboot {
            how: RebootType::Soft,
            nodes: Nodes {
                node_group: Some(&scene.groups[1].uuid),
                names: &[],
            },
        },
        afterwards: |_| {},
    },
    TaskCase {
        word: "reboot (hard)",
        is_declared: |capabilities| capabilities.hard_reboot,
        change: |_| {},
        task: |_| Task::Reboot {
            how: RebootType::Hard,
            nodes: EVERY_NODE,
        },
        afterwards: |_| {},
    },
];

const EVERY_NODE: Nodes<'static> = Nodes {
    node_group: None,
    names: &[],
};

impl Scene {
    /// A cluster with a master and a worker, of which nothing exists yet.
    pub fn new() -> Self {
        let template = |name: &str| {
            let mut template = ClusterTemplate::new(TemplateUuid::random());
            template.name = Some(name.to_owned());
            template.coe = Some("kubernetes".into());
            template.cluster_distro = Some("ubuntu".into());
            template
        };
        let (old, newer) = (template("old"), template("newer"));
        let mut cluster = Cluster::new(ClusterUuid::random(), old.uuid.clone());
        cluster.name = Some("c".into());
        cluster.project_id = Some("p".into());
        cluster.status = Some(ClusterStatus::CreateInProgress);
        cluster.ca_cert_ref = Some("the first CA".into());
        let mut scene = Self {
            cluster,
            groups: Vec::new(),
            template: old,
            newer,
            rows: None,
        };
        scene.groups = vec![
            scene.group("default-master", "master", 1),
            scene.group("default-worker", "worker", 1),
        ];
        scene
    }

    fn group(&self, name: &str, role: &str, nodes: i32) -> NodeGroup {
        let cluster = self.cluster.uuid.clone();
        let mut group = NodeGroup::new(NodeGroupUuid::random(), name, cluster, "p", role);
        group.node_count = nodes;
        group
    }

    /// The default worker group.
    pub fn worker(&mut self) -> &mut NodeGroup {
        &mut self.groups[1]
    }

    /// How many nodes shall exist when the call is done.
    pub fn wanted(&self) -> usize {
        let stay = self
            .groups
            .iter()
            .filter(|group| group.status != Some(ClusterStatus::DeleteInProgress));
        stay.map(|group| usize::try_from(group.node_count).unwrap_or(0))
            .sum()
    }

    /// One call, to its end.
    pub async fn call(
        &self,
        driver: &dyn Driver,
        task: Task<'_>,
        operation: &OperationId,
    ) -> Result<DriverReport, DriverError> {
        self.call_until(driver, task, operation, &NoProgress, &CancellationToken::new())
            .await
    }

    /// One call of the driver's own API, without a query.
    pub async fn ask(
        &self,
        driver: &dyn Driver,
        path: &str,
        method: ApiMethod,
    ) -> Result<ApiReply, DriverError> {
        self.ask_with(driver, path, method, &[]).await
    }

    /// The names of the nodes of the default worker group, as the service asks for them.
    pub async fn node_names(&self, driver: &dyn Driver) -> Result<ApiReply, DriverError> {
        let query = [(NODE_GROUP.to_owned(), self.groups[1].uuid.to_string())];
        self.ask_with(driver, NODES, ApiMethod::Get, &query).await
    }

    async fn ask_with(
        &self,
        driver: &dyn Driver,
        path: &str,
        method: ApiMethod,
        query: &[(String, String)],
    ) -> Result<ApiReply, DriverError> {
        let call = ApiCall {
            path,
            method,
            query,
            body: None,
            cluster: &self.cluster,
            node_groups: &self.groups,
            template: &self.template,
            context: &context(),
            operation: None,
            time_left: Duration::from_secs(60),
            cancel: CancellationToken::new(),
        };
        driver.api(&call).await
    }

    /// One call, until it is cancelled.
    pub async fn call_until(
        &self,
        driver: &dyn Driver,
        task: Task<'_>,
        operation: &OperationId,
        progress: &dyn ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<DriverReport, DriverError> {
        let context = context();
        let call = DriverCall {
            objects: self.objects().await?,
            progress,
            cancel: cancel.clone(),
            ..self.about(task, operation, &context)
        };
        driver.carry_out(&call).await
    }

    /// The rows of the scene, for a driver that reads them itself.
    pub async fn objects(&self) -> Result<SharedObjects, DriverError> {
        match &self.rows {
            None => Ok(SharedObjects::default()),
            Some(rows) => rows
                .of(self)
                .await
                .map_err(|error| DriverError::Permanent(Reason::open(format!("no rows: {error}")))),
        }
    }

    /// Which nodes go when the default worker group shrinks to what its row says.
    pub async fn nodes_to_remove(
        &self,
        driver: &dyn Driver,
        from: i32,
        operation: &OperationId,
    ) -> Result<Vec<String>, DriverError> {
        let (worker, context) = (&self.groups[1], context());
        let shrinking = Shrinking {
            node_group: &worker.uuid,
            from,
            to: worker.node_count,
        };
        let resize = Task::Resize {
            node_group: &worker.uuid,
            remove: &[],
        };
        let call = self.about(resize, operation, &context);
        let chosen = driver.nodes_to_remove(&call, shrinking).await;
        limits::accept_nodes(driver.info(), shrinking, chosen)
    }

    fn about<'a>(
        &'a self,
        task: Task<'a>,
        operation: &'a OperationId,
        context: &'a RequestContext,
    ) -> DriverCall<'a> {
        DriverCall {
            task,
            cluster: &self.cluster,
            node_groups: &self.groups,
            template: &self.template,
            context,
            operation,
            attempt: 1,
            time_left: Some(Duration::from_secs(300)),
            objects: SharedObjects::default(),
            progress: &NoProgress,
            cancel: CancellationToken::new(),
        }
    }
}

fn context() -> RequestContext {
    let caller = Caller {
        user_id: Some("u".into()),
        project_id: Some("p".into()),
        ..Caller::default()
    };
    RequestContext::for_caller(&caller, &RequestId::random())
}
