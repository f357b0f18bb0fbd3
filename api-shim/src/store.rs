//! Reads and writes of the database, in the words of the handlers.
//!
//! Each function is one piece of work on one connection, with a number of queries that does not depend on how
//! many rows it returns. What is not found is Magnum's fault for it.

use std::collections::HashMap;
use std::time::Duration;

use magnum_common::clock;
use magnum_common::context::RequestContext;
use magnum_common::db::read::cluster_templates::Visibility;
use magnum_common::db::read::{self, Page, SortDir, SortKey, Tenancy};
use magnum_common::db::write::cluster_templates::Written;
use magnum_common::db::{AnyConnection, Database, DbError, now_ms, write};
use magnum_common::drivers::Announcement;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::{ClusterUuid, TemplateUuid};
use magnum_common::model::{Cluster, ClusterTemplate, MagnumService, NodeGroup};

use crate::faults::ApiFault;
use crate::validation::query::{Direction, Paging, bad_sort_key};

/// A failure inside a piece of work: the database's, or one to tell the client.
#[derive(Debug)]
enum Failure {
    Database(DbError),
    Told(Fault),
}

impl From<DbError> for Failure {
    fn from(error: DbError) -> Self {
        Self::Database(error)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Told(fault)
    }
}

impl From<Failure> for ApiFault {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Database(error) => error.into(),
            Failure::Told(fault) => fault.into(),
        }
    }
}

/// Runs work that reads.
async fn reading<T: Send + 'static>(
    database: &Database,
    work: impl FnOnce(&mut AnyConnection) -> Result<T, Failure> + Send + 'static,
) -> Result<T, ApiFault> {
    // A fault to tell is a value as far as the pool is concerned.
    let done = database
        .run(move |connection| match work(connection) {
            Ok(value) => Ok(Ok(value)),
            Err(Failure::Told(fault)) => Ok(Err(fault)),
            Err(Failure::Database(error)) => Err(error),
        })
        .await?;
    Ok(done?)
}

/// A uuid or a name, as Magnum tells them apart: what reads as a uuid is one. Uuids are looked up in their usual
/// form, so that case and dashes do not matter.
enum Ident {
    Uuid(String),
    Name(String),
}

impl Ident {
    fn of(text: &str) -> Self {
        match uuid::Uuid::try_parse(text) {
            Ok(uuid) => Self::Uuid(uuid.to_string()),
            Err(_) => Self::Name(text.to_owned()),
        }
    }
}

/// The only one of at most two, or the fault for none or several.
fn only<T>(found: Vec<T>, none: impl FnOnce() -> Fault, several: &str) -> Result<T, Fault> {
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(none()),
        (Some(_), Some(_)) => Err(Fault::new(Exception::Conflict, several)),
    }
}

fn page(paging: &Paging, sort_key: Option<SortKey>, after: Option<i32>) -> Result<Page, Fault> {
    Ok(Page {
        limit: Some(paging.limit),
        after,
        sort_key: Some(sort_key.ok_or_else(|| bad_sort_key(&paging.sort_key))?),
        sort_dir: match paging.direction {
            Direction::Ascending => SortDir::Asc,
            Direction::Descending => SortDir::Desc,
        },
    })
}

/// A page of clusters with what belongs to them.
#[derive(Debug, Default)]
pub struct ClusterPage {
    /// In order.
    pub clusters: Vec<Cluster>,
    node_groups: HashMap<ClusterUuid, Vec<NodeGroup>>,
    templates: HashMap<TemplateUuid, ClusterTemplate>,
}

impl ClusterPage {
    /// The node groups of one of the clusters.
    pub fn node_groups_of(&self, cluster: &Cluster) -> &[NodeGroup] {
        self.node_groups.get(&cluster.uuid).map_or(&[], Vec::as_slice)
    }

    /// The template of one of the clusters; read for long views only.
    pub fn template_of(&self, cluster: &Cluster) -> Option<&ClusterTemplate> {
        self.templates.get(&cluster.cluster_template_id)
    }
}

