//! Actions of a cluster: resize, upgrade, rebuild and reboot.
//!
//! A resize is handed to a conductor; an upgrade is asked of one, and its answer waited for, as in Magnum: what the
//! conductor refuses, the client learns. A rebuild and a reboot are asked of one, too, which answers as soon as it has
//! recorded them; a Python conductor answers that it does not know them (501).
//!
//! Where this differs from Magnum: a resize that the cluster's status does not allow is refused at once (409), and so
//! is what the driver cannot do (400), and one that names nodes which are not there (`node_names`).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use magnum_common::error::{Exception, Fault};
use magnum_common::model::{ClusterStatus, NodeGroup, RebootType};
use magnum_drivers::{Capabilities, DriverInfo};
use serde_json::{Value, json};

use super::{accepted, node_names};
use crate::faults::ApiFault;
use crate::microversion::Version;
use crate::policy::{Rule, Target};
use crate::request::{ApiRequest, Body, Ident};
use crate::state::App;
use crate::store;
use crate::store::clusters::FoundCluster;
use crate::validation::cluster::status::{self, Change};
use crate::validation::{actions, body, node_group};

type Accepted = (StatusCode, Json<Value>);

fn uuid_of(found: &FoundCluster) -> Accepted {
    (StatusCode::ACCEPTED, Json(json!({"uuid": found.cluster.uuid})))
}

/// `POST /v1/clusters/{ident}/actions/resize`
///
/// # Errors
/// 400 for a body that breaks the schema, no nodes before 1.10, a count outside the group's bounds, names of nodes that
/// are not there, and where the driver is unknown or cannot do it; 404 for an unknown cluster or node group, or a deleted template;
/// 406 before 1.7; 409 for a status that forbids it.
pub async fn resize(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(ident): Ident,
    body: Body,
) -> Result<Accepted, ApiFault> {
    call.since(Version::RESIZE, "resize")?;
    call.arguments(&[])?;
    let given = body::read(
        actions::RESIZE,
        &body.json(actions::RESIZE)?,
        actions::RESIZE_FIELDS,
    )?;
    let wanted = actions::resize(&given, call.version)?;
    call.allow_all_projects(Rule::ClusterResizeAllProjects)?;
    let found = store::clusters::find(&app.database, &call.context, ident).await?;
    let target = Target::of(&found.cluster);
    call.authorize(Rule::ClusterResize, &target)?;
    let group = group_of(&app, &call, &found, wanted.node_group.as_deref()).await?;
    if !group.is_master() {
        node_group::rules::check_resize(&group, wanted.node_count)?;
    }
    check_driver(&app, &found, &group, &wanted).await?;
    status::check(Change::Resize, found.cluster.status)?;
    node_names::check(&app, &call.context, &found, &group, &wanted.nodes_to_remove).await?;
    let message = app
        .conductor
        .cluster_resize(&call.context, &found.cluster, &wanted, &group)
        .await?;
    let updating = ClusterStatus::UpdateInProgress;
    accepted::change(&app, &found.cluster, updating, Some((&group, updating)), message).await?;
    Ok(uuid_of(&found))
}

/// The group that is meant: the named one, else the default workers.
async fn group_of(
    app: &App,
    call: &ApiRequest,
    found: &FoundCluster,
    named: Option<&str>,
) -> Result<NodeGroup, ApiFault> {
    match named {
        None => Ok(found.default_worker()?.clone()),
        Some(named) => {
            let cluster = found.cluster.uuid.to_string();
            let (_, group) =
                store::node_groups::find(&app.database, &call.context, cluster, named.to_owned()).await?;
            Ok(group)
        }
    }
}

/// What the cluster's driver says of itself.
pub(super) async fn driver_of(app: &App, found: &FoundCluster) -> Result<DriverInfo, ApiFault> {
    let template = found
        .template
        .as_ref()
        .ok_or_else(|| Fault::cluster_template_not_found(found.cluster.cluster_template_id.as_str()))?;
    Ok(app.drivers.of_cluster(template).await?)
}

/// Refuses what the cluster's driver says that it cannot do. Asked only for what not every driver can.
async fn check_driver(
    app: &App,
    found: &FoundCluster,
    group: &NodeGroup,
    wanted: &actions::Resize,
) -> Result<(), ApiFault> {
    if !group.is_master() && wanted.nodes_to_remove.is_empty() {
        return Ok(());
    }
    let driver = driver_of(app, found).await?;
    if group.is_master() {
        if !driver.capabilities.resize_masters {
            return Err(Fault::new(
                Exception::MasterNGResizeNotSupported,
                "Resizing the master nodegroup is not supported by this driver.",
            )
            .into());
        }
        driver.master_size.check(wanted.node_count)?;
    }
    if !wanted.nodes_to_remove.is_empty() && !driver.capabilities.remove_named_nodes {
        let what = format!(
            "Removing the nodes that nodes_to_remove names from a cluster of driver {}",
            driver.name
        );
        return Err(Fault::not_supported(&what).into());
    }
    Ok(())
}

