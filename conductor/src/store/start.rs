//! Writes what the rows show once an operation has started.

use magnum_common::ids::ClusterUuid;
use magnum_db::{AnyConnection, DbError};

use super::{clusters, node_groups};
use crate::workflows::start::Start;

/// Applies a start. `false`: a row is not as the start was planned for; the transaction is to be given up.
///
/// # Errors
/// The database failed.
pub fn apply(conn: &mut AnyConnection, cluster: &ClusterUuid, start: &Start) -> Result<bool, DbError> {
    if let Some((from, to)) = start.status {
        if !clusters::set_status(conn, cluster, from, to, None)? {
            return Ok(false);
        }
        if start.all_groups {
            node_groups::set_all_status(conn, cluster, to)?;
        }
    }
    if let Some(resized) = &start.started.resized
        && !node_groups::set_count(conn, &resized.node_group, resized.from, resized.to)?
    {
        return Ok(false);
    }
    if let Some((group, to)) = &start.group {
        node_groups::set_status(conn, group, *to, None)?;
    }
    Ok(true)
}
