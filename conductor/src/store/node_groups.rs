//! The conductor's reads and writes of `nodegroup`.

use std::collections::{HashMap, HashSet};

use diesel::prelude::*;
use magnum_common::ids::{ClusterUuid, NodeGroupUuid};
use magnum_common::model::{Action, ClusterStatus, NodeGroup, Outcome};
use magnum_db::rows::json::to_text;
use magnum_db::rows::{self, FreeText, NodeGroupRow, RowTime};
use magnum_db::{AnyConnection, DbError, schema};
use magnum_driver_api::NodeGroupChanges;

use schema::nodegroup::dsl as n;

/// The node groups of a cluster, oldest first.
///
/// # Errors
/// The database failed.
pub fn of(conn: &mut AnyConnection, cluster: &ClusterUuid) -> Result<Vec<NodeGroup>, DbError> {
    n::nodegroup
        .filter(n::cluster_id.eq(cluster.as_str()))
        .order(n::id)
        .select(NodeGroupRow::as_select())
        .load(conn)?
        .into_iter()
        .map(NodeGroup::try_from)
        .collect()
}

/// The node groups of many clusters in one query. Rows that cannot be read are left out, with an error in the log.
///
/// # Errors
/// The database failed.
pub fn of_many(
    conn: &mut AnyConnection,
    clusters: &[&str],
) -> Result<HashMap<String, Vec<NodeGroup>>, DbError> {
    let rows = n::nodegroup
        .filter(n::cluster_id.eq_any(clusters))
        .order(n::id)
        .select(NodeGroupRow::as_select())
        .load(conn)?;
    let mut groups: HashMap<String, Vec<NodeGroup>> = HashMap::new();
    for row in rows {
        match NodeGroup::try_from(row) {
            Ok(group) => groups
                .entry(group.cluster_id.to_string())
                .or_default()
                .push(group),
            Err(error) => tracing::error!(%error, "a node group's row cannot be read"),
        }
    }
    Ok(groups)
}

/// New node groups, in one statement.
///
/// # Errors
/// The database failed.
pub fn insert(conn: &mut AnyConnection, groups: &[NodeGroup]) -> Result<(), DbError> {
    if groups.is_empty() {
        return Ok(());
    }
    let rows: Vec<NodeGroupRow> = groups.iter().map(NodeGroupRow::from).collect();
    super::insert_many!(conn, n::nodegroup, rows)?;
    Ok(())
}

/// Compare-and-set of a node count. `false`: the count is another one already.
///
/// # Errors
/// The database failed.
pub fn set_count(
    conn: &mut AnyConnection,
    uuid: &NodeGroupUuid,
    from: i32,
    to: i32,
) -> Result<bool, DbError> {
    let row = n::nodegroup.filter(n::uuid.eq(uuid.as_str()));
    let set = (n::node_count.eq(Some(to)), n::updated_at.eq(Some(RowTime::now())));
    // Old rows hold NULL for one node.
    let changed = if from == 1 {
        diesel::update(row.filter(n::node_count.eq(from).or(n::node_count.is_null())))
            .set(set)
            .execute(conn)?
    } else {
        diesel::update(row.filter(n::node_count.eq(from)))
            .set(set)
            .execute(conn)?
    };
    Ok(changed > 0)
}

/// One status for all groups of a cluster, reason cleared.
///
/// # Errors
/// The database failed.
pub fn set_all_status(
    conn: &mut AnyConnection,
    cluster: &ClusterUuid,
    to: ClusterStatus,
) -> Result<(), DbError> {
    diesel::update(n::nodegroup.filter(n::cluster_id.eq(cluster.as_str())))
        .set((
            n::status.eq(Some(to.as_str())),
            n::status_reason.eq(None::<FreeText>),
            n::updated_at.eq(Some(RowTime::now())),
        ))
        .execute(conn)?;
    Ok(())
}

/// One group's status. One that is gone is left alone.
///
/// # Errors
/// The database failed.
pub fn set_status(
    conn: &mut AnyConnection,
    uuid: &NodeGroupUuid,
    to: ClusterStatus,
    reason: Option<&str>,
) -> Result<(), DbError> {
    diesel::update(n::nodegroup.filter(n::uuid.eq(uuid.as_str())))
        .set((
            n::status.eq(Some(to.as_str())),
            n::status_reason.eq(reason.map(|reason| FreeText(reason.to_owned()))),
            n::updated_at.eq(Some(RowTime::now())),
        ))
        .execute(conn)?;
    Ok(())
}

/// Writes the columns in which `after` differs from `before`.
///
/// # Errors
/// The database failed.
pub fn save(conn: &mut AnyConnection, before: &NodeGroup, after: &NodeGroup) -> Result<(), DbError> {
    let columns = NodeGroupRow::from(after).changes_since(&NodeGroupRow::from(before));
    if columns.is_empty() {
        return Ok(());
    }
    diesel::update(n::nodegroup.filter(n::uuid.eq(before.uuid.as_str())))
        .set(columns)
        .execute(conn)?;
    Ok(())
}

