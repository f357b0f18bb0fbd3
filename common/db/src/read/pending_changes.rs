//! Changes that the API has promised and that no conductor has recorded yet: the rows of `conductor_pending_change`.
//!
//! A change is pending no more once the journal has its message. A conductor of Magnum has no journal; of what it has
//! taken, the cluster's row tells by the time of its last change.

use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Nullable, Timestamp};
use magnum_common::ids::{ClusterUuid, NodeGroupUuid};
use magnum_common::model::ClusterStatus;

use crate::MOST_BINDS;
use crate::connection::AnyConnection;
use crate::error::DbError;
use crate::now_ms_expr;
use crate::schema::{cluster, conductor_pending_change as pending};

/// What a pending change will show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingChange {
    /// The cluster.
    pub cluster: ClusterUuid,
    /// In the cluster.
    pub status: ClusterStatus,
    /// In the node group that it is about.
    pub node_group: Option<(NodeGroupUuid, ClusterStatus)>,
}

const NOT_RECORDED: &str = "NOT EXISTS (SELECT 1 FROM conductor_operation recorded \
                            WHERE recorded.message_id = conductor_pending_change.message_id)";

/// The pending changes of these clusters, in one query (one per thousand clusters).
///
/// # Errors
/// The database failed.
pub fn of_clusters(
    conn: &mut AnyConnection,
    clusters: &[ClusterUuid],
) -> Result<Vec<PendingChange>, DbError> {
    type Row = (String, String, Option<String>, Option<String>);
    let mut found = Vec::new();
    for part in clusters.chunks(MOST_BINDS) {
        let mut query = pending::table
            .inner_join(cluster::table.on(cluster::uuid.eq(pending::cluster_uuid.nullable())))
            .filter(pending::expires_ms.gt(now_ms_expr(conn)))
            .filter(pending::seen_at.eq(sql::<Nullable<Timestamp>>(
                "COALESCE(cluster.updated_at, cluster.created_at)",
            )))
            .filter(sql::<Bool>(NOT_RECORDED))
            .into_boxed();
        query = match part {
            // A statement with `IN` is prepared anew each time, since there is one for every number of values.
            [one] => query.filter(pending::cluster_uuid.eq(one.to_string())),
            many => {
                let uuids: Vec<String> = many.iter().map(ToString::to_string).collect();
                query.filter(pending::cluster_uuid.eq_any(uuids))
            }
        };
        let rows: Vec<Row> = query
            .select((
                pending::cluster_uuid,
                pending::cluster_status,
                pending::node_group_uuid,
                pending::node_group_status,
            ))
            .load(conn)?;
        // A status that a newer release has written says nothing to this one.
        found.extend(
            rows.into_iter()
                .filter_map(|(cluster, status, group, group_status)| {
                    Some(PendingChange {
                        cluster: cluster.into(),
                        status: status.parse().ok()?,
                        node_group: group
                            .map(NodeGroupUuid::from)
                            .zip(group_status.and_then(|status| status.parse().ok())),
                    })
                }),
        );
    }
    Ok(found)
}
