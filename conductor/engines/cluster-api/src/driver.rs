//! The driver `k8s_capi_helm_v1`: a cluster is one release of the chart `openstack-cluster`, which Cluster API builds.
//!
//! Each step may come again: a name is saved before it is used, applied objects change nothing a second time, and helm upgrades what
//! is there. Nothing waits in here for machines: that is what looks are for.

use std::path::PathBuf;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use magnum_common::context::RequestContext;
use magnum_common::error::with_causes;
use magnum_common::model::{Cluster, ClusterStatus, ClusterTemplate, NodeGroup};
use magnum_driver_api::{
    ClusterRef, Driver, DriverCall, DriverError, DriverReport, EngineHost, EngineServices, HealthObservation,
    NodeGroupChanges, Observation, Progress, Reason, Task,
};
use magnum_drivers::{DriverInfo, Problem};
use magnum_engine_process::GuardTiming;
use magnum_management_cluster::needs::Needs;
use magnum_management_cluster::{Connection, check};

use crate::cloud::Questions;
use crate::flavors;
use crate::helm::{self, Chart, Helm, Release};
use crate::helm_values::{self, Choices, Found, Keystone, Rows};
use crate::host_needs;
use crate::labels::Labels;
use crate::management::Management;
use crate::names::{self, Named};
use crate::node_counts;
use crate::observed::Objects;
use crate::options::{CapiHelmSection, LabelDefaultsSection};
use crate::watched;

/// Clusters that are looked at side by side: enough to hide what an answer takes, few enough for the API server.
const AT_A_TIME: usize = 8;

/// The driver.
pub struct CapiHelmDriver {
    info: DriverInfo,
    pub(crate) options: CapiHelmSection,
    labels: LabelDefaultsSection,
    connection: Connection,
    helm: Helm,
    pub(crate) services: EngineServices,
}

/// A permanent failure in these words.
fn refused(error: impl std::fmt::Display) -> DriverError {
    DriverError::Permanent(Reason::open(error.to_string()))
}

impl CapiHelmDriver {
    /// The driver of a folder.
    ///
    /// # Errors
    /// What is wrong with its options.
    pub fn new(host: EngineHost) -> Result<Self, Vec<Problem>> {
        let options: CapiHelmSection = host.services.options.section()?;
        let labels = host.services.options.section()?;
        let kubeconfig = Some(&options.kubeconfig_file).filter(|file| !file.is_empty());
        Ok(Self {
            info: host.folder.manifest.info.clone(),
            labels,
            connection: Connection::new(kubeconfig.map(PathBuf::from), watched::WATCHED),
            helm: Helm {
                guard: host.services.guard.clone(),
                timing: GuardTiming::for_lease(host.services.lease),
            },
            options,
            services: host.services,
        })
    }

    fn namespace(&self, cluster: &Cluster) -> String {
        let project = cluster.project_id.as_deref().unwrap_or_default();
        names::namespace(&self.options.namespace_prefix, project)
    }

    pub(crate) async fn management(&self, cluster: &Cluster) -> Result<Management, DriverError> {
        Management::of(&self.connection, self.namespace(cluster)).await
    }

    /// A cluster's objects as they were lately, without machines. `None`: that is not known without asking.
    pub(crate) async fn watched(&self, named: Named<'_>, groups: &[NodeGroup]) -> Option<Objects> {
        // Who asks then is told why there is no way there.
        let watches = self.connection.watches().await.ok()?;
        watched::objects(&watches, &self.namespace(named.cluster), named, groups)
    }

    /// One way to the cloud for a whole call: Keystone is asked for the catalog once.
    pub(crate) async fn questions<'a>(&'a self, call: &DriverCall<'_>) -> Result<Questions<'a>, DriverError> {
        Questions::of(&self.services.cloud, call.context).await
    }