/// `POST /v1/clusters/{ident}/actions/upgrade`
///
/// # Errors
/// 400 for a body that breaks the schema, in microversion 1.7, and where status or driver do not allow it;
/// 404 for an unknown cluster, template or node group; 406 before 1.7; 409 for a group that must follow its
/// cluster, and an upgrade that is stopped; 500 where the driver fails.
pub async fn upgrade(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(ident): Ident,
    body: Body,
) -> Result<Accepted, ApiFault> {
    call.since(Version::RESIZE, "upgrade")?;
    call.arguments(&[])?;
    let given = body::read(
        actions::UPGRADE,
        &body.json(actions::UPGRADE)?,
        actions::UPGRADE_FIELDS,
    )?;
    if call.version < Version::UPGRADE {
        return Err(Fault::new(
            Exception::ClusterUpgradeNotSupported,
            "Cluster upgrade is not supported in the provided microversion.",
        )
        .into());
    }
    let wanted = actions::upgrade(&given);
    call.allow_all_projects(Rule::ClusterUpgradeAllProjects)?;
    let found = store::clusters::find(&app.database, &call.context, ident).await?;
    let target = Target::of(&found.cluster);
    call.authorize(Rule::ClusterUpgrade, &target)?;
    let template =
        store::cluster_templates::find(&app.database, &call.context, wanted.template.clone()).await?;
    let group = group_of(&app, &call, &found, wanted.node_group.as_deref()).await?;
    if wanted.node_group.is_some() {
        actions::check_upgrade(&found.cluster, found.template.as_ref(), &template, &group)?;
    }
    app.conductor
        .cluster_upgrade(
            &call.context,
            &found.cluster,
            &template,
            wanted.max_batch_size,
            &group,
        )
        .await?;
    Ok(uuid_of(&found))
}

/// `POST /v1/clusters/{ident}/actions/rebuild`
///
/// # Errors
/// 400 for a body that breaks the schema, and where the driver is unknown or cannot do it; 404 for an unknown
/// cluster or node group, or a deleted template; 406 before 1.16; 409 for a status that forbids it; 501 from
/// a conductor that does not know rebuilds.
pub async fn rebuild(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(ident): Ident,
    body: Body,
) -> Result<Accepted, ApiFault> {
    call.since(Version::NODE_ACTIONS, "rebuild")?;
    call.arguments(&[])?;
    let given = body::read(
        actions::REBUILD,
        &body.json(actions::REBUILD)?,
        actions::REBUILD_FIELDS,
    )?;
    let nodes = actions::nodes(&given)?;
    call.allow_all_projects(Rule::ClusterRebuildAllProjects)?;
    let found = store::clusters::find(&app.database, &call.context, ident).await?;
    call.authorize(Rule::ClusterRebuild, &Target::of(&found.cluster))?;
    let group = group_of_nodes(&app, &call, &found, &nodes).await?;
    require(&app, &found, "Rebuilding nodes", |can| can.rebuild).await?;
    status::check(Change::Rebuild, found.cluster.status)?;
    app.conductor
        .cluster_rebuild(&call.context, &found.cluster, group.as_ref(), &nodes.names)
        .await?;
    Ok(uuid_of(&found))
}

/// `POST /v1/clusters/{ident}/actions/reboot`
///
/// # Errors
/// 400 for a body that breaks the schema, and where the driver is unknown or cannot do it; 404 for an unknown
/// cluster or node group, or a deleted template; 406 before 1.16; 409 for a status that forbids it; 501 from
/// a conductor that does not know reboots.
pub async fn reboot(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(ident): Ident,
    body: Body,
) -> Result<Accepted, ApiFault> {
    call.since(Version::NODE_ACTIONS, "reboot")?;
    call.arguments(&[])?;
    let given = body::read(
        actions::REBOOT,
        &body.json(actions::REBOOT)?,
        actions::REBOOT_FIELDS,
    )?;
    let how = actions::reboot_type(&given)?;
    let nodes = actions::nodes(&given)?;
    call.allow_all_projects(Rule::ClusterRebootAllProjects)?;
    let found = store::clusters::find(&app.database, &call.context, ident).await?;
    call.authorize(Rule::ClusterReboot, &Target::of(&found.cluster))?;
    let group = group_of_nodes(&app, &call, &found, &nodes).await?;
    let doing = format!("A {how} reboot of nodes");
    require(&app, &found, &doing, |can| match how {
        RebootType::Soft => can.soft_reboot,
        RebootType::Hard => can.hard_reboot,
    })
    .await?;
    status::check(Change::Reboot, found.cluster.status)?;
    app.conductor
        .cluster_reboot(&call.context, &found.cluster, how, group.as_ref(), &nodes.names)
        .await?;
    Ok(uuid_of(&found))
}

/// The group that is named, if one is.
async fn group_of_nodes(
    app: &App,
    call: &ApiRequest,
    found: &FoundCluster,
    nodes: &actions::Nodes,
) -> Result<Option<NodeGroup>, ApiFault> {
    match &nodes.node_group {
        None => Ok(None),
        Some(named) => group_of(app, call, found, Some(named)).await.map(Some),
    }
}

/// Refuses `doing` unless the cluster's driver has the capability.
async fn require(
    app: &App,
    found: &FoundCluster,
    doing: &str,
    has: impl Fn(&Capabilities) -> bool,
) -> Result<(), ApiFault> {
    let driver = driver_of(app, found).await?;
    if has(&driver.capabilities) {
        return Ok(());
    }
    let what = format!("{doing} of a cluster of driver {}", driver.name);
    Err(Fault::not_supported(&what).into())
}
