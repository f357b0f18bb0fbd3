//! When the conductor looks at the case's cluster by itself, and how often it has.
//!
//! Each cluster has a row of its own for looks at its status, and one for its health: a look begins when its row is due, and
//! counts its beginnings there.

use anyhow::{Result, ensure};
use diesel::prelude::*;
use magnum_common::model::{Cluster, ClusterStatus};
use magnum_conductor::store::objects::Table as _;
use magnum_db::{AnyConnection, Database, DbError, schema};

use super::rows::{CLUSTER, PROJECT, Rows, TEMPLATE, USER};

/// A cluster beside it, which shows when the conductor has looked at what was due.
const MARKER: &str = "c0000000-0000-4000-8000-00000000000f";

/// When the conductors look at the cluster by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    Never,
    AtStatus,
    AtHealth,
}

/// A time that no clock reaches.
const FAR: i64 = i64::MAX / 4;

impl Rows {
    /// Adds another cluster of the same template, in progress and due. Its health is never due: on a busy machine the look
    /// at it would be among the effects of the next case.
    pub async fn put_marker(&self, db: &Database) -> Result<()> {
        let mut marker = Cluster::new(MARKER.into(), TEMPLATE.into());
        marker.name = Some("marker".to_owned());
        marker.project_id = Some(PROJECT.to_owned());
        marker.user_id = Some(USER.to_owned());
        marker.stack_id = Some("marker-abcde".to_owned());
        marker.labels = self.cluster.labels.clone();
        marker.status = Some(ClusterStatus::UpdateInProgress);
        let written = db.transaction(move |conn| {
            set_times(conn, MARKER, 0, FAR)?;
            marker.insert(conn)
        });
        ensure!(written.await?, "there is another one already");
        Ok(())
    }
}

/// Sets when the conductors look.
pub async fn set(db: &Database, look: Look) -> Result<()> {
    Ok(db.transaction(move |conn| schedule(conn, look)).await?)
}

/// How many looks have begun, and whether none is under way; `None` without a row.
pub async fn begun(db: &Database, look: Look) -> Result<Option<(i64, bool)>> {
    use schema::conductor_cluster_health::dsl as health;
    use schema::conductor_cluster_poll::dsl as poll;
    let found: Option<(i64, Option<String>)> = db
        .run(move |conn| {
            Ok::<_, DbError>(match look {
                Look::AtHealth => health::conductor_cluster_health
                    .filter(health::cluster_uuid.eq(CLUSTER))
                    .select((health::lease_epoch, health::owner))
                    .first(conn)
                    .optional()?,
                Look::AtStatus | Look::Never => poll::conductor_cluster_poll
                    .filter(poll::cluster_uuid.eq(CLUSTER))
                    .select((poll::lease_epoch, poll::owner))
                    .first(conn)
                    .optional()?,
            })
        })
        .await?;
    Ok(found.map(|(epoch, owner)| (epoch, owner.is_none())))
}

/// Whether a look at the other cluster was made, and is over. It is not looked at again then: what another look did would be
/// among the effects of the next case.
pub async fn marker_is_seen(db: &Database) -> Result<bool> {
    use schema::conductor_cluster_poll::dsl as poll;
    let stopped = db.run(|conn| {
        let row = poll::conductor_cluster_poll.filter(poll::cluster_uuid.eq(MARKER));
        let is_over = row.filter(poll::lease_epoch.gt(0)).filter(poll::owner.is_null());
        let never = poll::next_poll_ms.eq(FAR);
        Ok::<_, DbError>(diesel::update(is_over).set(never).execute(conn)?)
    });
    Ok(stopped.await? == 1)
}

/// Sets the times of the next looks and keeps the numbers of the last ones.
pub fn schedule(conn: &mut AnyConnection, look: Look) -> Result<(), DbError> {
    let due = |when| if look == when { 0 } else { FAR };
    set_times(conn, CLUSTER, due(Look::AtStatus), due(Look::AtHealth))
}

fn set_times(conn: &mut AnyConnection, cluster: &str, at_status: i64, at_health: i64) -> Result<(), DbError> {
    use schema::conductor_cluster_health::dsl as health;
    use schema::conductor_cluster_poll::dsl as poll;
    let of_cluster = poll::conductor_cluster_poll.filter(poll::cluster_uuid.eq(cluster));
    if diesel::update(of_cluster)
        .set(poll::next_poll_ms.eq(at_status))
        .execute(conn)?
        == 0
    {
        let row = (
            poll::cluster_uuid.eq(cluster),
            poll::lease_epoch.eq(0_i64),
            poll::next_poll_ms.eq(at_status),
            poll::failures.eq(0),
        );
        diesel::insert_into(poll::conductor_cluster_poll)
            .values(row)
            .execute(conn)?;
    }
    let of_cluster = health::conductor_cluster_health.filter(health::cluster_uuid.eq(cluster));
    if diesel::update(of_cluster)
        .set(health::next_poll_ms.eq(at_health))
        .execute(conn)?
        == 0
    {
        let row = (
            health::cluster_uuid.eq(cluster),
            health::lease_epoch.eq(0_i64),
            health::next_poll_ms.eq(at_health),
            health::failures.eq(0),
        );
        diesel::insert_into(health::conductor_cluster_health)
            .values(row)
            .execute(conn)?;
    }
    Ok(())
}
