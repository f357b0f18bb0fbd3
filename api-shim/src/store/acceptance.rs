//! Whether a conductor has accepted a change, and what is shown of one that none has accepted yet.
//!
//! A conductor of ours records each change in the journal, under the id of its message. One of Magnum's leaves no trace
//! but in the cluster's row, which is in progress or has another time of its last change then; a change that begins and
//! ends in the second of the one before leaves none. So nothing is shown beside the rows while one of Magnum's is up.

use std::collections::BTreeSet;
use std::time::Duration;

use magnum_common::clock;
use magnum_common::ids::MessageId;
use magnum_common::model::{Cluster, ClusterStatus, NodeGroup};
use magnum_db::read::pending_changes::PendingChange;
use magnum_db::read::{self, Tenancy, announced_drivers};
use magnum_db::{AnyConnection, Database, write};

use super::{StoreError, reading};

/// What has become of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acceptance {
    /// No conductor has seen it.
    Pending,
    /// A conductor has it, and what it changes at once can be read.
    Accepted,
    /// A conductor has refused it, for this reason.
    Refused(String),
    /// So it was, and there is no such cluster any more.
    Gone,
}

/// What has become of the change that `message` asks for at `before`, the cluster as it was then.
///
/// # Errors
/// The database failed: see [`StoreError`].
pub async fn of(
    database: &Database,
    message: MessageId,
    before: Cluster,
    announced_within: Duration,
) -> Result<Acceptance, StoreError> {
    reading(database, move |connection| {
        let recorded = read::operations::refusal_of(connection, &message)?;
        if recorded == Some(None) {
            return Ok(Acceptance::Accepted);
        }
        let now = read::clusters::find_by_uuid(connection, &Tenancy::All, &before.uuid)?;
        match (recorded.flatten(), now) {
            (Some(_), None) => Ok(Acceptance::Gone),
            (Some(reason), Some(_)) => Ok(Acceptance::Refused(reason)),
            (None, None) => Ok(Acceptance::Accepted),
            (None, Some(now)) => by_row(connection, &before, &now, announced_within),
        }
    })
    .await
}

/// Whether a conductor without a journal has begun. Where there are both kinds, a row that has changed proves nothing:
/// one of ours may have reported the cluster's health; nor does one that is in progress while one of ours is at work, which may be
/// for what was asked for before.
fn by_row(
    connection: &mut AnyConnection,
    before: &Cluster,
    now: &Cluster,
    announced_within: Duration,
) -> Result<Acceptance, StoreError> {
    let begun = !is_in_progress(before.status) && is_in_progress(now.status);
    let changed = before.updated_at != now.updated_at;
    if begun && !read::operations::is_at_work(connection, &now.uuid)? {
        return Ok(Acceptance::Accepted);
    }
    if changed && !announced_drivers::any(connection, announced_within)? {
        return Ok(Acceptance::Accepted);
    }
    Ok(Acceptance::Pending)
}

fn is_in_progress(status: Option<ClusterStatus>) -> bool {
    status.is_some_and(ClusterStatus::is_in_progress)
}

/// Has everybody be shown `change` from now on, until a conductor has the message; for at most `lasts`. `false`: a
/// conductor of Magnum's is up, and the rows are shown as they are.
///
/// # Errors
/// The database failed: see [`StoreError`].
pub async fn show(
    database: &Database,
    message: MessageId,
    before: Cluster,
    change: PendingChange,
    lasts: Duration,
    announced_within: Duration,
) -> Result<bool, StoreError> {
    reading(database, move |connection| {
        if magnums_conductor_is_up(connection, announced_within)? {
            return Ok(false);
        }
        write::pending_changes::insert(connection, &message, &before, &change, lasts)?;
        Ok(true)
    })
    .await
}

/// Whether a conductor reports itself on a host where none of ours has announced its drivers.
fn magnums_conductor_is_up(connection: &mut AnyConnection, within: Duration) -> Result<bool, StoreError> {
    let ours: BTreeSet<String> = announced_drivers::list(connection, within)?
        .into_iter()
        .map(|driver| driver.host)
        .collect();
    let (now, within) = (
        clock::row_now(),
        i64::try_from(within.as_secs()).unwrap_or(i64::MAX),
    );
    let services = read::records::services(connection)?;
    Ok(services.iter().any(|service| {
        service.binary.as_deref() == Some("magnum-conductor")
            && service.host.as_ref().is_some_and(|host| !ours.contains(host))
            && service.is_up(now, within)
    }))
}

/// Shows pending changes in a cluster. A deletion hides whatever else goes on.
pub(super) fn show_in(changes: &[PendingChange], cluster: &mut Cluster) {
    for change in changes.iter().filter(|change| change.cluster == cluster.uuid) {
        if !is_in_progress(cluster.status) || change.status == ClusterStatus::DeleteInProgress {
            cluster.status = Some(change.status);
        }
    }
}

/// The same in a node group.
pub(super) fn show_in_group(changes: &[PendingChange], group: &mut NodeGroup) {
    for (uuid, status) in changes.iter().filter_map(|change| change.node_group.as_ref()) {
        if *uuid == group.uuid
            && (!is_in_progress(group.status) || *status == ClusterStatus::DeleteInProgress)
        {
            group.status = Some(*status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(status: ClusterStatus, group: Option<(&str, ClusterStatus)>) -> PendingChange {
        PendingChange {
            cluster: "c".into(),
            status,
            node_group: group.map(|(uuid, status)| (uuid.into(), status)),
        }
    }

    #[test]
    fn a_pending_change_shows_in_its_cluster_and_group_only() {
        let changes = [change(
            ClusterStatus::UpdateInProgress,
            Some(("g", ClusterStatus::DeleteInProgress)),
        )];
        for (uuid, expected) in [
            ("c", ClusterStatus::UpdateInProgress),
            ("d", ClusterStatus::CreateComplete),
        ] {
            let mut cluster = Cluster::new(uuid.into(), "t".into());
            cluster.status = Some(ClusterStatus::CreateComplete);
            show_in(&changes, &mut cluster);
            assert_eq!(cluster.status, Some(expected));
        }
        for (uuid, expected) in [("g", Some(ClusterStatus::DeleteInProgress)), ("h", None)] {
            let mut group = NodeGroup::new(uuid.into(), "pool", "c".into(), "p", "worker");
            show_in_group(&changes, &mut group);
            assert_eq!(group.status, expected);
        }
    }

    #[test]
    fn a_deletion_is_shown_whatever_else_goes_on() {
        let update = change(ClusterStatus::UpdateInProgress, None);
        let delete = change(ClusterStatus::DeleteInProgress, None);
        for changes in [[update.clone(), delete.clone()], [delete, update]] {
            for status in [ClusterStatus::CreateComplete, ClusterStatus::UpdateInProgress] {
                let mut cluster = Cluster::new("c".into(), "t".into());
                cluster.status = Some(status);
                show_in(&changes, &mut cluster);
                assert_eq!(cluster.status, Some(ClusterStatus::DeleteInProgress));
            }
        }
    }
}