/// One page of the clusters that the caller may see; `with_templates` for long views.
pub async fn clusters(
    database: &Database,
    context: &RequestContext,
    paging: Paging,
    with_templates: bool,
) -> Result<ClusterPage, ApiFault> {
    let tenancy = Tenancy::of(context);
    reading(database, move |connection| {
        let after = match &paging.marker {
            None => None,
            Some(marker) => {
                let uuid = ClusterUuid::from(marker.as_str());
                let cluster = read::clusters::find_by_uuid(connection, &tenancy, &uuid)?;
                cluster.ok_or_else(|| Fault::cluster_not_found(marker))?.id
            }
        };
        let page = page(&paging, SortKey::of_cluster(&paging.sort_key), after)?;
        let filter = read::clusters::Filter::default();
        let clusters = read::clusters::list(connection, &tenancy, &filter, &page)?;
        let uuids: Vec<ClusterUuid> = clusters.iter().map(|cluster| cluster.uuid.clone()).collect();
        let node_groups = read::node_groups::of_clusters(connection, &uuids)?;
        let templates = if with_templates {
            templates_of(connection, &clusters)?
        } else {
            HashMap::new()
        };
        Ok(ClusterPage {
            clusters,
            node_groups,
            templates,
        })
    })
    .await
}

fn templates_of(
    connection: &mut AnyConnection,
    clusters: &[Cluster],
) -> Result<HashMap<TemplateUuid, ClusterTemplate>, DbError> {
    let mut uuids: Vec<TemplateUuid> = clusters
        .iter()
        .map(|cluster| cluster.cluster_template_id.clone())
        .collect();
    uuids.sort_unstable();
    uuids.dedup();
    let templates = read::cluster_templates::with_uuids(connection, &uuids)?;
    Ok(templates
        .into_iter()
        .map(|template| (template.uuid.clone(), template))
        .collect())
}

/// One cluster with what belongs to it.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct FoundCluster {
    pub cluster: Cluster,
    pub node_groups: Vec<NodeGroup>,
    /// Whoever may see it: a cluster must not vanish with its template.
    pub template: Option<ClusterTemplate>,
}

/// The cluster with this uuid or name.
pub async fn cluster(
    database: &Database,
    context: &RequestContext,
    ident: String,
) -> Result<FoundCluster, ApiFault> {
    let tenancy = Tenancy::of(context);
    reading(database, move |connection| {
        let found = match Ident::of(&ident) {
            Ident::Uuid(uuid) => {
                let uuid = ClusterUuid::from(uuid);
                read::clusters::find_by_uuid(connection, &tenancy, &uuid)?
                    .into_iter()
                    .collect()
            }
            Ident::Name(name) => read::clusters::find_by_name(connection, &tenancy, &name)?,
        };
        let cluster = only(
            found,
            || Fault::cluster_not_found(&ident),
            "Multiple clusters exist with same name. Please use the cluster uuid instead.",
        )?;
        let node_groups = read::node_groups::of_clusters(connection, std::slice::from_ref(&cluster.uuid))?
            .remove(&cluster.uuid)
            .unwrap_or_default();
        let template =
            templates_of(connection, std::slice::from_ref(&cluster))?.remove(&cluster.cluster_template_id);
        Ok(FoundCluster {
            cluster,
            node_groups,
            template,
        })
    })
    .await
}

/// Whether a conductor has made the row yet.
pub async fn cluster_exists(database: &Database, uuid: ClusterUuid) -> Result<bool, ApiFault> {
    let found = database
        .run(move |connection| read::clusters::find_by_uuid(connection, &Tenancy::All, &uuid))
        .await?;
    Ok(found.is_some())
}

/// Refuses when the project has as many clusters as it may have: by its own limit, else by `default_limit`.
pub async fn check_quota(
    database: &Database,
    project_id: String,
    default_limit: u32,
) -> Result<(), ApiFault> {
    reading(database, move |connection| {
        let limit = read::records::find_quota(connection, &project_id, "Cluster")?
            .map_or_else(|| i64::from(default_limit), |quota| i64::from(quota.hard_limit));
        let used = read::clusters::count(connection, Some(&project_id))?;
        if used < limit {
            return Ok(());
        }
        Err(Failure::Told(Fault::new(
            Exception::ResourceLimitExceeded,
            format!(
                "Resource limit exceeded: You have reached the maximum clusters per project, {limit}. You may \
                 delete a cluster to make room for a new one."
            ),
        )))
    })
    .await
}

/// The template with this uuid or name, if it is visible to the caller.
pub async fn template(
    database: &Database,
    context: &RequestContext,
    ident: String,
) -> Result<ClusterTemplate, ApiFault> {
    find_template(database, context, ident, false).await
}

/// The same for a new cluster, where Magnum takes the row's number too.
pub async fn template_or_number(
    database: &Database,
    context: &RequestContext,
    ident: String,
) -> Result<ClusterTemplate, ApiFault> {
    find_template(database, context, ident, true).await
}

