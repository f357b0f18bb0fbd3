//! The nodes that a resize names, looked up where somebody knows them: at the cluster's driver, through a conductor.
//!
//! Differs from Magnum, which hands every name on. A name that there is not would fail the resize, or remove another node,
//! when nobody looks any more.

use magnum_common::context::RequestContext;
use magnum_common::error::Fault;
use magnum_common::model::NodeGroup;
use magnum_drivers::api_exchange::{NODE_GROUP, NODES, NodeNames};
use magnum_drivers::{ApiAnswer, ApiMethod, ApiQuestion};
use magnum_telemetry::field;
use serde_json::Value;

use super::actions::driver_of;
use crate::faults::ApiFault;
use crate::policy::Rule;
use crate::state::App;
use crate::store::clusters::FoundCluster;

/// Refuses names that no node of the group has. Where the driver does not name its nodes, or does not answer, every name
/// passes: the resize itself will tell.
///
/// # Errors
/// 400 that tells the names; 400 and 404 where the driver or the template is unknown.
pub(super) async fn check(
    app: &App,
    context: &RequestContext,
    found: &FoundCluster,
    group: &NodeGroup,
    names: &[String],
) -> Result<(), ApiFault> {
    if names.is_empty() || !driver_of(app, found).await?.capabilities.node_names {
        return Ok(());
    }
    let question = ApiQuestion {
        uuid: found.cluster.uuid.to_string(),
        path: NODES.to_owned(),
        method: ApiMethod::Get,
        policy: Rule::ClusterResize.name().to_owned(),
        query: vec![(NODE_GROUP.to_owned(), group.uuid.to_string())],
        body: Value::Null,
        timeout_ms: u64::try_from(app.driver_call_times.driver.as_millis()).unwrap_or(u64::MAX),
    };
    let answer = app
        .conductor
        .cluster_driver_call(context, &question, app.driver_call_times.patience)
        .await;
    let known: Result<NodeNames, String> = match answer {
        Ok(ApiAnswer::Replied { status: 200, body }) => {
            serde_json::from_value(body).map_err(|error| error.to_string())
        }
        Ok(ApiAnswer::Replied { status, body }) => Err(format!("the driver replied {status}: {body}")),
        Ok(ApiAnswer::Refused { reason, .. }) => Err(reason),
        Err(error) => Err(error.to_string()),
    };
    match known {
        Ok(known) => refuse(&known.unknown(names), group),
        Err(reason) => {
            tracing::warn!(
                { field::CLUSTER } = %found.cluster.uuid, { field::NODE_GROUP } = %group.uuid, reason,
                "the names of nodes that shall go are not checked"
            );
            Ok(())
        }
    }
}

fn refuse(unknown: &[&str], group: &NodeGroup) -> Result<(), ApiFault> {
    if unknown.is_empty() {
        return Ok(());
    }
    Err(Fault::invalid_parameter(format!(
        "nodes_to_remove: there is no node {} in node group {}.",
        unknown.join(", "),
        group.name
    ))
    .into())
}
