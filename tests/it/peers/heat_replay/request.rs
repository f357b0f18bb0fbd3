//! The messages that ask the conductor for the operations of the cases.

use anyhow::{Context as _, Result};
use magnum_tests::plugin_requests::new_object;
use magnum_tests::raw_rpc;
use serde_json::{Value, json};

use super::case::Case;
use super::rows::Rows;

/// A message.
pub struct Request {
    pub message: Value,
    /// Whether the sender waits for an answer.
    pub is_call: bool,
}

/// The message that asks for the case's operation. A group that it brings is taken out of the rows.
pub fn request(case: &Case, rows: &mut Rows, context: &Value) -> Result<Request> {
    let named = case.argument("nodegroup").as_str();
    let group = |rows: &mut Rows| -> Result<Value> {
        Ok(magnum_objects::node_group::encode(
            rows.group(named.context("a group")?)?,
        ))
    };
    let cluster = magnum_objects::cluster::encode(&rows.cluster);
    let rollback = case.argument("rollback") == true;
    let (method, arguments) = match case.operation() {
        "create" => {
            let arguments = creation(case, rows);
            rows.groups.clear();
            ("cluster_create", arguments)
        }
        "update" => {
            let arguments = json!({
                "cluster": cluster, "node_count": case.argument("node_count"), "health_status": null,
                "health_status_reason": null, "rollback": rollback,
            });
            ("cluster_update", arguments)
        }
        "resize" => {
            let arguments = json!({
                "cluster": cluster, "nodegroup": group(rows)?, "node_count": case.argument("node_count"),
                "nodes_to_remove": case.argument("nodes_to_remove").as_array().cloned().unwrap_or_default(),
            });
            ("cluster_resize", arguments)
        }
        "upgrade" => {
            let arguments = json!({
                "cluster": cluster, "nodegroup": group(rows)?, "rollback": rollback,
                "max_batch_size": case.argument("max_batch_size"),
                "cluster_template": magnum_objects::cluster_template::encode(&rows.newer_template),
            });
            ("cluster_upgrade", arguments)
        }
        "create_nodegroup" => {
            let mut new = rows.group(named.context("a group")?)?.clone();
            (new.status, new.stack_id) = (None, None);
            rows.groups.retain(|one| one.uuid != new.uuid);
            let arguments = json!({"cluster": cluster, "nodegroup": new_object(&new)});
            ("nodegroup_create", arguments)
        }
        "update_nodegroup" => {
            let mut wanted = rows.group(named.context("a group")?)?.clone();
            let count = |name| {
                case.argument(name)
                    .as_i64()
                    .and_then(|count| i32::try_from(count).ok())
            };
            wanted.min_node_count = count("min_node_count").context("a bound")?;
            wanted.max_node_count = count("max_node_count");
            let changed = ["min_node_count", "max_node_count"];
            let wanted = magnum_objects::encode_with_changes(&wanted, &changed);
            (
                "nodegroup_update",
                json!({"cluster": cluster, "nodegroup": wanted}),
            )
        }
        "delete_nodegroup" => (
            "nodegroup_delete",
            json!({"cluster": cluster, "nodegroup": group(rows)?}),
        ),
        "delete" => ("cluster_delete", json!({"uuid": rows.cluster.uuid})),
        "rotate_ca" => ("rotate_ca_certificate", json!({"cluster": cluster})),
        other => anyhow::bail!("no message asks for {other}"),
    };
    let mut message = raw_rpc::request(method, arguments);
    for (name, value) in context.as_object().into_iter().flatten() {
        message[format!("_context_{name}")] = value.clone();
    }
    Ok(Request {
        message,
        is_call: matches!(case.operation(), "upgrade" | "rotate_ca"),
    })
}

/// As an API sends it: what the conductor makes is not in it yet.
fn creation(case: &Case, rows: &Rows) -> Value {
    let mut cluster = rows.cluster.clone();
    cluster.status = None;
    for reference in [
        &mut cluster.ca_cert_ref,
        &mut cluster.magnum_cert_ref,
        &mut cluster.etcd_ca_cert_ref,
        &mut cluster.front_proxy_ca_cert_ref,
    ] {
        *reference = None;
    }
    let count = |is_master: bool| {
        let mut groups = rows.groups.iter();
        let group = groups.find(|group| group.is_default && group.is_master() == is_master);
        group.map_or(0, |group| group.node_count)
    };
    json!({
        "cluster": new_object(&cluster),
        "master_count": count(true),
        "node_count": count(false),
        "create_timeout": case.argument("timeout"),
    })
}