async fn find_template(
    database: &Database,
    context: &RequestContext,
    ident: String,
    numbers: bool,
) -> Result<ClusterTemplate, ApiFault> {
    let visibility = Visibility::of(context);
    reading(database, move |connection| {
        let number = ident.parse::<i32>().ok().filter(|_| numbers);
        let found = match (number, Ident::of(&ident)) {
            (Some(number), _) => read::cluster_templates::find_by_id(connection, &visibility, number)?
                .into_iter()
                .collect(),
            (None, Ident::Uuid(uuid)) => {
                let uuid = TemplateUuid::from(uuid);
                read::cluster_templates::find_by_uuid(connection, &visibility, &uuid)?
                    .into_iter()
                    .collect()
            }
            (None, Ident::Name(name)) => {
                read::cluster_templates::find_by_name(connection, &visibility, &name)?
            }
        };
        Ok(only(
            found,
            || Fault::cluster_template_not_found(&ident),
            "Multiple ClusterTemplates exist with same name. Please use the ClusterTemplate uuid instead.",
        )?)
    })
    .await
}

/// One page of the templates that the caller may see.
pub async fn templates(
    database: &Database,
    context: &RequestContext,
    paging: Paging,
) -> Result<Vec<ClusterTemplate>, ApiFault> {
    let visibility = Visibility::of(context);
    reading(database, move |connection| {
        let after = match &paging.marker {
            None => None,
            Some(marker) => {
                let uuid = TemplateUuid::from(marker.as_str());
                let template = read::cluster_templates::find_by_uuid(connection, &visibility, &uuid)?;
                template
                    .ok_or_else(|| Fault::cluster_template_not_found(marker))?
                    .id
            }
        };
        let page = page(&paging, SortKey::of_cluster_template(&paging.sort_key), after)?;
        Ok(read::cluster_templates::list(connection, &visibility, &page)?)
    })
    .await
}

/// Inserts a template and returns it as its row is.
pub async fn insert_template(
    database: &Database,
    mut template: ClusterTemplate,
) -> Result<ClusterTemplate, ApiFault> {
    template.created_at = Some(clock::row_now());
    let done: Result<ClusterTemplate, Failure> = database
        .transaction(move |connection| {
            match write::cluster_templates::insert(connection, &template) {
                Err(DbError::UniqueViolation { .. }) => {
                    return Err(Failure::Told(Fault::new(
                        Exception::ClusterTemplateAlreadyExists,
                        format!("A ClusterTemplate with UUID {} already exists.", template.uuid),
                    )));
                }
                other => other?,
            }
            row_of(connection, &template.uuid)
        })
        .await;
    Ok(done?)
}

/// Writes what changed and returns the template as its row is.
pub async fn update_template(
    database: &Database,
    before: ClusterTemplate,
    after: ClusterTemplate,
) -> Result<ClusterTemplate, ApiFault> {
    let done: Result<ClusterTemplate, Failure> = database
        .transaction(move |connection| {
            let written = write::cluster_templates::update(connection, &before, &after)?;
            told(&written, &before.uuid)?;
            row_of(connection, &before.uuid)
        })
        .await;
    Ok(done?)
}

/// Deletes a template that no cluster uses.
pub async fn delete_template(database: &Database, uuid: TemplateUuid) -> Result<(), ApiFault> {
    let done: Result<(), Failure> = database
        .transaction(move |connection| {
            let written = write::cluster_templates::delete(connection, &uuid)?;
            Ok(told(&written, &uuid)?)
        })
        .await;
    Ok(done?)
}

fn row_of(connection: &mut AnyConnection, uuid: &TemplateUuid) -> Result<ClusterTemplate, Failure> {
    let row = read::cluster_templates::find_by_uuid(connection, &Visibility::all(), uuid)?;
    Ok(row.ok_or_else(|| Fault::cluster_template_not_found(uuid.as_str()))?)
}

fn told(written: &Written, uuid: &TemplateUuid) -> Result<(), Fault> {
    match written {
        Written::Done => Ok(()),
        Written::Absent => Err(Fault::cluster_template_not_found(uuid.as_str())),
        Written::Referenced => Err(Fault::new(
            Exception::ClusterTemplateReferenced,
            format!("ClusterTemplate {uuid} is referenced by one or multiple clusters."),
        )),
    }
}

/// All services.
pub async fn services(database: &Database) -> Result<Vec<MagnumService>, ApiFault> {
    Ok(database.run(read::records::services).await?)
}

/// The drivers of the conductors that announced them within `max_age`.
pub async fn announced_drivers(
    database: &Database,
    max_age: Duration,
) -> Result<Vec<Announcement>, ApiFault> {
    Ok(database
        .run(move |connection| read::drivers::announced(connection, max_age))
        .await?)
}

/// Whether the database answers.
pub async fn is_reachable(database: &Database) -> bool {
    database.run(now_ms).await.is_ok()
}
