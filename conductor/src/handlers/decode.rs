//! Arguments of a recorded method into its command: names, types, and the identities without which a redelivery
//! could not be recognised.

use std::str::FromStr;

use magnum_common::error::{Exception, Fault};
use magnum_common::ids::{ClusterUuid, NodeGroupUuid};
use magnum_common::model::RebootType;
use magnum_objects as objects;
use magnum_objects::cluster::ClusterObject;
use serde_json::{Map, Value};

use super::arguments::Arguments;
use super::command::{ClusterCreate, ClusterResize, ClusterUpdate, ClusterUpgrade, Command, ReportedHealth};
use crate::workflows::{OperationKind, kinds};

impl Command {
    /// Reads the arguments of `method`. `None`: it is not a method that becomes an operation.
    ///
    /// # Errors
    /// The inner result: an argument is missing, unexpected or of another type (`TypeError`), or an object cannot be read or
    /// lacks its uuid.
    pub fn decode(method: &str, args: Map<String, Value>) -> Option<Result<Self, Fault>> {
        let kind = OperationKind::from_str(method).ok()?;
        Some(decode(kind, Arguments::new(method, args)))
    }
}

fn decode(kind: OperationKind, mut args: Arguments<'_>) -> Result<Command, Fault> {
    let command = match kind {
        OperationKind::ClusterCreate => cluster_create(&mut args)?,
        OperationKind::ClusterUpdate => cluster_update(&mut args)?,
        OperationKind::ClusterDelete => Command::ClusterDelete(ClusterUuid::new(args.text("uuid")?)),
        OperationKind::ClusterResize => Command::ClusterResize(ClusterResize {
            cluster: cluster(&mut args)?,
            node_count: args.integer("node_count")?,
            nodes_to_remove: args.texts_or_null("nodes_to_remove")?.unwrap_or_default(),
            node_group: node_group(&mut args)?,
        }),
        OperationKind::ClusterUpgrade => Command::ClusterUpgrade(ClusterUpgrade {
            cluster: cluster(&mut args)?,
            template: objects::cluster_template::decode(&args.value("cluster_template")?)?.uuid()?,
            max_batch_size: args.integer_or_null("max_batch_size")?,
            node_group: node_group(&mut args)?,
            rollback: args.flag("rollback", false)?,
        }),
        OperationKind::NodegroupCreate => {
            let cluster = cluster(&mut args)?;
            let group = objects::node_group::decode(&args.value("nodegroup")?)?;
            group.uuid()?;
            let group = group.created()?;
            if group.cluster_id != cluster {
                return Err(Fault::invalid_parameter(format!(
                    "cluster_id of the nodegroup is {} and not the cluster's uuid {cluster}.",
                    group.cluster_id
                )));
            }
            Command::NodegroupCreate(cluster, Box::new(group))
        }
        OperationKind::NodegroupUpdate => {
            let cluster = cluster(&mut args)?;
            let group = objects::node_group::decode(&args.value("nodegroup")?)?;
            Command::NodegroupUpdate(cluster, group.uuid()?, Box::new(group))
        }
        OperationKind::NodegroupDelete => {
            Command::NodegroupDelete(cluster(&mut args)?, node_group(&mut args)?)
        }
        OperationKind::RotateCaCertificate => Command::RotateCaCertificate(cluster(&mut args)?),
        OperationKind::CredentialRotate => Command::CredentialRotate(cluster(&mut args)?),
        OperationKind::ClusterRebuild => {
            let rebuild = kinds::ClusterRebuild {
                node_group: node_group_or_null(&mut args)?,
                nodes: args.texts_or_null("nodes")?.unwrap_or_default(),
            };
            Command::ClusterRebuild(cluster(&mut args)?, rebuild)
        }
        OperationKind::ClusterReboot => {
            let reboot = kinds::ClusterReboot {
                reboot_type: reboot_type(&args.text("reboot_type")?)?,
                node_group: node_group_or_null(&mut args)?,
                nodes: args.texts_or_null("nodes")?.unwrap_or_default(),
            };
            Command::ClusterReboot(cluster(&mut args)?, reboot)
        }
    };
    args.finish()?;
    Ok(command)
}

