//! Protocol 1 between the conductor and a driver's program: one JSON request in, JSON lines out.
//!
//! The whole of it, for authors of drivers, is docs/drivers.md; this is its code and nothing else. Answers are
//! read strictly: an unknown field is a mistake that its author wants to hear about.

use std::borrow::Cow;

use magnum_common::context::RequestContext;
use magnum_common::ids::{ClusterUuid, NodeGroupUuid};
use magnum_common::model::{
    Cluster, ClusterStatus, ClusterTemplate, HealthStatus, NodeGroup, StringMap, Timestamp,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use magnum_driver_api::{
    ClusterChanges, ClusterRef, DriverCall, DriverError, DriverReport, NodeGroupChanges, Progress, Reason,
    Task,
};

/// The protocol's version, sent in each request.
pub const PROTOCOL: u32 = 1;

/// The word of the call that looks at clusters in progress; the others are those of [`Task`].
pub const OBSERVE: &str = "observe";

/// The word of the call that looks at the health of clusters.
pub const HEALTH: &str = "health";

/// The request of a call for one cluster.
pub fn request(about: &DriverCall<'_>, settings: &Map<String, Value>) -> Value {
    let mut request = json!({
        "protocol": PROTOCOL,
        "call": about.task.as_str(),
        "operation": about.operation.as_str(),
        "attempt": about.attempt,
        "seconds_left": about.time_left.map(|left| left.as_secs()),
        "settings": settings,
        "cluster": cluster(about.cluster),
        "node_groups": about.node_groups.iter().map(node_group).collect::<Vec<_>>(),
        "template": template(about.template),
        "context": context(about.context),
    });
    if let Some(group) = about.task.node_group() {
        request["node_group"] = json!(group.as_str());
    }
    match about.task {
        Task::Resize { remove, .. } => request["nodes_to_remove"] = json!(remove),
        Task::Upgrade {
            to, max_batch_size, ..
        } => {
            request["new_template"] = template(to);
            request["max_batch_size"] = json!(max_batch_size);
        }
        Task::Rebuild(nodes) => request["nodes"] = json!(nodes.names),
        Task::Reboot { how, nodes } => {
            request["reboot_type"] = json!(how.as_str());
            request["nodes"] = json!(nodes.names);
        }
        _ => {}
    }
    request
}

/// The request to look at several clusters: `call` is [`OBSERVE`], [`HEALTH`] or
/// [`MONITOR`](super::monitor::MONITOR).
pub fn look_request(call: &str, clusters: &[ClusterRef], settings: &Map<String, Value>) -> Value {
    let clusters: Vec<Value> = clusters
        .iter()
        .map(|one| {
            json!({
                "operation": one.operation.as_ref().map(|id| id.as_str()),
                "cluster": cluster(&one.cluster),
                "node_groups": one.node_groups.iter().map(node_group).collect::<Vec<_>>(),
                "template": template(&one.template),
            })
        })
        .collect();
    json!({
        "protocol": PROTOCOL,
        "call": call,
        "settings": settings,
        "clusters": clusters,
    })
}

fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.format("%Y-%m-%dT%H:%M:%SZ").to_string())
}

pub(super) fn cluster(cluster: &Cluster) -> Value {
    json!({
        "uuid": cluster.uuid.as_str(),
        "name": cluster.name,
        "project_id": cluster.project_id,
        "user_id": cluster.user_id,
        "cluster_template_id": cluster.cluster_template_id.as_str(),
        "keypair": cluster.keypair,
        "docker_volume_size": cluster.docker_volume_size,
        "labels": cluster.labels,
        "master_flavor_id": cluster.master_flavor_id,
        "flavor_id": cluster.flavor_id,
        "stack_id": cluster.stack_id,
        "status": cluster.status.map(ClusterStatus::as_str),
        "status_reason": cluster.status_reason,
        "health_status": cluster.health_status.map(HealthStatus::as_str),
        "health_status_reason": cluster.health_status_reason,
        "create_timeout": cluster.create_timeout,
        "api_address": cluster.api_address,
        "discovery_url": cluster.discovery_url,
        "ca_cert_ref": cluster.ca_cert_ref,
        "magnum_cert_ref": cluster.magnum_cert_ref,
        "etcd_ca_cert_ref": cluster.etcd_ca_cert_ref,
        "front_proxy_ca_cert_ref": cluster.front_proxy_ca_cert_ref,
        "coe_version": cluster.coe_version,
        "container_version": cluster.container_version,
        "fixed_network": cluster.fixed_network,
        "fixed_subnet": cluster.fixed_subnet,
        "floating_ip_enabled": cluster.floating_ip_enabled,
        "master_lb_enabled": cluster.master_lb_enabled,
        "created_at": time(cluster.created_at),
        "updated_at": time(cluster.updated_at),
    })
}

