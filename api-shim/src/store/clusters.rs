//! Clusters, with the node groups and templates that their views need.
//!
//! What was promised shows at once: a cluster with a change that no conductor has recorded yet is in progress (see
//! [`acceptance`]).

use std::collections::HashMap;

use magnum_common::context::RequestContext;
use magnum_common::error::Fault;
use magnum_common::ids::{ClusterUuid, TemplateUuid};
use magnum_common::model::{Cluster, ClusterTemplate, NodeCounts, NodeGroup, Role};
use magnum_db::read::pending_changes::PendingChange;
use magnum_db::read::{self, SortKey, Tenancy};
use magnum_db::{AnyConnection, Database, DbError};

use super::{Ident, StoreError, acceptance, only, page_of, reading};
use crate::validation::query::Paging;

/// Clusters, each with the number of its nodes.
pub type CountedClusters = Vec<(Cluster, NodeCounts)>;

/// A page of clusters with what belongs to them.
#[derive(Debug)]
pub struct ClusterPage {
    /// The clusters, in the order of the list.
    pub clusters: Vec<Cluster>,
    node_groups: HashMap<ClusterUuid, Vec<NodeGroup>>,
    templates: HashMap<TemplateUuid, ClusterTemplate>,
}

impl ClusterPage {
    /// The node groups of one of the clusters.
    pub fn node_groups_of(&self, cluster: &Cluster) -> &[NodeGroup] {
        self.node_groups.get(&cluster.uuid).map_or(&[], Vec::as_slice)
    }

    /// The template of one of the clusters, unless it was deleted.
    pub fn template_of(&self, cluster: &Cluster) -> Option<&ClusterTemplate> {
        self.templates.get(&cluster.cluster_template_id)
    }
}

/// One page of the clusters that the caller may see, for short views.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn page(
    database: &Database,
    context: &RequestContext,
    paging: Paging,
) -> Result<CountedClusters, StoreError> {
    let tenancy = Tenancy::of(context);
    reading(database, move |connection| {
        let mut clusters = list(connection, &tenancy, &paging)?;
        show_pending(connection, &mut clusters)?;
        let mut counts = read::node_groups::counts(connection, &uuids(&clusters))?;
        let counted = clusters.into_iter().map(|cluster| {
            let nodes = counts.remove(&cluster.uuid).unwrap_or_default();
            (cluster, nodes)
        });
        Ok(counted.collect())
    })
    .await
}

/// The same page for long views.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn detailed_page(
    database: &Database,
    context: &RequestContext,
    paging: Paging,
) -> Result<ClusterPage, StoreError> {
    let tenancy = Tenancy::of(context);
    reading(database, move |connection| {
        let mut clusters = list(connection, &tenancy, &paging)?;
        let changes = show_pending(connection, &mut clusters)?;
        let mut node_groups = read::node_groups::of_clusters(connection, &uuids(&clusters))?;
        for group in node_groups.values_mut().flatten() {
            acceptance::show_in_group(&changes, group);
        }
        Ok(ClusterPage {
            node_groups,
            templates: templates_of(connection, &clusters)?,
            clusters,
        })
    })
    .await
}

fn list(
    connection: &mut AnyConnection,
    tenancy: &Tenancy,
    paging: &Paging,
) -> Result<Vec<Cluster>, StoreError> {
    let after = match &paging.marker {
        None => None,
        Some(marker) => {
            let uuid = ClusterUuid::from(marker.as_str());
            let cluster = read::clusters::find_by_uuid(connection, tenancy, &uuid)?;
            cluster.ok_or_else(|| Fault::cluster_not_found(marker))?.id
        }
    };
    let page = page_of(paging, SortKey::of_cluster(&paging.sort_key), after)?;
    let filter = read::clusters::Filter::default();
    Ok(read::clusters::list(connection, tenancy, &filter, &page)?)
}

/// Shows what conductors are still to record of these clusters, and returns it.
fn show_pending(
    connection: &mut AnyConnection,
    clusters: &mut [Cluster],
) -> Result<Vec<PendingChange>, DbError> {
    let changes = read::pending_changes::of_clusters(connection, &uuids(clusters))?;
    for cluster in clusters {
        acceptance::show_in(&changes, cluster);
    }
    Ok(changes)
}

fn uuids(clusters: &[Cluster]) -> Vec<ClusterUuid> {
    clusters.iter().map(|cluster| cluster.uuid.clone()).collect()
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
    /// Regardless of its visibility: a cluster must not vanish with its template.
    pub template: Option<ClusterTemplate>,
    /// Shown in the cluster and its groups already.
    pub(super) changes: Vec<PendingChange>,
}

/// The cluster with this uuid or name.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn find(
    database: &Database,
    context: &RequestContext,
    ident: String,
) -> Result<FoundCluster, StoreError> {
    let tenancy = Tenancy::of(context);
    reading(database, move |connection| look_up(connection, &tenancy, &ident)).await
}

/// The same inside of a piece of work.
pub(super) fn look_up(
    connection: &mut AnyConnection,
    tenancy: &Tenancy,
    ident: &str,
) -> Result<FoundCluster, StoreError> {
    let found = match Ident::of(ident) {
        Ident::Uuid(uuid) => {
            let uuid = ClusterUuid::from(uuid);
            read::clusters::find_by_uuid(connection, tenancy, &uuid)?
                .into_iter()
                .collect()
        }
        Ident::Name(name) => read::clusters::find_by_name(connection, tenancy, &name)?,
    };
    let mut cluster = only(
        found,
        || Fault::cluster_not_found(ident),
        "Multiple clusters exist with same name. Please use the cluster uuid instead.",
    )?;
    let changes = show_pending(connection, std::slice::from_mut(&mut cluster))?;
    let mut node_groups = read::node_groups::of_clusters(connection, std::slice::from_ref(&cluster.uuid))?
        .remove(&cluster.uuid)
        .unwrap_or_default();
    for group in &mut node_groups {
        acceptance::show_in_group(&changes, group);
    }
    let template =
        templates_of(connection, std::slice::from_ref(&cluster))?.remove(&cluster.cluster_template_id);
    Ok(FoundCluster {
        cluster,
        node_groups,
        template,
        changes,
    })
}

impl FoundCluster {
    /// The default group of its workers.
    ///
    /// # Errors
    /// What the caller is told.
    pub fn default_worker(&self) -> Result<&NodeGroup, Fault> {
        self.node_groups
            .iter()
            .find(|group| group.is_default && !group.is_master())
            .ok_or_else(|| Fault::node_group_not_found(Role::Worker.default_group_name()))
    }
}

/// Whether there is such a cluster, in any project.
pub(super) fn row_exists(connection: &mut AnyConnection, uuid: &ClusterUuid) -> Result<bool, DbError> {
    Ok(read::clusters::find_by_uuid(connection, &Tenancy::All, uuid)?.is_some())
}

/// Whether a conductor has made the row yet.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn exists(database: &Database, uuid: ClusterUuid) -> Result<bool, StoreError> {
    let found = database
        .run(move |connection| read::clusters::find_by_uuid(connection, &Tenancy::All, &uuid))
        .await?;
    Ok(found.is_some())
}
