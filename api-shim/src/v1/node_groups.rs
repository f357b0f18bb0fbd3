//! Node groups of a cluster: read from the database, changed by asking a conductor.
//!
//! A 202 or 204 means that the broker holds the request in a queue, and what it promises can be read: see
//! `accepted.rs`.
//!
//! Where this differs from Magnum: an administrator changes the groups of every project, not only sees them; a
//! change that the status of cluster or group does not allow is refused at once (409); the image of a new group has
//! to exist.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use magnum_common::error::{Exception, Fault};
use magnum_common::model::{Cluster, ClusterStatus};
use serde_json::{Map, Value};

use super::accepted;
use crate::cloud::Named;
use crate::faults::ApiFault;
use crate::microversion::Version;
use crate::policy::Rule;
use crate::request::{ApiRequest, Body, Ident, Idents};
use crate::state::App;
use crate::validation::body::NAME;
use crate::validation::cluster::status::{self, Change};
use crate::validation::node_group::{self, change, create as rules};
use crate::validation::query::{Argument, LIMIT, MARKER, Paging, SORT_DIR, SORT_KEY};
use crate::validation::{body, cluster_template, patch};
use crate::views::collection::Page;
use crate::{store, views};

/// What every route checks first: the version, then the right to do it in the caller's project. An administrator
/// is let into the others.
fn enter(call: &mut ApiRequest, rule: Rule) -> Result<(), ApiFault> {
    call.allow_all_projects(match rule {
        Rule::NodegroupGetAll => Rule::NodegroupGetAllAllProjects,
        Rule::NodegroupCreate => Rule::NodegroupCreateAllProjects,
        Rule::NodegroupUpdate => Rule::NodegroupUpdateAllProjects,
        Rule::NodegroupDelete => Rule::NodegroupDeleteAllProjects,
        _ => Rule::NodegroupGetOneAllProjects,
    })?;
    Ok(call.authorize_own(rule)?)
}

/// What a list can be asked for.
pub const ARGUMENTS: &[Argument] = &[MARKER, LIMIT, SORT_KEY, SORT_DIR, Argument::new("role", NAME)];

/// `GET /v1/clusters/{ident}/nodegroups`
///
/// # Errors
/// 400 for a limit, marker or order that is not valid; 404 for a cluster that is not in the caller's tenant
/// scope, and a marker that is none of its groups; 406 before 1.9.
pub async fn list(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(cluster): Ident,
) -> Result<Json<Page<Value>>, ApiFault> {
    call.since(Version::NODE_GROUPS, "nodegroups")?;
    let arguments = call.arguments(ARGUMENTS)?;
    let paging = Paging::from_arguments(&arguments, app.max_limit)?;
    let role = arguments.get("role").filter(|role| !role.is_empty());
    enter(&mut call, Rule::NodegroupGetAll)?;
    let (cluster, groups) = store::node_groups::page(
        &app.database,
        &call.context,
        cluster,
        role.map(str::to_owned),
        paging.clone(),
    )
    .await?;
    let filters: Vec<(&str, &str)> = role.map(|role| ("role", role)).into_iter().collect();
    Ok(Json(views::collection::filtered_page(
        &call.base,
        &format!("clusters/{cluster}/nodegroups"),
        "nodegroups",
        groups.iter().map(views::node_group::brief).collect(),
        groups.last().map(|group| group.uuid.as_str()),
        &paging,
        &filters,
    )))
}

/// `GET /v1/clusters/{ident}/nodegroups/{group}`
///
/// # Errors
/// 404 for a cluster that is not in the caller's tenant scope, and a group that it does not have; 406 before
/// 1.9.
pub async fn show(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Idents(cluster, group): Idents,
) -> Result<Json<Value>, ApiFault> {
    call.since(Version::NODE_GROUPS, "nodegroups")?;
    call.arguments(&[])?;
    enter(&mut call, Rule::NodegroupGet)?;
    let (found, group) = store::node_groups::find(&app.database, &call.context, cluster, group).await?;
    let view = views::node_group::full(&group, &found.cluster, &call.base, call.version);
    Ok(Json(view))
}

