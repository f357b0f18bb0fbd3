//! Clusters: read from the database, changed by asking a conductor.
//!
//! A 202 or 204 means that the broker holds the request in a queue, and what it promises can be read: see
//! `accepted.rs`. A health is written here, without a conductor.
//!
//! Where this differs from Magnum: a change that the cluster's status does not allow is refused at once (409),
//! not dropped by the conductor later; a template that its owner has hidden meanwhile does not hide the cluster.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use magnum_common::error::{Exception, Fault};
use magnum_common::model::{Cluster, ClusterStatus, ClusterTemplate};
use magnum_drivers::{ImageProperties, check_distro};
use magnum_telemetry::field;
use serde_json::{Value, json};

use super::accepted;
use crate::cloud::{Inquiry, Named};
use crate::faults::ApiFault;
use crate::microversion::Version;
use crate::policy::{Rule, Target};
use crate::request::{ApiRequest, Body, Ident};
use crate::state::App;
use crate::validation::body::Kind;
use crate::validation::cluster::change::ClusterChange;
use crate::validation::cluster::create::NewCluster;
use crate::validation::cluster::status::Change;
use crate::validation::query::{Argument, PAGING, Paging};
use crate::validation::{body, cluster, cluster_template, patch};
use crate::views::cluster::{ClusterParts, LONG, SINGLE};
use crate::{store, views};

/// `GET /v1/clusters`
///
/// # Errors
/// 400 for a limit, marker or order that is not valid; 404 for a marker that is no cluster in the caller's
/// tenant scope.
pub async fn list(State(app): State<Arc<App>>, mut call: ApiRequest) -> Result<Response, ApiFault> {
    let paging = Paging::from_arguments(&call.arguments(PAGING)?, app.max_limit)?;
    call.allow_all_projects(Rule::ClusterGetAllAllProjects)?;
    call.authorize_own(Rule::ClusterGetAll)?;
    let page = store::clusters::page(&app.database, &call.context, paging.clone()).await?;
    let items = page
        .iter()
        .map(|(cluster, nodes)| views::cluster::brief(cluster, *nodes, &call.base, call.version))
        .collect();
    let last = page.last().map(|(cluster, _)| cluster.uuid.as_str());
    let page = views::collection::page(&call.base, "clusters", "clusters", items, last, &paging);
    Ok(Json(page).into_response())
}

/// `GET /v1/clusters/detail`
///
/// # Errors
/// Those of [`list`].
pub async fn detail(State(app): State<Arc<App>>, mut call: ApiRequest) -> Result<Response, ApiFault> {
    let paging = Paging::from_arguments(&call.arguments(PAGING)?, app.max_limit)?;
    call.allow_all_projects(Rule::ClusterDetailAllProjects)?;
    call.authorize_own(Rule::ClusterDetail)?;
    let page = store::clusters::detailed_page(&app.database, &call.context, paging.clone()).await?;
    let items = page
        .clusters
        .iter()
        .map(|cluster| {
            let parts = ClusterParts {
                cluster,
                node_groups: page.node_groups_of(cluster),
                template: page.template_of(cluster),
            };
            views::cluster::full(parts, &call.base, LONG, call.version)
        })
        .collect();
    let last = page.clusters.last().map(|cluster| cluster.uuid.as_str());
    let page = views::collection::page(&call.base, "clusters/detail", "clusters", items, last, &paging);
    Ok(Json(page).into_response())
}

/// `GET /v1/clusters/{ident}`
///
/// # Errors
/// 404 for a cluster that is not in the caller's tenant scope.
pub async fn show(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(ident): Ident,
) -> Result<Response, ApiFault> {
    call.arguments(&[])?;
    call.allow_all_projects(Rule::ClusterGetOneAllProjects)?;
    let found = store::clusters::find(&app.database, &call.context, ident).await?;
    let target = Target::of(&found.cluster);
    call.authorize(Rule::ClusterGet, &target)?;
    let parts = ClusterParts {
        cluster: &found.cluster,
        node_groups: &found.node_groups,
        template: found.template.as_ref(),
    };
    Ok(Json(views::cluster::full(parts, &call.base, SINGLE, call.version)).into_response())
}

