//! Cluster templates: the one resource that the API writes itself.
//!
//! A template gets its driver when it is made, and keeps it. Where this differs from Magnum: a patch that
//! changes the driver, or what it was chosen for (image, distribution, server type), is resolved again, so that
//! a template never names a driver that cannot build from it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::TemplateUuid;
use magnum_common::model::ClusterTemplate;
use magnum_drivers::{ImageProperties, ResolutionRequest};
use serde_json::{Map, Value};

use crate::cloud::{Findings, Inquiry, Named};
use crate::faults::ApiFault;
use crate::microversion::Version;
use crate::policy::{Rule, Target};
use crate::request::{ApiRequest, Body, Ident};
use crate::state::App;
use crate::validation::query::{PAGING, Paging};
use crate::validation::{body, cluster_template as rules, names, patch};
use crate::views::collection::Page;
use crate::{store, views};

/// `GET /v1/clustertemplates`
///
/// # Errors
/// 400 for a limit, marker or order that is not valid; 404 for a marker that is no template the caller may
/// see.
pub async fn list(State(app): State<Arc<App>>, call: ApiRequest) -> Result<Json<Page<Value>>, ApiFault> {
    page(&app, call, Rule::ClusterTemplateGetAll, "clustertemplates").await
}

/// `GET /v1/clustertemplates/detail`
///
/// # Errors
/// Those of [`list`].
pub async fn detail(State(app): State<Arc<App>>, call: ApiRequest) -> Result<Json<Page<Value>>, ApiFault> {
    page(&app, call, Rule::ClusterTemplateDetail, "clustertemplates/detail").await
}

async fn page(
    app: &App,
    mut call: ApiRequest,
    rule: Rule,
    resource: &str,
) -> Result<Json<Page<Value>>, ApiFault> {
    let paging = Paging::from_arguments(&call.arguments(PAGING)?, app.max_limit)?;
    call.allow_all_projects(match rule {
        Rule::ClusterTemplateDetail => Rule::ClusterTemplateDetailAllProjects,
        _ => Rule::ClusterTemplateGetAllAllProjects,
    })?;
    call.authorize_own(rule)?;
    let templates = store::cluster_templates::page(&app.database, &call.context, paging.clone()).await?;
    let items: Vec<Value> = templates
        .iter()
        .map(|template| views::cluster_template::show(template, &call.base, call.version))
        .collect();
    let last = templates.last().map(|template| template.uuid.as_str());
    Ok(Json(views::collection::page(
        &call.base,
        resource,
        "clustertemplates",
        items,
        last,
        &paging,
    )))
}

/// `GET /v1/clustertemplates/{ident}`
///
/// # Errors
/// 404 for a template that the caller may not see.
pub async fn show(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(ident): Ident,
) -> Result<Json<Value>, ApiFault> {
    call.arguments(&[])?;
    call.allow_all_projects(Rule::ClusterTemplateGetOneAllProjects)?;
    let template = store::cluster_templates::find(&app.database, &call.context, ident).await?;
    // A public template belongs to every reader.
    let target = if template.public {
        Target::own(&call.context)
    } else {
        Target::of(&template)
    };
    call.authorize(Rule::ClusterTemplateGet, &target)?;
    Ok(Json(views::cluster_template::show(
        &template,
        &call.base,
        call.version,
    )))
}

/// `POST /v1/clustertemplates`
///
/// # Errors
/// 400 for a body that breaks the schema, values that do not go together, and where no driver fits; 403 for a
/// caller without a project, and where the policy denies `public` or `hidden`; 409 for a uuid that is taken.
/// Also those of [look-ups](super#errors-of-some-routes).
pub async fn create(
    State(app): State<Arc<App>>,
    call: ApiRequest,
    body: Body,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Value>), ApiFault> {
    call.arguments(&[])?;
    let given = body::read(rules::ARGUMENT, &body.json(rules::ARGUMENT)?, rules::FIELDS)?;
    rules::refuse_nulls(&given)?;
    if call.version < Version::TEMPLATE_DRIVER {
        rules::refuse_driver(&given)?;
    }
    call.authorize_own(Rule::ClusterTemplateCreate)?;
    call.project_of_new_resource()?;

    let mut template = new_template(&given, &call);
    rules::check_coe(&template, given.contains_key("coe"))?;
    template.network_driver =
        rules::network_driver(template.network_driver.as_deref(), &app.cluster_template)?;
    rules::check_volume_driver(template.volume_driver.as_deref())?;
    rules::check_docker_volume(
        template.docker_storage_driver.as_deref(),
        template.docker_volume_size,
    )?;
    if template.public || template.hidden {
        authorize_publish(&call)?;
    }
    let inquiry = app.cloud.inquire(&call.context);
    let named = Named::by_template(&template);
    let (image, found) = tokio::join!(image_of(&inquiry, &template), inquiry.look_up(&named));
    resolve_driver(&app, &call.context, &mut template, &image?).await?;
    found.check_existence()?;
    check_root_disks(&app, &found, &template)?;

    let template = store::cluster_templates::insert(&app.database, template).await?;
    let location = format!("{}/v1/clustertemplates/{}", call.base, template.uuid);
    let view = views::cluster_template::show(&template, &call.base, call.version);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(view)))
}

