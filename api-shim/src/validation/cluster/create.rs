//! A new cluster, composed from the request and its template.

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::ClusterUuid;
use magnum_common::model::{Cluster, ClusterTemplate, StringMap};
use serde_json::{Map, Value};

use crate::microversion::Version;
use crate::validation::body::invalid;
use crate::validation::python::str_of;
use crate::validation::{cluster_template, labels, names};

/// Minutes, when a create request names none.
pub const DEFAULT_CREATE_TIMEOUT: i32 = 60;

/// A cluster that was asked for, with the counts of its two default node groups.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct NewCluster {
    pub cluster: Cluster,
    pub master_count: i32,
    pub node_count: i32,
}

/// The template that a create request names; a null reads as Python prints it.
pub fn template_ident(given: &Map<String, Value>) -> String {
    str_of(given.get("cluster_template_id").unwrap_or(&Value::Null))
}

/// Whether the counts of a create request may be so at this microversion.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn check_counts(given: &Map<String, Value>, version: Version) -> Result<(), Fault> {
    if given.get("master_count").is_some_and(Value::is_null) {
        return Err(invalid(
            "master_count",
            &Value::Null,
            "Value should be greater or equal to 1",
        ));
    }
    if given.get("node_count").and_then(Value::as_i64) == Some(0) {
        refuse_zero(version)?;
    }
    Ok(())
}

/// No nodes at all need a version of their own.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn refuse_zero(version: Version) -> Result<(), Fault> {
    if version >= Version::ZERO_NODES {
        return Ok(());
    }
    Err(Fault::new(
        Exception::ZeroNodeCountNotSupported,
        "Resizing a nodegroup to zero is not supported in the provided microversion.",
    ))
}

/// Composes the cluster: what the request does not say comes from the template.
pub fn compose(
    given: &Map<String, Value>,
    template: &ClusterTemplate,
    context: &RequestContext,
) -> NewCluster {
    let value = |name: &str| given.get(name).filter(|value| !value.is_null());
    let text = |name: &str| value(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| {
        value(name)
            .and_then(Value::as_i64)
            .and_then(|n| i32::try_from(n).ok())
    };
    let flag = |name: &str| value(name).and_then(Value::as_bool);

    let mut cluster = Cluster::new(ClusterUuid::random(), template.uuid.clone());
    cluster.name = Some(text("name").unwrap_or_else(|| names::generate("cluster")));
    cluster.project_id = context.project_id().map(str::to_owned);
    cluster.user_id = context.user_id().map(str::to_owned);
    cluster.keypair = text("keypair").or_else(|| template.keypair_id.clone());
    cluster.docker_volume_size = number("docker_volume_size").or(template.docker_volume_size);
    cluster.labels = labels::inherit(
        value("labels").and_then(Value::as_object).map(labels::stored),
        flag("merge_labels").unwrap_or(false),
        &template.labels,
    );
    cluster.master_flavor_id = text("master_flavor_id").or_else(|| template.master_flavor_id.clone());
    cluster.flavor_id = text("flavor_id").or_else(|| template.flavor_id.clone());
    // An explicit null means no time limit of its own.
    cluster.create_timeout = match given.get("create_timeout") {
        None => Some(DEFAULT_CREATE_TIMEOUT),
        Some(_) => number("create_timeout"),
    };
    cluster.discovery_url = text("discovery_url");
    cluster.fixed_network = text("fixed_network").or_else(|| template.fixed_network.clone());
    cluster.fixed_subnet = text("fixed_subnet").or_else(|| template.fixed_subnet.clone());
    cluster.floating_ip_enabled = flag("floating_ip_enabled").unwrap_or(template.floating_ip_enabled);
    cluster.master_lb_enabled = flag("master_lb_enabled").unwrap_or(template.master_lb_enabled);
    NewCluster {
        cluster,
        master_count: number("master_count").unwrap_or(1),
        node_count: number("node_count").unwrap_or(1),
    }
}

/// What must hold of the volumes and labels of a new cluster. Master sizes are the driver's to check.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn check_composed(new: &NewCluster, template: &ClusterTemplate) -> Result<(), Fault> {
    cluster_template::check_docker_volume(
        template.docker_storage_driver.as_deref(),
        new.cluster.docker_volume_size,
    )?;
    labels::check_size("labels", &new.cluster.labels)?;
    cluster_template::boot_volume_size(&new.cluster.labels)?;
    check_minimum(&new.cluster.labels)
}

/// Several masters need something in front of them. Asked last, as Magnum does.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn check_masters(new: &NewCluster) -> Result<(), Fault> {
    if new.master_count > 1 && !new.cluster.master_lb_enabled {
        return Err(Fault::invalid_parameter(
            "master_count must be 1 when master_lb_enabled is False",
        ));
    }
    Ok(())
}