/// Which of these uuids belong to a group, of whatever cluster.
///
/// # Errors
/// The database failed.
pub fn existing(conn: &mut AnyConnection, uuids: &[&str]) -> Result<HashSet<String>, DbError> {
    let found: Vec<Option<String>> = n::nodegroup
        .filter(n::uuid.eq_any(uuids))
        .select(n::uuid)
        .load(conn)?;
    Ok(found.into_iter().flatten().collect())
}

/// Takes a group's row away, unless it is a default group, without which a cluster is none.
///
/// # Errors
/// The database failed.
pub fn remove(conn: &mut AnyConnection, cluster: &ClusterUuid, uuid: &NodeGroupUuid) -> Result<(), DbError> {
    diesel::delete(
        n::nodegroup
            .filter(n::uuid.eq(uuid.as_str()))
            .filter(n::cluster_id.eq(cluster.as_str()))
            .filter(n::is_default.eq(false).or(n::is_default.is_null())),
    )
    .execute(conn)?;
    Ok(())
}

/// Groups that are still in progress when their cluster is not share its end, each by its own action: one that was
/// being made is `CREATE_COMPLETE` when the update that made it is. Groups in `waiting` belong to operations that
/// have not started.
///
/// # Errors
/// The database failed.
pub fn finish(
    conn: &mut AnyConnection,
    cluster: &ClusterUuid,
    status: ClusterStatus,
    reason: Option<&str>,
    waiting: &[NodeGroupUuid],
) -> Result<(), DbError> {
    let of_cluster = n::nodegroup
        .filter(n::cluster_id.eq(cluster.as_str()))
        .filter(n::uuid.ne_all(waiting.iter().map(NodeGroupUuid::as_str)));
    let end = (
        n::status_reason.eq(reason.map(|reason| FreeText(reason.to_owned()))),
        n::updated_at.eq(Some(RowTime::now())),
    );
    let outcome = if status.is_failed() {
        Outcome::Failed
    } else {
        Outcome::Complete
    };
    let Some(action) = status.action() else {
        // A rollback, say: no group has a better word for it.
        let in_progress = ClusterStatus::IN_PROGRESS.iter().map(|status| status.as_str());
        diesel::update(of_cluster.filter(n::status.eq_any(in_progress)))
            .set((n::status.eq(Some(status.as_str())), end))
            .execute(conn)?;
        return Ok(());
    };
    // What is being taken away ends with a deletion of the cluster, or by its own operation.
    let actions: &[Action] = match action {
        Action::Create => &[Action::Create],
        Action::Update => &[Action::Update, Action::Create],
        Action::Delete => &[Action::Delete],
    };
    let words = |outcome| {
        actions
            .iter()
            .map(move |action| ClusterStatus::of(*action, outcome).as_str())
    };
    for (from, to) in words(Outcome::InProgress).zip(words(outcome)) {
        diesel::update(of_cluster.clone().filter(n::status.eq(from)))
            .set((n::status.eq(Some(to)), end.clone()))
            .execute(conn)?;
    }
    Ok(())
}

/// What a driver told about a group of `cluster`; its status only when `status`. One that it says is gone loses
/// its row, unless it is a default group. A group of another cluster, or one without a row, is left alone.
///
/// # Errors
/// The database failed.
pub fn apply(
    conn: &mut AnyConnection,
    cluster: &ClusterUuid,
    changes: &NodeGroupChanges,
    status: bool,
) -> Result<(), DbError> {
    if status && changes.status == Some(ClusterStatus::DeleteComplete) {
        remove(conn, cluster, &changes.uuid)?;
    }
    let set = |change: &Option<String>| change.clone().map(Some);
    let mut columns = rows::NodeGroupChanges {
        stack_id: set(&changes.stack_id),
        node_count: changes.node_count.map(Some),
        node_addresses: changes
            .node_addresses
            .as_ref()
            .map(|addresses| Some(to_text(addresses))),
        version: set(&changes.version),
        image_id: set(&changes.image_id),
        ..rows::NodeGroupChanges::default()
    };
    if status && let Some(status) = changes.status {
        columns.status = Some(Some(status.as_str().to_owned()));
        columns.status_reason = Some(changes.status_reason.clone().map(FreeText));
    }
    if columns.is_empty() {
        return Ok(());
    }
    diesel::update(
        n::nodegroup
            .filter(n::uuid.eq(changes.uuid.as_str()))
            .filter(n::cluster_id.eq(cluster.as_str())),
    )
    .set(columns)
    .execute(conn)?;
    Ok(())
}

/// Gives the cluster's stack to groups that have none of their own.
///
/// # Errors
/// The database failed.
pub fn adopt_stack(conn: &mut AnyConnection, cluster: &ClusterUuid, stack: &str) -> Result<(), DbError> {
    diesel::update(
        n::nodegroup
            .filter(n::cluster_id.eq(cluster.as_str()))
            .filter(n::stack_id.is_null()),
    )
    .set((
        n::stack_id.eq(Some(stack)),
        n::updated_at.eq(Some(RowTime::now())),
    ))
    .execute(conn)?;
    Ok(())
}
