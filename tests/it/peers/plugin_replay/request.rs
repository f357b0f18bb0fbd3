//! The messages that ask the conductor for the calls of the cases.

use anyhow::{Context as _, Result};
use magnum_common::model::ClusterStatus;
use magnum_tests::plugin_requests::{from_person, new_object};
use magnum_tests::raw_rpc;
use serde_json::{Value, json};

use super::case::Case;
use super::rows::{CLUSTER, NEWER_TEMPLATE, Rows};
use super::stage::Stage;

impl Stage {
    /// The message that asks for the case's call. What the message changes is given as it is afterwards: `rows` get what was
    /// before.
    pub fn request(&self, case: &Case, rows: &mut Rows) -> Result<Value> {
        let group = case.argument("node_group").as_str().map(str::to_owned);
        let encoded = |rows: &mut Rows| -> Result<Value> {
            let name = group.as_deref().context("a node group")?;
            Ok(magnum_objects::node_group::encode(rows.group(name)?))
        };
        let cluster = magnum_objects::cluster::encode(&rows.cluster);
        Ok(match case.call() {
            "update_cluster" => {
                let worker = rows.group("default-worker")?;
                let wanted = worker.node_count;
                worker.node_count = if wanted == 2 { 1 } else { 2 };
                let args = json!({
                    "cluster": cluster, "node_count": wanted, "health_status": null, "health_status_reason": null,
                    "rollback": false,
                });
                raw_rpc::request("cluster_update", args)
            }
            "resize_cluster" => {
                let wanted = case.argument("node_count");
                let args = json!({
                    "cluster": cluster, "nodegroup": encoded(rows)?, "node_count": wanted,
                    "nodes_to_remove": case.argument("nodes_to_remove").as_array().cloned().unwrap_or_default(),
                });
                let group = rows.group(group.as_deref().unwrap_or_default())?;
                group.node_count = if group.role == "master" { 1 } else { 2 };
                group.status = Some(ClusterStatus::CreateComplete);
                raw_rpc::request("cluster_resize", args)
            }
            "upgrade_cluster" => {
                let group = encoded(rows)?;
                let newer = rows
                    .templates
                    .iter()
                    .find(|one| one.uuid.as_str() == NEWER_TEMPLATE);
                let args = json!({
                    "cluster": cluster, "nodegroup": group, "max_batch_size": null, "rollback": false,
                    "cluster_template": magnum_objects::cluster_template::encode(newer.context("a template")?),
                });
                raw_rpc::request("cluster_upgrade", args)
            }
            "create_nodegroup" => {
                let name = group.as_deref().context("a node group")?;
                let args = json!({"cluster": cluster, "nodegroup": new_object(rows.group(name)?)});
                rows.groups.retain(|one| Some(&one.name) != group.as_ref());
                raw_rpc::request("nodegroup_create", args)
            }
            "update_nodegroup" => {
                let name = group.context("a node group")?;
                let row = rows.group(&name)?;
                let mut wanted = row.clone();
                let bounds = case
                    .saves()
                    .find(|save| save["of"] == *name && !save["fields"]["min_node_count"].is_null());
                let count = |value: &Value| value.as_i64().and_then(|count| i32::try_from(count).ok());
                if let Some(save) = bounds {
                    wanted.min_node_count = count(&save["fields"]["min_node_count"]).context("a bound")?;
                    wanted.max_node_count = count(&save["fields"]["max_node_count"]);
                } else {
                    row.min_node_count = 0;
                    row.max_node_count = None;
                }
                row.status = Some(ClusterStatus::CreateComplete);
                wanted.status = row.status;
                let changes = ["min_node_count", "max_node_count"];
                let args = json!({
                    "cluster": cluster,
                    "nodegroup": magnum_objects::encode_with_changes(&wanted, &changes),
                });
                raw_rpc::request("nodegroup_update", args)
            }
            "delete_nodegroup" => raw_rpc::request(
                "nodegroup_delete",
                json!({"cluster": cluster, "nodegroup": encoded(rows)?}),
            ),
            "delete_cluster" => raw_rpc::request("cluster_delete", json!({"uuid": CLUSTER})),
            "rotate_ca_certificate" => raw_rpc::request("rotate_ca_certificate", json!({"cluster": cluster})),
            "rotate_credential" => raw_rpc::request("credential_rotate", json!({"cluster": cluster})),
            other => anyhow::bail!("no message asks for {other}"),
        })
    }

    /// The message from somebody with a token of the doubles.
    pub fn with_context(&self, message: Value, who: &str) -> Value {
        from_person(message, &self.world.urls.cloud, who)
    }
}
