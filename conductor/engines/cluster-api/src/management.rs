//! A project's room in the management cluster, with errors as drivers have them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::future::try_join_all;
use magnum_common::error::with_causes;
use magnum_common::model::{Action, NodeGroup};
use magnum_driver_api::{Authorities, DriverError, Reason};
use magnum_management_cluster::objects::{
    CLUSTER, CONTROL_PLANE, Failure, HELM_CHART_PROXY, HELM_RELEASE, Kind, MACHINE, MACHINE_DEPLOYMENT,
    MANIFESTS, NAMESPACE, Named as Object, OPENSTACK_CLUSTER, RequestError, SECRET,
};
use magnum_management_cluster::{Connection, ManagementCluster};
use serde_json::{Value, json};

use crate::helm::Release;
use crate::names::{Named, sanitized};
use crate::observed::Objects;
use crate::release::{self, NotUnlocked};
use crate::secrets::{self, CloudAccess, MANAGER};
use crate::watched::OF_CLUSTER;

const AWAY: &str = "the management cluster is not available";

/// The room of one project.
pub struct Management {
    cluster: ManagementCluster,
    /// Its namespace.
    pub namespace: String,
}

/// What a request that failed means for a driver's call. What the API server says of an object is for the cluster's users; what it
/// says of the conductor's account, and where it is, is not.
fn failed(error: &RequestError) -> DriverError {
    let whole = with_causes(error);
    match (error.failure(), error.said()) {
        (Failure::Refused, Some(said)) => {
            DriverError::Permanent(Reason::internal(format!("{error}: {said}"), whole))
        }
        (Failure::Refused | Failure::Away, _) => DriverError::Transient(Reason::internal(AWAY, whole)),
        (Failure::NotServed, _) => DriverError::Transient(Reason::internal(
            "the management cluster does not have Cluster API in a version that this driver speaks",
            whole,
        )),
        // Nothing that the cluster's user could change, and right as soon as an operator has.
        (Failure::Denied, _) => DriverError::Transient(Reason::internal(
            "the management cluster does not let the conductor do what is needed",
            whole,
        )),
    }
}

impl Management {
    /// Of this namespace.
    ///
    /// # Errors
    /// This conductor has no way there.
    pub async fn of(connection: &Connection, namespace: String) -> Result<Self, DriverError> {
        match connection.cluster().await {
            Ok(cluster) => Ok(Self { cluster, namespace }),
            Err(error) => Err(DriverError::NotHere(Reason::internal(
                "this conductor has no management cluster",
                with_causes(&error),
            ))),
        }
    }

    fn object<'a>(&'a self, kind: Kind, name: &'a str) -> Object<'a> {
        Object {
            kind,
            namespace: Some(&self.namespace),
            name,
        }
    }

    async fn get(&self, kind: Kind, name: &str) -> Result<Option<Value>, DriverError> {
        let found = self.cluster.get(self.object(kind, name)).await;
        found.map_err(|error| failed(&error))
    }

    async fn list(&self, kind: Kind, labels: &str) -> Result<Vec<Value>, DriverError> {
        let found = self.cluster.list(kind, &self.namespace, labels).await;
        found.map_err(|error| failed(&error))
    }

    /// Makes the namespace, if it is not there.
    ///
    /// # Errors
    /// As all requests.
    pub async fn make_namespace(&self) -> Result<(), DriverError> {
        let namespace = Object {
            kind: NAMESPACE,
            namespace: None,
            name: &self.namespace,
        };
        let made = self.cluster.apply(namespace, MANAGER, json!({})).await;
        made.map_err(|error| failed(&error))
    }

    async fn apply_secret(&self, name: &str, secret: Value) -> Result<(), DriverError> {
        let applied = self
            .cluster
            .apply(self.object(SECRET, name), MANAGER, secret)
            .await;
        applied.map_err(|error| failed(&error))
    }

    /// Writes a cluster's credential.
    ///
    /// # Errors
    /// As all requests.
    pub async fn apply_credential(
        &self,
        named: Named<'_>,
        access: &CloudAccess<'_>,
    ) -> Result<(), DriverError> {
        let secret = secrets::cloud_credentials(named, access);
        self.apply_secret(&named.cloud_credentials(), secret).await
    }