/// `POST /v1/clusters/{ident}/nodegroups`
///
/// # Errors
/// 400 for a body that breaks the schema, and a group of masters; 404 for a cluster that is not in the
/// caller's tenant scope; 406 before 1.9; 409 for a cluster without API address or on its way out, a name
/// that is taken, and counts, node labels or taints that are not valid. Also those of
/// [look-ups](super#errors-of-some-routes).
pub async fn create(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(cluster): Ident,
    body: Body,
) -> Result<(StatusCode, Json<Value>), ApiFault> {
    call.since(Version::NODE_GROUPS, "nodegroups")?;
    call.arguments(&[])?;
    let argument = node_group::ARGUMENT;
    let mut given = body::read(argument, &body.json(argument)?, node_group::FIELDS)?;
    rules::check_given(&mut given, call.version)?;
    enter(&mut call, Rule::NodegroupCreate)?;

    let found = store::clusters::find(&app.database, &call.context, cluster).await?;
    let cluster = &found.cluster;
    check_ready(cluster)?;
    let new = rules::compose(&given, cluster, found.template.as_ref());
    let name = &new.group.name;
    if store::node_groups::has(&app.database, cluster.uuid.clone(), name.clone()).await? {
        return Err(Fault::new(
            Exception::NodeGroupAlreadyExists,
            format!(
                "A node group with name {name} already exists in the cluster {}.",
                cluster.name.as_deref().unwrap_or(cluster.uuid.as_str())
            ),
        )
        .into());
    }
    rules::check_composed(&new)?;
    check_cloud(&app, &call, &given, &new).await?;

    let message = app
        .conductor
        .nodegroup_create(&call.context, cluster, &new)
        .await?;
    accepted::change(&app, cluster, ClusterStatus::UpdateInProgress, None, message).await?;
    let view = views::node_group::created(&new, cluster, &call.base);
    Ok((StatusCode::ACCEPTED, Json(view)))
}

/// Whether the image that the request names is there, and what the group needs besides.
async fn check_cloud(
    app: &App,
    call: &ApiRequest,
    given: &Map<String, Value>,
    new: &rules::NewNodeGroup,
) -> Result<(), ApiFault> {
    let inquiry = app.cloud.inquire(&call.context);
    let image = async {
        match given.get("image_id").and_then(Value::as_str) {
            Some(ident) => inquiry.image(ident).await.map(drop),
            None => Ok(()),
        }
    };
    let named = Named::by_node_group(&new.group);
    let (image, found) = tokio::join!(image, inquiry.look_up(&named));
    let size = cluster_template::boot_volume_size(&new.group.labels)?;
    found.check_root_disks(size.unwrap_or(app.default_boot_volume_size))?;
    image?;
    Ok(found.check_existence()?)
}

/// Whether a cluster is far enough to get another group, and not on its way out.
fn check_ready(cluster: &Cluster) -> Result<(), Fault> {
    if cluster.api_address.as_deref().is_none_or(str::is_empty) {
        return Err(Fault::new(
            Exception::ClusterAPIAddressUnavailable,
            "Cluster API address is not available yet",
        ));
    }
    status::check(Change::NodeGroupCreate, cluster.status)
}

/// `PATCH /v1/clusters/{ident}/nodegroups/{group}`
///
/// # Errors
/// 400 for a wrong patch; 404 for a cluster that is not in the caller's tenant scope, and a group that it
/// does not have; 406 before 1.9; 409 for a status of cluster or group that forbids it, and counts, node
/// labels or taints that are not valid.
pub async fn update(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Idents(cluster, group): Idents,
    body: Body,
) -> Result<(StatusCode, Json<Value>), ApiFault> {
    call.since(Version::NODE_GROUPS, "nodegroups")?;
    call.arguments(&[])?;
    let patch = patch::read(&body.json("patch")?, &node_group::PATCH_RULES)?;
    enter(&mut call, Rule::NodegroupUpdate)?;
    let (found, before) = store::node_groups::find(&app.database, &call.context, cluster, group).await?;
    let after = change::change(&patch, &before, call.version)?;
    status::check(Change::NodeGroupUpdate, found.cluster.status)?;
    node_group::rules::check_updatable(&before)?;
    let message = app
        .conductor
        .nodegroup_update(&call.context, &found.cluster, &before, &after)
        .await?;
    let updating = ClusterStatus::UpdateInProgress;
    accepted::change(&app, &found.cluster, updating, Some((&before, updating)), message).await?;
    let view = views::node_group::full(&after, &found.cluster, &call.base, call.version);
    Ok((StatusCode::ACCEPTED, Json(view)))
}

/// `DELETE /v1/clusters/{ident}/nodegroups/{group}`
///
/// # Errors
/// 400 for a default group; 404 for a cluster that is not in the caller's tenant scope, and a group that it
/// does not have; 406 before 1.9; 409 for a cluster that is being deleted, or is.
pub async fn delete(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Idents(cluster, group): Idents,
) -> Result<StatusCode, ApiFault> {
    call.since(Version::NODE_GROUPS, "nodegroups")?;
    call.arguments(&[])?;
    enter(&mut call, Rule::NodegroupDelete)?;
    let (found, group) = store::node_groups::find(&app.database, &call.context, cluster, group).await?;
    if group.is_default {
        return Err(Fault::new(
            Exception::DeletingDefaultNGNotSupported,
            "Deleting a default nodegroup is not supported.",
        )
        .into());
    }
    status::check(Change::NodeGroupDelete, found.cluster.status)?;
    let message = app
        .conductor
        .nodegroup_delete(&call.context, &found.cluster, &group)
        .await?;
    let deleting = Some((&group, ClusterStatus::DeleteInProgress));
    let updating = ClusterStatus::UpdateInProgress;
    accepted::change(&app, &found.cluster, updating, deleting, message).await?;
    Ok(StatusCode::NO_CONTENT)
}