pub(super) fn node_group(group: &NodeGroup) -> Value {
    json!({
        "uuid": group.uuid.as_str(),
        "name": group.name,
        "cluster_id": group.cluster_id.as_str(),
        "project_id": group.project_id,
        "docker_volume_size": group.docker_volume_size,
        "labels": group.labels,
        "flavor_id": group.flavor_id,
        "image_id": group.image_id,
        "node_addresses": group.node_addresses,
        "node_count": group.node_count,
        "role": group.role,
        "max_node_count": group.max_node_count,
        "min_node_count": group.min_node_count,
        "is_default": group.is_default,
        "stack_id": group.stack_id,
        "status": group.status.map(ClusterStatus::as_str),
        "status_reason": group.status_reason,
        "version": group.version,
        "node_labels": group.node_labels,
        "node_taints": group.node_taints,
        "created_at": time(group.created_at),
        "updated_at": time(group.updated_at),
    })
}

pub(super) fn template(template: &ClusterTemplate) -> Value {
    json!({
        "uuid": template.uuid.as_str(),
        "name": template.name,
        "project_id": template.project_id,
        "user_id": template.user_id,
        "image_id": template.image_id,
        "flavor_id": template.flavor_id,
        "master_flavor_id": template.master_flavor_id,
        "keypair_id": template.keypair_id,
        "dns_nameserver": template.dns_nameserver,
        "external_network_id": template.external_network_id,
        "fixed_network": template.fixed_network,
        "fixed_subnet": template.fixed_subnet,
        "network_driver": template.network_driver,
        "volume_driver": template.volume_driver,
        "apiserver_port": template.apiserver_port,
        "docker_volume_size": template.docker_volume_size,
        "docker_storage_driver": template.docker_storage_driver,
        "cluster_distro": template.cluster_distro,
        "coe": template.coe,
        "http_proxy": template.http_proxy,
        "https_proxy": template.https_proxy,
        "no_proxy": template.no_proxy,
        "registry_enabled": template.registry_enabled,
        "labels": template.labels,
        "tls_disabled": template.tls_disabled,
        "public": template.public,
        "server_type": template.server_type,
        "insecure_registry": template.insecure_registry,
        "master_lb_enabled": template.master_lb_enabled,
        "floating_ip_enabled": template.floating_ip_enabled,
        "hidden": template.hidden,
        "tags": template.tags,
        "driver": template.driver,
        "created_at": time(template.created_at),
        "updated_at": time(template.updated_at),
    })
}

/// Only what a program needs to act for the user.
pub(super) fn context(context: &RequestContext) -> Value {
    let key = |name: &str| context.get(name).map(Cow::into_owned).unwrap_or_default();
    json!({
        "user_id": context.user_id(),
        "project_id": context.project_id(),
        "request_id": context.request_id(),
        "auth_url": key("auth_url"),
        "auth_token": key("auth_token"),
    })
}

/// A type that the key `result` of a program's output becomes, by what was asked for.
pub trait FromResult: Sized + Send {
    /// How it is written.
    type Line: DeserializeOwned + Into<Self>;
}

impl FromResult for DriverReport {
    type Line = ReportLine;
}