fn new_template(given: &Map<String, Value>, call: &ApiRequest) -> ClusterTemplate {
    let uuid = match given.get("uuid").and_then(Value::as_str) {
        // Magnum lets clients choose it.
        Some(uuid) => TemplateUuid::from(uuid),
        None => TemplateUuid::random(),
    };
    let mut template = ClusterTemplate::new(uuid);
    rules::assign(&mut template, given);
    template.name = template.name.or_else(|| Some(names::generate("template")));
    template.project_id = call.context.project_id().map(str::to_owned);
    template.user_id = call.context.user_id().map(str::to_owned);
    template
}

fn authorize_publish(call: &ApiRequest) -> Result<(), Fault> {
    call.authorize_own(Rule::ClusterTemplatePublish).map_err(|_| {
        Fault::new(
            Exception::ClusterTemplatePublishDenied,
            "Not authorized to set public or hidden flag for cluster template.",
        )
    })
}

async fn image_of(inquiry: &Inquiry, template: &ClusterTemplate) -> Result<ImageProperties, ApiFault> {
    let ident = template.image_id.as_deref().unwrap_or_default();
    Ok(inquiry.image(ident).await?.for_resolution(ident))
}

/// Whether the flavors that were looked up give the nodes a root disk.
fn check_root_disks(app: &App, found: &Findings, template: &ClusterTemplate) -> Result<(), ApiFault> {
    if !found.has_flavors() {
        return Ok(());
    }
    let size = rules::boot_volume_size(&template.labels)?;
    Ok(found.check_root_disks(size.unwrap_or(app.default_boot_volume_size))?)
}

/// Gives the template the driver that will build from it, and the distribution it was chosen for.
async fn resolve_driver(
    app: &App,
    context: &RequestContext,
    template: &mut ClusterTemplate,
    image: &ImageProperties,
) -> Result<(), ApiFault> {
    let request = ResolutionRequest {
        driver: template.driver.as_deref(),
        server_type: template.server_type.as_deref().unwrap_or_default(),
        coe: template.coe.as_deref().unwrap_or_default(),
    };
    let resolved = match app.drivers.resolve(&request, image).await {
        Ok(resolved) => resolved,
        Err(error) => return Err(app.drivers.explained(error, context).await.into()),
    };
    template.driver = Some(resolved.driver.name);
    template.cluster_distro = Some(resolved.cluster_type.os);
    Ok(())
}

/// `PATCH /v1/clustertemplates/{ident}`
///
/// # Errors
/// 400 for a wrong patch, where no driver fits, and for what clusters of the template forbid; 403 where the
/// policy denies `public` or `hidden`; 404 for a template that the caller may not see; 409 where others
/// change it all the time. Also those of [look-ups](super#errors-of-some-routes).
pub async fn update(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(ident): Ident,
    body: Body,
) -> Result<Json<Value>, ApiFault> {
    call.arguments(&[])?;
    let patch = patch::read(&body.json("patch")?, &rules::PATCH_RULES)?;
    call.allow_all_projects(Rule::ClusterTemplateUpdateAllProjects)?;
    let inquiry = app.cloud.inquire(&call.context);
    let mut ident = ident;
    for _ in 0..PATCH_ATTEMPTS {
        let before = store::cluster_templates::find(&app.database, &call.context, ident).await?;
        // Another attempt is for the same template, whatever it is called by then.
        ident = before.uuid.to_string();
        if let Some(template) = apply(&app, &call, &inquiry, &patch, before).await? {
            let view = views::cluster_template::show(&template, &call.base, call.version);
            return Ok(Json(view));
        }
    }
    Err(Fault::new(
        Exception::Conflict,
        "The cluster template is being changed by others all the time. Nothing was written; please try again.",
    )
    .into())
}

