//! Objects of a management cluster: applied, read, deleted.
//!
//! An object is applied by the server (server-side apply) in the name of a field manager: a second time changes nothing, and fields
//! that others manage stay theirs. What is read is read live, never from a cache.

use std::fmt;

use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, Status};
use kube::{Api, Client};
use serde_json::Value;

use crate::access::ManagementCluster;

/// A kind of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The API group; empty is the core's.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// `MachineDeployment`
    pub name: &'static str,
    /// `machinedeployments`
    pub plural: &'static str,
}

impl Kind {
    const fn new(
        group: &'static str,
        version: &'static str,
        name: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            group,
            version,
            name,
            plural,
        }
    }

    pub(crate) fn resource(self) -> ApiResource {
        let kind = GroupVersionKind::gvk(self.group, self.version, self.name);
        ApiResource::from_gvk_with_plural(&kind, self.plural)
    }
}

/// A project's room.
pub const NAMESPACE: Kind = Kind::new("", "v1", "Namespace", "namespaces");
/// Credentials, certificates, and what helm remembers.
pub const SECRET: Kind = Kind::new("", "v1", "Secret", "secrets");
/// A cluster.
pub const CLUSTER: Kind = Kind::new("cluster.x-k8s.io", "v1beta1", "Cluster", "clusters");
/// The workers of a group.
pub const MACHINE_DEPLOYMENT: Kind = Kind::new(
    "cluster.x-k8s.io",
    "v1beta1",
    "MachineDeployment",
    "machinedeployments",
);
/// A node.
pub const MACHINE: Kind = Kind::new("cluster.x-k8s.io", "v1beta1", "Machine", "machines");
/// The masters of a cluster.
pub const CONTROL_PLANE: Kind = Kind::new(
    "controlplane.cluster.x-k8s.io",
    "v1beta1",
    "KubeadmControlPlane",
    "kubeadmcontrolplanes",
);
/// What the nodes of a cluster stand in.
pub const OPENSTACK_CLUSTER: Kind = Kind::new(
    "infrastructure.cluster.x-k8s.io",
    "v1beta1",
    "OpenStackCluster",
    "openstackclusters",
);
/// An add-on that is a release of helm.
pub const HELM_RELEASE: Kind = Kind::new("addons.stackhpc.com", "v1alpha1", "HelmRelease", "helmreleases");
/// An add-on that is a set of objects.
pub const MANIFESTS: Kind = Kind::new("addons.stackhpc.com", "v1alpha1", "Manifests", "manifests");
/// An add-on of another provider.
pub const HELM_CHART_PROXY: Kind = Kind::new(
    "addons.cluster.x-k8s.io",
    "v1alpha1",
    "HelmChartProxy",
    "helmchartproxies",
);

/// One object.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; `None` where the kind has none.
    pub namespace: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name, self.name)
    }
}

/// What a request that failed means for whoever asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It may succeed later without anybody changing anything.
    Away,
    /// The account may not do that, or is not known: somebody who runs the management cluster can change it.
    Denied,
    /// There is no such kind, or not in this version: somebody who runs the management cluster can change that, too.
    NotServed,
    /// The object is refused as it is.
    Refused,
}

/// A request that failed.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct RequestError {
    /// What was asked.
    pub what: String,
    /// Why it failed.
    #[source]
    pub why: Why,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// The API server does not know the kind. Of an object that is not there, and of a namespace, it tells the name.
    #[error("the API server has no such kind in {0}")]
    NotServed(String),
    /// The API server's answer.
    #[error("HTTP {code}: {said}")]
    Answer {
        /// The HTTP status.
        code: u16,
        /// Its words.
        said: String,
    },
    /// There was none, or none that can be read.
    #[error(transparent)]
    None(Box<kube::Error>),
}

impl Why {
    fn of(kind: Kind, error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if is_not_served(kind, &status) => {
                Self::NotServed(kind.resource().api_version)
            }
            kube::Error::Api(status) => Self::Answer {
                code: status.code,
                said: status.message.clone(),
            },
            other => Self::None(Box::new(other)),
        }
    }
}

/// Whether there is no such kind. Of an object, or a namespace, that is not there an answer tells the name; those of the core are always
/// served.
fn is_not_served(kind: Kind, status: &Status) -> bool {
    let tells_a_name = status
        .details
        .as_ref()
        .is_some_and(|details| !details.name.is_empty());
    status.code == 404 && !kind.group.is_empty() && !tells_a_name
}