/// The label from which the default worker group takes its minimum.
fn check_minimum(labels: &StringMap) -> Result<(), Fault> {
    match labels.get("min_node_count") {
        Some(text) if !text.trim().parse::<i32>().is_ok_and(|count| count >= 0) => {
            Err(Fault::invalid_parameter(format!(
                "The label min_node_count must be a whole number of at least 0, not '{text}'."
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use magnum_common::context::Caller;
    use magnum_common::ids::RequestId;
    use serde_json::json;

    use super::super::{ARGUMENT, FIELDS};
    use super::*;
    use crate::validation::body;

    const LATEST: Version = Version::MAX;

    fn template() -> ClusterTemplate {
        let mut template = ClusterTemplate::new("t".into());
        template.keypair_id = Some("template-key".into());
        template.flavor_id = Some("small".into());
        template.docker_volume_size = Some(5);
        template.master_lb_enabled = true;
        template.labels.insert("a".into(), "1".into());
        template
    }

    fn compose_from(body: &Value) -> NewCluster {
        let given = body::read(ARGUMENT, body, FIELDS).unwrap();
        let caller = Caller {
            project_id: Some("p".into()),
            user_id: Some("u".into()),
            ..Caller::default()
        };
        let context = RequestContext::for_caller(&caller, &RequestId::random());
        compose(&given, &template(), &context)
    }

    #[test]
    fn omitted_attributes_come_from_the_template() {
        for body in [
            json!({"cluster_template_id": "t"}),
            json!({"cluster_template_id": "t", "keypair": null, "flavor_id": null, "labels": {},
                   "master_lb_enabled": null, "docker_volume_size": null, "node_count": null}),
        ] {
            let new = compose_from(&body);
            assert_eq!(new.cluster.keypair.as_deref(), Some("template-key"));
            assert_eq!(new.cluster.flavor_id.as_deref(), Some("small"));
            assert_eq!(new.cluster.docker_volume_size, Some(5));
            assert!(new.cluster.master_lb_enabled);
            assert_eq!(new.cluster.labels, template().labels);
            assert_eq!((new.master_count, new.node_count), (1, 1));
            assert_eq!(new.cluster.create_timeout, Some(60));
            assert!(new.cluster.name.unwrap().ends_with("-cluster"));
            assert_eq!(new.cluster.project_id.as_deref(), Some("p"));
        }
    }

    #[test]
    fn given_attributes_win_and_status_is_ignored() {
        let new = compose_from(&json!({
            "cluster_template_id": "t", "name": "c", "keypair": "k", "node_count": 4, "master_count": 3,
            "create_timeout": null, "labels": {"b": 2}, "merge_labels": true, "floating_ip_enabled": false,
            "status": "CREATE_COMPLETE", "health_status": "HEALTHY", "faults": {"x": "y"},
        }));
        assert_eq!(new.cluster.keypair.as_deref(), Some("k"));
        assert_eq!((new.master_count, new.node_count), (3, 4));
        assert_eq!(new.cluster.create_timeout, None);
        assert_eq!(new.cluster.labels.len(), 2);
        assert!(!new.cluster.floating_ip_enabled);
        assert_eq!((new.cluster.status, new.cluster.health_status), (None, None));
    }

    #[test]
    fn many_masters_need_a_load_balancer_and_numbers_must_be_numbers() {
        let refusal = |body: Value| {
            let new = compose_from(&body);
            let checked = check_composed(&new, &template()).and_then(|()| check_masters(&new));
            checked.unwrap_err().message
        };
        assert_eq!(
            refusal(json!({"cluster_template_id": "t", "master_count": 3, "master_lb_enabled": false})),
            "master_count must be 1 when master_lb_enabled is False"
        );
        assert!(
            refusal(json!({"cluster_template_id": "t", "labels": {"min_node_count": "abc"}}))
                .contains("'abc'")
        );
        assert!(
            refusal(json!({"cluster_template_id": "t", "labels": {"boot_volume_size": "x"}})).contains("'x'")
        );
    }

    #[test]
    fn zero_nodes_need_their_version_and_null_masters_are_refused() {
        let counts = |body: Value, version| {
            let Value::Object(given) = body else {
                unreachable!()
            };
            check_counts(&given, version)
        };
        assert!(counts(json!({"node_count": 0}), Version::MIN).is_err());
        assert!(counts(json!({"node_count": 0}), LATEST).is_ok());
        assert_eq!(
            counts(json!({"master_count": null}), LATEST).unwrap_err().code(),
            400
        );
    }
}