    /// Writes a cluster's certificates.
    ///
    /// # Errors
    /// As all requests.
    pub async fn apply_certificates(
        &self,
        named: Named<'_>,
        authorities: &Authorities,
    ) -> Result<(), DriverError> {
        for (name, secret) in secrets::certificates(named, authorities) {
            self.apply_secret(&name, secret).await?;
        }
        Ok(())
    }

    /// The id of a cluster's credential; `None`: it has no secret, or one that says none.
    ///
    /// # Errors
    /// As all requests.
    pub async fn credential_id(&self, named: Named<'_>) -> Result<Option<String>, DriverError> {
        let secret = self.get(SECRET, &named.cloud_credentials()).await?;
        Ok(secret.as_ref().and_then(secrets::credential_id))
    }

    /// Removes all secrets of a cluster.
    ///
    /// # Errors
    /// As all requests.
    pub async fn remove_secrets(&self, cluster_uuid: &str) -> Result<(), DriverError> {
        let labels = format!("magnum.openstack.org/cluster-uuid={cluster_uuid}");
        let removed = self.cluster.delete_all(SECRET, &self.namespace, &labels).await;
        removed.map_err(|error| failed(&error))
    }

    /// Marks what a killed helm has left.
    ///
    /// # Errors
    /// As all requests; permanent where the release is none that helm writes.
    pub async fn unlock(
        &self,
        release: Release<'_>,
        attempt: u32,
        now: DateTime<Utc>,
    ) -> Result<(), DriverError> {
        match release::unlock(&self.cluster, release, attempt, now).await {
            Ok(_) => Ok(()),
            Err(NotUnlocked::Request(error)) => Err(failed(&error)),
            Err(unreadable @ NotUnlocked::Unreadable(..)) => Err(DriverError::Permanent(Reason::internal(
                "the cluster's release cannot be read",
                unreadable.to_string(),
            ))),
        }
    }

    /// By their names, which do not depend on the labels that a chart gives them.
    async fn machine_deployments(
        &self,
        named: Named<'_>,
        groups: &[NodeGroup],
    ) -> Result<HashMap<String, Arc<Value>>, DriverError> {
        let workers = groups.iter().filter(|group| !group.is_master());
        let found = try_join_all(workers.map(async |group| {
            let name = named.machine_deployment(group);
            let object = self.get(MACHINE_DEPLOYMENT, &name).await?;
            Ok::<_, DriverError>(object.map(|object| (name, Arc::new(object))))
        }));
        Ok(found.await?.into_iter().flatten().collect())
    }

    /// Reads a cluster's objects live: those that these groups and its status need.
    ///
    /// # Errors
    /// As all requests.
    pub async fn objects(&self, named: Named<'_>, groups: &[NodeGroup]) -> Result<Objects, DriverError> {
        let Some(cluster) = self.get(CLUSTER, named.release).await? else {
            return Ok(Objects::default());
        };
        let control_plane = named.control_plane();
        let of_addons = format!("{OF_CLUSTER}={}", named.release);
        let (infrastructure, control_plane, machine_deployments, releases, manifests, proxies) = tokio::try_join!(
            self.get(OPENSTACK_CLUSTER, named.release),
            self.get(CONTROL_PLANE, &control_plane),
            self.machine_deployments(named, groups),
            self.list(HELM_RELEASE, &of_addons),
            self.list(MANIFESTS, &of_addons),
            self.list(HELM_CHART_PROXY, &of_addons),
        )?;
        let is_leaving = |group: &&NodeGroup| {
            group.status.and_then(|status| status.action()) == Some(Action::Delete)
                && !machine_deployments.contains_key(&named.machine_deployment(group))
        };
        let mut with_machines = HashSet::new();
        for group in groups.iter().filter(is_leaving) {
            let label = sanitized(&group.name);
            let labels = format!(
                "capi.stackhpc.com/cluster={},capi.stackhpc.com/component=worker,capi.stackhpc.com/node-group={label}",
                named.release
            );
            if !self.list(MACHINE, &labels).await?.is_empty() {
                with_machines.insert(label);
            }
        }
        Ok(Objects {
            cluster: Some(Arc::new(cluster)),
            infrastructure: infrastructure.map(Arc::new),
            control_plane: control_plane.map(Arc::new),
            machine_deployments,
            with_machines,
            addons: [releases, manifests, proxies]
                .into_iter()
                .flatten()
                .map(Arc::new)
                .collect(),
        })
    }
}