impl RequestError {
    fn new(kind: Kind, what: String) -> impl FnOnce(kube::Error) -> Self {
        move |why| Self {
            what,
            why: Why::of(kind, why),
        }
    }

    /// What it means.
    pub fn failure(&self) -> Failure {
        match self.why {
            Why::Answer { code, .. } => match code {
                401 | 403 => Failure::Denied,
                // Of conflicts the next attempt may see nothing; too many requests and a server in trouble pass.
                409 | 429 | 500.. => Failure::Away,
                _ => Failure::Refused,
            },
            Why::NotServed(_) => Failure::NotServed,
            Why::None(_) => Failure::Away,
        }
    }

    /// The API server's own words, if it is what failed.
    pub fn said(&self) -> Option<&str> {
        match &self.why {
            Why::Answer { said, .. } => Some(said),
            Why::NotServed(_) | Why::None(_) => None,
        }
    }
}

impl ManagementCluster {
    fn api(&self, kind: Kind, namespace: Option<&str>) -> Api<DynamicObject> {
        let client: Client = self.client.clone();
        match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &kind.resource()),
            None => Api::all_with(client, &kind.resource()),
        }
    }

    /// Brings the fields of `object` to what they are there, in the name of `manager`, who takes them from others. Its
    /// `apiVersion`, `kind` and `metadata.name` are those of `named`, whatever it says of them.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn apply(
        &self,
        named: Named<'_>,
        manager: &str,
        mut object: Value,
    ) -> Result<(), RequestError> {
        let kind = named.kind.resource();
        object["apiVersion"] = kind.api_version.into();
        object["kind"] = kind.kind.into();
        object["metadata"]["name"] = named.name.into();
        if let Some(namespace) = named.namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        let how = PatchParams::apply(manager).force();
        self.api(named.kind, named.namespace)
            .patch(named.name, &how, &Patch::Apply(&object))
            .await
            .map(drop)
            .map_err(RequestError::new(
                named.kind,
                format!("{named} cannot be applied"),
            ))
    }

    /// The object as it is now; `None`: there is none. That of a kind that is not served is not known: its definition may come back,
    /// and the object with it, or it is there in another version.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn get(&self, of: Named<'_>) -> Result<Option<Value>, RequestError> {
        let found = match self.api(of.kind, of.namespace).get(of.name).await {
            Ok(object) => serde_json::to_value(object)
                .map(Some)
                .map_err(kube::Error::SerdeError),
            Err(kube::Error::Api(status)) if status.code == 404 && !is_not_served(of.kind, &status) => {
                Ok(None)
            }
            Err(error) => Err(error),
        };
        found.map_err(RequestError::new(of.kind, format!("{of} cannot be read")))
    }

    /// The objects of a kind in a namespace that have these labels (`a=b,c=d`). A kind that is not installed has none.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn list(&self, kind: Kind, namespace: &str, labels: &str) -> Result<Vec<Value>, RequestError> {
        let found = self
            .api(kind, Some(namespace))
            .list(&ListParams::default().labels(labels))
            .await
            .and_then(|list| {
                let values = list.items.into_iter().map(serde_json::to_value);
                values.collect::<Result<_, _>>().map_err(kube::Error::SerdeError)
            })
            .map_err(RequestError::new(
                kind,
                format!("{} cannot be listed", kind.plural),
            ));
        match found {
            Err(error) if error.failure() == Failure::NotServed => Ok(Vec::new()),
            other => other,
        }
    }

    /// Puts `object` in the place of the one that was read as it is, with its `resourceVersion`.
    ///
    /// # Errors
    /// Somebody has written it since, which is [`Failure::Away`]; otherwise see [`Failure`].
    pub async fn replace(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        object: &Value,
    ) -> Result<(), RequestError> {
        let failed = RequestError::new(kind, format!("{} {name} cannot be written", kind.name));
        let object: DynamicObject = match serde_json::from_value(object.clone()) {
            Ok(object) => object,
            Err(error) => return Err(failed(kube::Error::SerdeError(error))),
        };
        self.api(kind, Some(namespace))
            .replace(name, &PostParams::default(), &object)
            .await
            .map(drop)
            .map_err(failed)
    }

    /// Deletes the objects of a kind in a namespace that have these labels.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn delete_all(&self, kind: Kind, namespace: &str, labels: &str) -> Result<(), RequestError> {
        self.api(kind, Some(namespace))
            .delete_collection(&DeleteParams::default(), &ListParams::default().labels(labels))
            .await
            .map(drop)
            .map_err(RequestError::new(
                kind,
                format!("{} cannot be deleted", kind.plural),
            ))
    }
}