    /// Checks the flavors of masters and of these groups.
    async fn check_flavors<'a>(
        &self,
        questions: &Questions<'_>,
        groups: impl IntoIterator<Item = &'a NodeGroup>,
    ) -> Result<(), DriverError> {
        let with_memory = questions.flavors(self.options.minimum_flavor_ram).await?;
        for group in groups {
            let flavor = group.flavor_id.as_deref().unwrap_or_default();
            flavors::check(flavor, &with_memory, &self.options).map_err(refused)?;
        }
        Ok(())
    }

    /// The group that a call is about, with a flavor and bounds that it can have.
    async fn check_group(&self, call: &DriverCall<'_>, questions: &Questions<'_>) -> Result<(), DriverError> {
        let uuid = call.task.node_group();
        let group = call.node_groups.iter().find(|group| Some(&group.uuid) == uuid);
        if let (Task::CreateNodeGroup(_), Some(group)) = (call.task, group) {
            names::check_new_group(group, call.node_groups).map_err(refused)?;
        }
        self.check_flavors(questions, group).await?;
        let labels = Labels::of(call.cluster, call.template);
        if let Some(group) = group
            && labels.flag("auto_scaling_enabled", self.labels.auto_scaling_enabled)
        {
            node_counts::bounds(group, labels, &self.labels).map_err(refused)?;
        }
        Ok(())
    }

    /// The cluster with its release's name, which is made and saved if it has none.
    async fn with_release(&self, call: &DriverCall<'_>) -> Result<Cluster, DriverError> {
        let mut cluster = call.cluster.clone();
        if Named::of(&cluster).is_none() {
            let name = cluster.name.as_deref().unwrap_or(cluster.uuid.as_str());
            let release = names::release(name, &self.services.random.digits(12));
            let mut report = DriverReport::default();
            report.cluster.stack_id = Some(release.clone());
            call.objects.save(report).await?;
            cluster.stack_id = Some(release);
        }
        Ok(cluster)
    }

    async fn observation(&self, one: &ClusterRef) -> Observation {
        Observation {
            cluster: one.cluster.uuid.clone(),
            result: self.observe_one(one).await,
        }
    }

    async fn health_observation(&self, one: &ClusterRef) -> HealthObservation {
        HealthObservation {
            cluster: one.cluster.uuid.clone(),
            result: self.health_of(one).await,
        }
    }

    async fn create(&self, call: &DriverCall<'_>) -> Result<DriverReport, DriverError> {
        let questions = self.questions(call).await?;
        self.check_flavors(&questions, call.node_groups).await?;
        let cluster = self.with_release(call).await?;
        let management = self.management(&cluster).await?;
        management.make_namespace().await?;
        say(call, "The cluster's credential is made");
        self.ensure_credential(call, &questions, &cluster, &management)
            .await?;
        self.apply_certificates(&cluster, &management).await?;
        self.upgrade(call, &questions, &cluster, call.template, None)
            .await?;
        Ok(in_progress(&cluster, ClusterStatus::CreateInProgress))
    }

    /// Brings the release to what the rows say.
    async fn upgrade(
        &self,
        call: &DriverCall<'_>,
        questions: &Questions<'_>,
        cluster: &Cluster,
        template: &ClusterTemplate,
        without: Option<&NodeGroup>,
    ) -> Result<(), DriverError> {
        let named =
            Named::of(cluster).ok_or_else(|| refused("the cluster has no release: it was never made"))?;
        let found = found(questions, call.context, cluster, template).await?;
        let rows = Rows {
            named,
            groups: call.node_groups,
            without,
            template,
        };
        let cinder = self.services.options.cinder();
        let choices = Choices {
            helm: &self.options,
            labels: &self.labels,
            boot_volume_type: &cinder.default_boot_volume_type,
            boot_volume_size: i64::from(cinder.default_boot_volume_size),
        };
        let values = helm_values::values(rows, choices, &found).map_err(refused)?;
        let management = self.management(cluster).await?;
        let release = Release {
            name: named.release,
            namespace: &management.namespace,
        };
        management
            .unlock(release, call.attempt, self.services.clock.utc_now())
            .await?;
        let version = Labels::of(cluster, template).chart_version(&self.options.default_helm_chart_version);
        let chart = Chart {
            name: &self.options.helm_chart_name,
            repository: &self.options.helm_chart_repo,
            version: &version,
        };
        say(call, "The cluster's release is brought up to date");
        let arguments = helm::upgrade(release, chart, &self.options.kubeconfig_file);
        self.helm.upgrade(&arguments, values, &call.cancel).await
    }

    /// Has the controllers take the cluster away. Its secrets and its credential go when it is gone.
    async fn delete(&self, call: &DriverCall<'_>) -> Result<DriverReport, DriverError> {
        let mut report = in_progress(call.cluster, ClusterStatus::DeleteInProgress);
        report.node_groups = all_groups(call.node_groups, ClusterStatus::DeleteInProgress);
        if let Some(named) = Named::of(call.cluster) {
            let namespace = self.namespace(call.cluster);
            let release = Release {
                name: named.release,
                namespace: &namespace,
            };
            let arguments = helm::uninstall(release, &self.options.kubeconfig_file);
            self.helm.uninstall(&arguments, &call.cancel).await?;
        }
        Ok(report)
    }
}