fn cluster(args: &mut Arguments<'_>) -> Result<ClusterUuid, Fault> {
    objects::cluster::decode(&args.value("cluster")?)?.uuid()
}

fn node_group(args: &mut Arguments<'_>) -> Result<NodeGroupUuid, Fault> {
    objects::node_group::decode(&args.value("nodegroup")?)?.uuid()
}

fn node_group_or_null(args: &mut Arguments<'_>) -> Result<Option<NodeGroupUuid>, Fault> {
    match args.value("nodegroup")? {
        Value::Null => Ok(None),
        group => objects::node_group::decode(&group)?.uuid().map(Some),
    }
}

fn reboot_type(text: &str) -> Result<RebootType, Fault> {
    text.parse().map_err(|_unknown| {
        let shown: String = text.chars().take(60).collect();
        Fault::new(
            Exception::ValueError,
            format!(
                "{shown} is invalid for 'reboot_type'; it is one of {}",
                RebootType::TEXTS.join(", ")
            ),
        )
    })
}

fn cluster_create(args: &mut Arguments<'_>) -> Result<Command, Fault> {
    let cluster = objects::cluster::decode(&args.value("cluster")?)?;
    // Without a uuid a redelivery would make a second cluster: the sender has to give it.
    cluster.uuid()?;
    Ok(Command::ClusterCreate(ClusterCreate {
        cluster: Box::new(cluster.created()?),
        master_count: args.integer("master_count")?,
        node_count: args.integer("node_count")?,
        create_timeout: args.integer_or_null("create_timeout")?,
    }))
}

fn cluster_update(args: &mut Arguments<'_>) -> Result<Command, Fault> {
    let cluster = objects::cluster::decode(&args.value("cluster")?)?;
    let status = args
        .text_or_null("health_status")?
        .map(|text| {
            text.parse().map_err(|_unknown| {
                Fault::new(
                    Exception::ValueError,
                    format!("Field value {text} is invalid for 'health_status'; it is one of HEALTHY, UNHEALTHY, UNKNOWN"),
                )
            })
        })
        .transpose()?;
    let reasons = args
        .strings_or_null("health_status_reason")?
        .unwrap_or_default()
        .into_iter()
        .collect();
    let health = ReportedHealth { status, reasons };
    Ok(Command::ClusterUpdate(ClusterUpdate {
        cluster: cluster.uuid()?,
        node_count: args.integer_or_null("node_count")?,
        health: (!is_as_seen(&health, &cluster)).then_some(health),
        rollback: args.flag("rollback", false)?,
    }))
}

/// Whether the health is that of the cluster as the sender saw it. An API sends the health with every update, and while
/// the request waited in its queue a monitor may have reported another one.
fn is_as_seen(health: &ReportedHealth, cluster: &ClusterObject) -> bool {
    cluster
        .model()
        .is_ok_and(|seen| health.status == seen.health_status && health.reasons == seen.health_status_reason)
}

#[cfg(test)]
mod tests {
    use magnum_common::model::{Cluster, HealthStatus, NodeGroup};
    use serde_json::json;

    use super::*;

    fn read(method: &str, args: Value) -> Result<Command, Fault> {
        let Value::Object(args) = args else {
            panic!("arguments are an object");
        };
        Command::decode(method, args).expect("a recorded method")
    }

    fn c() -> Value {
        objects::cluster::encode(&Cluster::new("c".into(), "t".into()))
    }

    fn group(cluster: &str) -> Value {
        let group = NodeGroup::new("g".into(), "pool", cluster.into(), "p", "worker");
        objects::encode_with_changes(
            &group,
            &["uuid", "name", "cluster_id", "project_id", "node_count"],
        )
    }