/// One line of a program's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputLine<T> {
    /// How far it is.
    Progress(Progress),
    /// The outcome of a call for one cluster.
    Ended(Result<T, DriverError>),
    /// The outcome for one of the clusters looked at.
    Observed(ClusterUuid, Result<T, DriverError>),
}

impl<T: FromResult> OutputLine<T> {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with the line, for the driver's author: no JSON, an unknown or a missing member, a member that does
    /// not go with another.
    pub fn read(line: &str) -> Result<Self, String> {
        let line: RawLine<T::Line> = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let cluster = line.cluster;
        let outcome = match (line.progress, line.result, line.error) {
            (Some(text), None, None) if line.class.is_none() && cluster.is_none() => {
                let percent = line.percent.map(|percent| percent.clamp(0.0, 100.0) as u8);
                return Ok(Self::Progress(Progress { text, percent }));
            }
            (None, Some(result), None) if line.class.is_none() && line.percent.is_none() => Ok(result.into()),
            (None, None, Some(error)) if line.percent.is_none() => Err(error_of(error, line.class)),
            _ => {
                return Err(
                    "a line holds either progress (and percent), or result, or error (and class), \
                            each of the last two with cluster when observing"
                        .to_owned(),
                );
            }
        };
        Ok(match cluster {
            Some(cluster) => Self::Observed(cluster, outcome),
            None => Self::Ended(outcome),
        })
    }
}

