//! Changes that the API has promised and that no conductor has recorded yet; see `db::read::pending_changes`.
//!
//! The API writes one when it has waited in vain for a conductor. Nobody has to remove it: what is void is removed with
//! the next one.

use std::time::Duration;

use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use magnum_common::ids::MessageId;
use magnum_common::model::Cluster;

use super::unless_exists;
use crate::connection::AnyConnection;
use crate::error::DbError;
use crate::read::pending_changes::PendingChange;
use crate::rows::RowTime;
use crate::schema::conductor_pending_change as pending;
use crate::{now_ms_expr, now_plus_ms_expr};

const RECORDED: &str = "EXISTS (SELECT 1 FROM conductor_operation recorded \
                        WHERE recorded.message_id = conductor_pending_change.message_id)";

/// Keeps what `message` will show of `cluster`, as it was when the message was sent, for at most `lasts`.
///
/// # Errors
/// The database failed.
pub fn insert(
    conn: &mut AnyConnection,
    message: &MessageId,
    cluster: &Cluster,
    change: &PendingChange,
    lasts: Duration,
) -> Result<(), DbError> {
    let now = now_ms_expr(conn);
    diesel::delete(pending::table)
        .filter(pending::expires_ms.le(now).or(sql::<Bool>(RECORDED)))
        .execute(conn)?;
    let (group, group_status) = match &change.node_group {
        Some((group, status)) => (Some(group.as_str()), Some(status.as_str())),
        None => (None, None),
    };
    let lasts = i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX);
    unless_exists(conn, |conn| {
        diesel::insert_into(pending::table)
            .values((
                pending::message_id.eq(message.as_str()),
                pending::cluster_uuid.eq(change.cluster.as_str()),
                pending::cluster_status.eq(change.status.as_str()),
                pending::node_group_uuid.eq(group),
                pending::node_group_status.eq(group_status),
                pending::seen_at.eq(cluster.updated_at.or(cluster.created_at).map(RowTime)),
                pending::expires_ms.eq(now_plus_ms_expr(lasts)),
            ))
            .execute(conn)
    })
    .map(drop)
}