/// What the cloud has of that which the rows name, all asked at once.
async fn found(
    questions: &Questions<'_>,
    context: &RequestContext,
    cluster: &Cluster,
    template: &ClusterTemplate,
) -> Result<Found, DriverError> {
    let named = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
    let (network, subnet) = (named(&cluster.fixed_network), named(&cluster.fixed_subnet));
    let image = template.image_id.as_deref().unwrap_or_default();
    let external = template.external_network_id.as_deref().unwrap_or_default();
    let (image, external_network, network, subnet, volume_types) = tokio::try_join!(
        questions.image(image),
        questions.external_network(external),
        async {
            match &network {
                Some(network) => questions.fixed_network(network).await.map(Some),
                None => Ok(None),
            }
        },
        async {
            match &subnet {
                Some(subnet) => questions.fixed_subnet(subnet).await.map(Some),
                None => Ok(None),
            }
        },
        questions.volume_types(),
    )?;
    let text = |name: &str| {
        context
            .get(name)
            .and_then(|value| value.as_str().map(str::to_owned))
    };
    Ok(Found {
        image,
        external_network,
        network,
        subnet,
        volume_types,
        keystone: Keystone {
            auth_url: text("auth_url"),
            project: text("project_id"),
        },
    })
}

fn say(call: &DriverCall<'_>, text: &str) {
    call.progress.report(Progress {
        text: text.to_owned(),
        percent: None,
    });
}

/// The cluster is on its way to what was asked for. With the release's name, which groups that have none take over.
fn in_progress(cluster: &Cluster, status: ClusterStatus) -> DriverReport {
    let mut report = DriverReport::status(status);
    report.cluster.stack_id = cluster.stack_id.clone();
    report
}

fn all_groups(groups: &[NodeGroup], status: ClusterStatus) -> Vec<NodeGroupChanges> {
    let changes = groups.iter().map(|group| NodeGroupChanges {
        status: Some(status),
        ..NodeGroupChanges::of(group.uuid.clone())
    });
    changes.collect()
}

#[async_trait]
impl Driver for CapiHelmDriver {
    fn info(&self) -> &DriverInfo {
        &self.info
    }

    async fn carry_out(&self, call: &DriverCall<'_>) -> Result<DriverReport, DriverError> {
        let updating = || in_progress(call.cluster, ClusterStatus::UpdateInProgress);
        match call.task {
            Task::Create => self.create(call).await,
            Task::Delete => self.delete(call).await,
            Task::Update { .. } | Task::Resize { .. } => {
                let questions = self.questions(call).await?;
                self.upgrade(call, &questions, call.cluster, call.template, None)
                    .await?;
                Ok(updating())
            }
            Task::Upgrade { to, .. } => {
                let questions = self.questions(call).await?;
                self.check_flavors(&questions, call.node_groups).await?;
                self.upgrade(call, &questions, call.cluster, to, None).await?;
                let mut report = updating();
                report.node_groups = all_groups(call.node_groups, ClusterStatus::UpdateInProgress);
                Ok(report)
            }
            Task::CreateNodeGroup(_) | Task::UpdateNodeGroup(_) => {
                let questions = self.questions(call).await?;
                self.check_group(call, &questions).await?;
                self.upgrade(call, &questions, call.cluster, call.template, None)
                    .await?;
                Ok(updating())
            }
            Task::DeleteNodeGroup(lost) => {
                let lost = call.node_groups.iter().find(|group| group.uuid == *lost);
                let questions = self.questions(call).await?;
                self.upgrade(call, &questions, call.cluster, call.template, lost)
                    .await?;
                Ok(updating())
            }
            Task::RotateCredential => self.rotate_credential(call).await,
            Task::RotateCa | Task::Rebuild(_) | Task::Reboot { .. } => {
                Err(DriverError::NotSupported(Reason::open(format!(
                    "'{}' is not supported by this driver.",
                    call.task.as_str()
                ))))
            }
        }
    }

    async fn lacks(&self) -> Vec<String> {
        let mut lacks = host_needs::missing_helm();
        match self.connection.cluster().await {
            Ok(cluster) => match check(&cluster, Needs::CapiHelm).await {
                Ok(report) => lacks.extend(report.missing()),
                Err(error) => lacks.push(with_causes(&error)),
            },
            Err(error) => lacks.push(with_causes(&error)),
        }
        lacks
    }

    async fn observe(&self, clusters: &[ClusterRef]) -> Result<Vec<Observation>, DriverError> {
        let looks: Vec<_> = clusters.iter().map(|one| self.observation(one).boxed()).collect();
        Ok(stream::iter(looks).buffered(AT_A_TIME).collect().await)
    }

    async fn health(&self, clusters: &[ClusterRef]) -> Result<Vec<HealthObservation>, DriverError> {
        let looks: Vec<_> = clusters
            .iter()
            .map(|one| self.health_observation(one).boxed())
            .collect();
        Ok(stream::iter(looks).buffered(AT_A_TIME).collect().await)
    }
}