    #[test]
    fn a_resize_may_name_no_nodes() {
        for nodes in [json!(null), json!([])] {
            let command = read(
                "cluster_resize",
                json!({"cluster": c(), "node_count": 2, "nodes_to_remove": nodes, "nodegroup": group("c")}),
            );
            let Ok(Command::ClusterResize(resize)) = command else {
                panic!("{command:?}");
            };
            assert_eq!(resize.node_group.as_str(), "g");
            assert!(resize.nodes_to_remove.is_empty());
        }
        let wrong = read(
            "cluster_resize",
            json!({"cluster": c(), "node_count": 2, "nodes_to_remove": [1], "nodegroup": group("c")}),
        );
        assert!(wrong.unwrap_err().message.contains("'nodes_to_remove[0]'"));
    }

    #[test]
    fn health_that_the_sender_has_only_read_is_no_report() {
        let mut seen = Cluster::new("c".into(), "t".into());
        seen.health_status = Some(HealthStatus::Healthy);
        seen.health_status_reason.insert("api".into(), "ok".into());
        let sent = |status: &str, api: &str| {
            let command = read(
                "cluster_update",
                json!({
                    "cluster": objects::cluster::encode(&seen), "node_count": 3, "health_status": status,
                    "health_status_reason": {"api": api},
                }),
            );
            let Ok(Command::ClusterUpdate(update)) = command else {
                panic!("{command:?}");
            };
            update.health
        };
        assert_eq!(sent("HEALTHY", "ok"), None);
        assert_eq!(sent("HEALTHY", "slow").unwrap().reasons["api"], "slow");
        assert_eq!(sent("UNKNOWN", "ok").unwrap().status, Some(HealthStatus::Unknown));
    }

    #[test]
    fn a_new_group_belongs_to_the_cluster_it_is_sent_with() {
        let fault = read(
            "nodegroup_create",
            json!({"cluster": c(), "nodegroup": group("d")}),
        )
        .unwrap_err();
        assert!(fault.message.contains("cluster_id"), "{fault}");
        let command = read(
            "nodegroup_create",
            json!({"cluster": c(), "nodegroup": group("c")}),
        )
        .unwrap();
        assert_eq!(command.kind(), OperationKind::NodegroupCreate);
    }

    #[test]
    fn a_new_group_without_a_uuid_is_refused_by_name() {
        let mut sent = group("c");
        sent["magnum_object.data"].as_object_mut().unwrap().remove("uuid");
        let fault = read("nodegroup_create", json!({"cluster": c(), "nodegroup": sent})).unwrap_err();
        assert!(fault.message.contains("uuid"), "{fault}");
    }

    #[test]
    fn reboot_needs_a_type_and_its_nodes_are_optional() {
        let asked = |how: &str, nodes: Value, group: Value| {
            let args = json!({"cluster": c(), "reboot_type": how, "nodes": nodes, "nodegroup": group});
            read("cluster_reboot", args)
        };
        let Ok(Command::ClusterReboot(cluster, reboot)) = asked("hard", json!(["a"]), group("c")) else {
            panic!("a reboot");
        };
        assert_eq!(cluster.as_str(), "c");
        assert_eq!(reboot.reboot_type, RebootType::Hard);
        assert_eq!(
            (reboot.node_group, reboot.nodes),
            (Some("g".into()), vec!["a".to_owned()])
        );
        let Ok(Command::ClusterReboot(_, reboot)) = asked("soft", json!(null), json!(null)) else {
            panic!("a reboot");
        };
        assert_eq!((reboot.node_group, reboot.nodes), (None, Vec::new()));
        let wrong = asked("gentle", json!(null), json!(null)).unwrap_err();
        assert!(wrong.message.contains("'reboot_type'"), "{wrong}");
    }

    #[test]
    fn the_rollback_of_an_upgrade_is_optional() {
        let template =
            objects::cluster_template::encode(&magnum_common::model::ClusterTemplate::new("t-2".into()));
        let command = read(
            "cluster_upgrade",
            json!({"cluster": c(), "cluster_template": template, "max_batch_size": null, "nodegroup": group("c")}),
        );
        let Ok(Command::ClusterUpgrade(upgrade)) = command else {
            panic!("{command:?}");
        };
        assert_eq!(upgrade.template.as_str(), "t-2");
        assert!(!upgrade.rollback);
    }
}