/// How often a patch is applied anew because the template changed between reading and writing.
const PATCH_ATTEMPTS: usize = 10;

/// Applies a patch to the template as it was read; `None` when it is no longer so.
async fn apply(
    app: &App,
    call: &ApiRequest,
    inquiry: &Inquiry,
    patch: &patch::Patch,
    before: ClusterTemplate,
) -> Result<Option<ClusterTemplate>, ApiFault> {
    let target = Target::of(&before);
    call.authorize(Rule::ClusterTemplateUpdate, &target)?;

    let mut after = patched(patch, &before, call.version)?;
    if after.network_driver != before.network_driver {
        after.network_driver = rules::network_driver(after.network_driver.as_deref(), &app.cluster_template)?;
    }
    rules::check_coe(&after, true)?;
    rules::check_volume_driver(after.volume_driver.as_deref())?;
    rules::check_docker_volume(after.docker_storage_driver.as_deref(), after.docker_volume_size)?;
    if (after.public, after.hidden) != (before.public, before.hidden) {
        authorize_publish(call)?;
    }
    let named = Named::by_change(&before, &after);
    let (image, found) = tokio::join!(image_again(inquiry, &before, &after), inquiry.look_up(&named));
    if let Some(image) = image? {
        let is_chosen = image
            .magnum_driver
            .as_deref()
            .is_some_and(|driver| !driver.is_empty());
        if is_chosen && before.image_id != after.image_id && before.driver == after.driver {
            // What the new image names goes before what was chosen for the old one.
            after.driver = None;
        }
        resolve_driver(app, &call.context, &mut after, &image).await?;
    }
    found.check_existence()?;
    check_root_disks(app, &found, &after)?;
    Ok(store::cluster_templates::update(&app.database, before, after).await?)
}

/// The template with the patch applied. The patch sees what a client of this version sees.
fn patched(
    patch: &patch::Patch,
    before: &ClusterTemplate,
    version: Version,
) -> Result<ClusterTemplate, Fault> {
    let Value::Object(document) = views::cluster_template::show(before, "", version) else {
        return Ok(before.clone());
    };
    let mut object = patch::apply(patch, document.clone(), &rules::PATCH_RULES)?;
    // What was removed gets its default back.
    for name in document.keys() {
        object.entry(name).or_insert(Value::Null);
    }
    body::check(&mut object, &document, rules::FIELDS)?;
    let mut after = before.clone();
    rules::assign(&mut after, &object);
    Ok(after)
}

/// The image, if the patch changed the driver or what it was chosen for: it is chosen, or checked, again.
async fn image_again(
    inquiry: &Inquiry,
    before: &ClusterTemplate,
    after: &ClusterTemplate,
) -> Result<Option<ImageProperties>, ApiFault> {
    let basis = |template: &ClusterTemplate| {
        (
            template.driver.clone(),
            template.image_id.clone(),
            template.cluster_distro.clone(),
            template.server_type.clone(),
            template.coe.clone(),
        )
    };
    if basis(before) == basis(after) {
        return Ok(None);
    }
    let mut image = image_of(inquiry, after).await?;
    // Without a new image the distribution is what the patch says it is.
    if before.image_id == after.image_id && after.cluster_distro.is_some() {
        image.magnum_distro.clone_from(&after.cluster_distro);
    }
    Ok(Some(image))
}

/// `DELETE /v1/clustertemplates/{ident}`
///
/// # Errors
/// 400 for a template that clusters use; 404 for one that the caller may not see.
pub async fn delete(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(ident): Ident,
) -> Result<StatusCode, ApiFault> {
    call.arguments(&[])?;
    call.allow_all_projects(Rule::ClusterTemplateDeleteAllProjects)?;
    let template = store::cluster_templates::find(&app.database, &call.context, ident).await?;
    let target = Target::of(&template);
    call.authorize(Rule::ClusterTemplateDelete, &target)?;
    store::cluster_templates::delete(&app.database, template.uuid).await?;
    Ok(StatusCode::NO_CONTENT)
}