/// An error line's meaning, in the driver's own words; without a class it is permanent.
pub(super) fn error_of(text: String, class: Option<Class>) -> DriverError {
    match class {
        Some(Class::Transient) => DriverError::Transient(Reason::open(text)),
        Some(Class::NotSupported) => DriverError::NotSupported(Reason::open(text)),
        Some(Class::Permanent) | None => DriverError::Permanent(Reason::open(text)),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLine<R> {
    progress: Option<String>,
    percent: Option<f64>,
    result: Option<R>,
    error: Option<String>,
    class: Option<Class>,
    cluster: Option<ClusterUuid>,
}

/// The class of an error, as programs say it.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Class {
    Transient,
    Permanent,
    NotSupported,
}

/// A result as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportLine {
    #[serde(default)]
    cluster: ClusterLine,
    #[serde(default)]
    node_groups: Vec<NodeGroupLine>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ClusterLine {
    #[serde(deserialize_with = "word")]
    status: Option<ClusterStatus>,
    status_reason: Option<String>,
    stack_id: Option<String>,
    api_address: Option<String>,
    coe_version: Option<String>,
    container_version: Option<String>,
    discovery_url: Option<String>,
    #[serde(deserialize_with = "word")]
    health_status: Option<HealthStatus>,
    health_status_reason: Option<StringMap>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeGroupLine {
    uuid: NodeGroupUuid,
    #[serde(default, deserialize_with = "word")]
    status: Option<ClusterStatus>,
    status_reason: Option<String>,
    stack_id: Option<String>,
    node_count: Option<i32>,
    node_addresses: Option<Vec<String>>,
    version: Option<String>,
    image_id: Option<String>,
}

/// A word of an enumeration, or null.
fn word<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    Option::<String>::deserialize(deserializer)?
        .map(|text| text.parse().map_err(serde::de::Error::custom))
        .transpose()
}

impl From<ReportLine> for DriverReport {
    fn from(line: ReportLine) -> Self {
        let cluster = line.cluster;
        Self {
            cluster: ClusterChanges {
                status: cluster.status,
                status_reason: cluster.status_reason,
                stack_id: cluster.stack_id,
                user_id: None,
                api_address: cluster.api_address,
                coe_version: cluster.coe_version,
                container_version: cluster.container_version,
                discovery_url: cluster.discovery_url,
                health_status: cluster.health_status,
                health_status_reason: cluster.health_status_reason,
            },
            node_groups: line.node_groups.into_iter().map(NodeGroupChanges::from).collect(),
        }
    }
}

impl From<NodeGroupLine> for NodeGroupChanges {
    fn from(line: NodeGroupLine) -> Self {
        Self {
            uuid: line.uuid,
            status: line.status,
            status_reason: line.status_reason,
            stack_id: line.stack_id,
            node_count: line.node_count,
            node_addresses: line.node_addresses,
            version: line.version,
            image_id: line.image_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type OutputLine = super::OutputLine<DriverReport>;

    #[test]
    fn progress_results_and_errors_are_distinguished() {
        let progress = OutputLine::read(r#"{"progress": "node 1 of 3", "percent": 33.4}"#).unwrap();
        assert_eq!(
            progress,
            OutputLine::Progress(Progress {
                text: "node 1 of 3".into(),
                percent: Some(33)
            })
        );
        let done = OutputLine::read(r#"{"result": {"cluster": {"status": "CREATE_COMPLETE"}}}"#).unwrap();
        assert_eq!(
            done,
            OutputLine::Ended(Ok(DriverReport::status(ClusterStatus::CreateComplete)))
        );
        let full = OutputLine::read(r#"{"error": "no room", "class": "transient"}"#).unwrap();
        assert_eq!(
            full,
            OutputLine::Ended(Err(DriverError::Transient("no room".into())))
        );
        let plain = OutputLine::read(r#"{"error": "bad flavor"}"#).unwrap();
        assert_eq!(
            plain,
            OutputLine::Ended(Err(DriverError::Permanent("bad flavor".into())))
        );
    }

    #[test]
    fn an_empty_result_changes_nothing() {
        let done = OutputLine::read(r#"{"result": {}}"#).unwrap();
        assert_eq!(done, OutputLine::Ended(Ok(DriverReport::default())));
    }

    #[test]
    fn observation_names_its_cluster() {
        let seen =
            OutputLine::read(r#"{"cluster": "c-1", "error": "gone", "class": "not_supported"}"#).unwrap();
        assert_eq!(
            seen,
            OutputLine::Observed("c-1".into(), Err(DriverError::NotSupported("gone".into())))
        );
    }

    #[test]
    fn a_mistake_in_a_line_is_named() {
        for (line, word) in [
            ("hello", "expected value"),
            (
                r#"{"result": {"cluster": {"stack": "s"}}}"#,
                "unknown field `stack`",
            ),
            (
                r#"{"result": {"cluster": {"status": "DONE"}}}"#,
                "'DONE' is not a value of ClusterStatus",
            ),
            (r#"{"result": {"node_groups": [{}]}}"#, "missing field `uuid`"),
            (r#"{"error": "x", "class": "odd"}"#, "unknown variant `odd`"),
            (r#"{"progress": "x", "result": {}}"#, "a line holds either"),
            ("{}", "a line holds either"),
            ("[]", "invalid"),
        ] {
            let reason = OutputLine::read(line).unwrap_err();
            assert!(reason.contains(word), "{line}: {reason}");
        }
    }

    #[test]
    fn the_request_holds_the_token_only_in_its_context() {
        let context = RequestContext::from_map(
            json!({"auth_token": "tok-1", "user_id": "u", "roles": ["admin"]})
                .as_object()
                .unwrap()
                .clone(),
        );
        let cluster = Cluster::new("c-1".into(), "t-1".into());
        let template = ClusterTemplate::new("t-1".into());
        let operation = magnum_common::ids::OperationId::new("o-1");
        let call = DriverCall {
            task: Task::Create,
            cluster: &cluster,
            node_groups: &[],
            template: &template,
            context: &context,
            operation: &operation,
            attempt: 2,
            time_left: Some(std::time::Duration::from_secs(90)),
            objects: magnum_driver_api::SharedObjects::default(),
            progress: &magnum_driver_api::NoProgress,
            cancel: tokio_util::sync::CancellationToken::new(),
        };
        let request = request(&call, &Map::new());
        assert_eq!(request["call"], "create");
        assert_eq!(request["attempt"], 2);
        assert_eq!(request["seconds_left"], 90);
        assert_eq!(request["context"]["auth_token"], "tok-1");
        assert_eq!(request["context"]["roles"], Value::Null);
        assert_eq!(request.to_string().matches("tok-1").count(), 1);
    }
}