/// `POST /v1/clusters`
///
/// # Errors
/// 400 for a body that breaks the schema or does not go with template or driver; 403 for a caller without a
/// project, a hidden template, and a quota that is used up; 404 for an unknown key pair or, from 1.10 on
/// (before: 400), template. Also those of [look-ups](super#errors-of-some-routes).
pub async fn create(
    State(app): State<Arc<App>>,
    call: ApiRequest,
    body: Body,
) -> Result<(StatusCode, Json<Value>), ApiFault> {
    call.arguments(&[])?;
    let given = body::read(cluster::ARGUMENT, &body.json(cluster::ARGUMENT)?, cluster::FIELDS)?;
    cluster::create::check_counts(&given, call.version)?;
    call.authorize_own(Rule::ClusterCreate)?;
    let project_id = call.project_of_new_resource()?.to_owned();

    let template = template_for(&app, &call, cluster::create::template_ident(&given)).await?;
    let new = cluster::create::compose(&given, &template, &call.context);
    let inquiry = app.cloud.inquire(&call.context);
    let image_driver = image_driver(&inquiry, &template).await?;
    let resolved = match app
        .drivers
        .resolve_stored(&template, image_driver.as_deref())
        .await
    {
        Ok(resolved) => resolved,
        Err(error) => return Err(app.drivers.explained(error, &call.context).await.into()),
    };
    cluster::create::check_composed(&new, &template)?;
    resolved.driver.master_size.check(new.master_count)?;
    if let Err(fault) = check_use(&app, &call, &inquiry, &new, &template).await {
        // A used-up quota is reported before anything that is wrong with the request; the reservation checks it for good.
        store::cluster_quota::check(&app.database, project_id, app.max_clusters_per_project).await?;
        return Err(fault);
    }
    reserve_and_publish(&app, &call, &project_id, &new).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({"uuid": new.cluster.uuid}))))
}

/// Whether the caller may use the template, and the cluster can be built in the cloud.
async fn check_use(
    app: &App,
    call: &ApiRequest,
    inquiry: &Inquiry,
    new: &NewCluster,
    template: &ClusterTemplate,
) -> Result<(), ApiFault> {
    if template.hidden && !call.context.is_admin() {
        return Err(Fault::new(Exception::NotAuthorized, "Not authorized.").into());
    }
    check_cloud(app, inquiry, new, template).await?;
    Ok(cluster::create::check_masters(new)?)
}

/// Hands the cluster to the conductors, within the project's quota, and waits until one has accepted it.
async fn reserve_and_publish(
    app: &App,
    call: &ApiRequest,
    project_id: &str,
    new: &NewCluster,
) -> Result<(), ApiFault> {
    let (uuid, limit) = (&new.cluster.uuid, app.max_clusters_per_project);
    store::cluster_quota::reserve(&app.database, project_id, uuid, limit, app.first_reservation).await?;
    if let Err(error) = app.conductor.cluster_create(&call.context, new).await {
        if !error.is_open() {
            store::cluster_quota::release(&app.database, uuid).await;
        }
        return Err(error.into());
    }
    if !accepted::new_cluster(app, uuid).await {
        tracing::warn!(
            { field::CLUSTER } = %uuid,
            "no conductor has accepted the request yet; it will be carried out when one does"
        );
        store::cluster_quota::keep(&app.database, uuid, app.reservation_timeout).await;
    }
    Ok(())
}

/// The template of a new cluster. One that does not exist is the client's mistake (400) up to 1.9 and a missing
/// resource (404) after that.
async fn template_for(app: &App, call: &ApiRequest, ident: String) -> Result<ClusterTemplate, ApiFault> {
    match store::cluster_templates::find_or_number(&app.database, &call.context, ident).await {
        Err(error) if error.is_not_found() && call.version < Version::ZERO_NODES => {
            Err(ApiFault::from(error).with_status(StatusCode::BAD_REQUEST))
        }
        other => Ok(other?),
    }
}

/// Whether everything that the cluster needs of the cloud is there, in Magnum's order.
async fn check_cloud(
    app: &App,
    inquiry: &Inquiry,
    new: &NewCluster,
    template: &ClusterTemplate,
) -> Result<(), ApiFault> {
    let named = Named::by_cluster(&new.cluster, template);
    let (image, found) = tokio::join!(image_of(inquiry, template), inquiry.look_up(&named));
    let size = cluster_template::boot_volume_size(&new.cluster.labels)?;
    found.check_root_disks(size.unwrap_or(app.default_boot_volume_size))?;
    if let Some(image) = image? {
        check_distro(&image)?;
    }
    found.check_existence()?;
    Ok(found.check_key_pair()?)
}

/// The template's image; none for an old template without one.
async fn image_of(
    inquiry: &Inquiry,
    template: &ClusterTemplate,
) -> Result<Option<ImageProperties>, ApiFault> {
    match template.image_id.as_deref() {
        Some(ident) => Ok(Some(inquiry.image(ident).await?.for_resolution(ident))),
        None => Ok(None),
    }
}

/// The driver that the template's image names. Asked for only where the template, made by an older release, has
/// none of its own.
async fn image_driver(inquiry: &Inquiry, template: &ClusterTemplate) -> Result<Option<String>, ApiFault> {
    if template
        .driver
        .as_deref()
        .is_some_and(|driver| !driver.is_empty())
    {
        return Ok(None);
    }
    Ok(image_of(inquiry, template)
        .await?
        .and_then(|image| image.magnum_driver))
}

/// What a change can be asked with.
pub const UPDATE_ARGUMENTS: &[Argument] =
    &[Argument::new("rollback", Kind::Boolean).since(Version::ROLLBACK)];

/// `PATCH /v1/clusters/{ident}`
///
/// # Errors
/// 400 for a wrong patch, no nodes before 1.10, and a count outside the group's bounds; 403 also where the
/// policy denies a change of health; 404 for a cluster that is not in the caller's tenant scope; 409 for a
/// status that forbids it.
pub async fn update(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(ident): Ident,
    body: Body,
) -> Result<(StatusCode, Json<Value>), ApiFault> {
    let rollback = call
        .arguments(UPDATE_ARGUMENTS)?
        .boolean("rollback")?
        .unwrap_or(false);
    let patch = patch::read(&body.json("patch")?, &cluster::PATCH_RULES)?;
    call.allow_all_projects(Rule::ClusterUpdateAllProjects)?;
    let found = store::clusters::find(&app.database, &call.context, ident).await?;
    let target = Target::of(&found.cluster);
    call.authorize(Rule::ClusterUpdate, &target)?;
    if patch.touches(cluster::HEALTH) {
        call.authorize(Rule::ClusterUpdateHealthStatus, &target)?;
    }
    let change = cluster::change::change(&patch, &found.cluster, &found.node_groups, call.version)?;
    let resizes = found.default_worker().map(|group| group.node_count).ok() != Some(change.node_count);
    let accepted = (StatusCode::ACCEPTED, Json(json!({"uuid": found.cluster.uuid})));
    if !resizes && patch.touches(cluster::HEALTH) && report_health(&app, &found.cluster, &change).await? {
        return Ok(accepted);
    }
    cluster::status::check(Change::Update, found.cluster.status)?;
    let message = app
        .conductor
        .cluster_update(&call.context, &found.cluster, &change, rollback)
        .await?;
    if resizes {
        accepted::change(
            &app,
            &found.cluster,
            ClusterStatus::UpdateInProgress,
            None,
            message,
        )
        .await?;
    }
    Ok(accepted)
}

/// Writes what a monitor reports, whatever else goes on with the cluster. `false`: that is for a conductor of Magnum.
async fn report_health(app: &App, cluster: &Cluster, change: &ClusterChange) -> Result<bool, ApiFault> {
    let (status, reasons) = (change.health_status, change.health_status_reason.clone());
    let uuid = cluster.uuid.clone();
    let within = app.service_down_time;
    Ok(store::cluster_health::report(&app.database, uuid, status, reasons, within).await?)
}

/// `DELETE /v1/clusters/{ident}`. Allowed in every status.
///
/// # Errors
/// 404 for a cluster that is not in the caller's tenant scope.
pub async fn delete(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(ident): Ident,
) -> Result<StatusCode, ApiFault> {
    call.arguments(&[])?;
    call.allow_all_projects(Rule::ClusterDeleteAllProjects)?;
    let found = store::clusters::find(&app.database, &call.context, ident).await?;
    let target = Target::of(&found.cluster);
    call.authorize(Rule::ClusterDelete, &target)?;
    let message = app
        .conductor
        .cluster_delete(&call.context, &found.cluster.uuid)
        .await?;
    let deleting = ClusterStatus::DeleteInProgress;
    match accepted::change(&app, &found.cluster, deleting, None, message).await {
        // Somebody else was faster.
        Err(fault) if fault.status() == StatusCode::NOT_FOUND => Ok(StatusCode::NO_CONTENT),
        accepted => accepted.map(|()| StatusCode::NO_CONTENT),
    }
}
