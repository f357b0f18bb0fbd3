//! Waiting until a conductor has accepted a request, for at most `[api] accept_wait`.
//!
//! What was promised can be read: a new cluster is there, and a change shows as `*_IN_PROGRESS` or is done. A change that
//! no conductor has accepted by then is shown all the same, from what the database keeps of it; a new cluster is there
//! when a conductor makes it. The request is safe in its queue. With `accept_wait = 0` nothing of this is done.
//!
//! Differs from Magnum, which answers as soon as it has sent the message: the old `*_COMPLETE` can be read for a moment
//! then, and who waits for the end of the change takes it for that.

use std::time::Duration;

use axum::http::StatusCode;
use magnum_common::error::Fault;
use magnum_common::ids::{ClusterUuid, MessageId};
use magnum_common::model::{Cluster, ClusterStatus, NodeGroup};
use magnum_db::read::pending_changes::PendingChange;
use magnum_telemetry::field;

use crate::faults::ApiFault;
use crate::state::App;
use crate::store::acceptance::{self, Acceptance};
use crate::store::{self, StoreError};

const FIRST_DELAY: Duration = Duration::from_millis(5);
const MAX_DELAY: Duration = Duration::from_millis(250);

/// Waits until the new cluster can be read, and returns whether it can.
pub(super) async fn new_cluster(app: &App, uuid: &ClusterUuid) -> bool {
    let made = wait(app, || async {
        let exists = store::clusters::exists(&app.database, uuid.clone()).await?;
        Ok(exists.then_some(()))
    });
    made.await.is_some()
}

/// Waits until a conductor has accepted the change that `message` asks for; else has everybody be shown `status` in the
/// cluster and in the group that it is about, unless a conductor of Magnum's may have it.
///
/// # Errors
/// A conductor has refused the change since the cluster was read: 409 with its reason, or 404 when the cluster is gone.
pub(super) async fn change(
    app: &App,
    cluster: &Cluster,
    status: ClusterStatus,
    group: Option<(&NodeGroup, ClusterStatus)>,
    message: MessageId,
) -> Result<(), ApiFault> {
    if app.accept_wait.is_zero() {
        return Ok(());
    }
    let accepted = wait(app, || async {
        let within = app.service_down_time;
        let found = acceptance::of(&app.database, message.clone(), cluster.clone(), within).await?;
        Ok(Some(found).filter(|found| *found != Acceptance::Pending))
    });
    match accepted.await {
        Some(Acceptance::Accepted) => Ok(()),
        Some(Acceptance::Refused(reason)) => Err(ApiFault::new(StatusCode::CONFLICT, reason)),
        Some(Acceptance::Gone) => Err(Fault::cluster_not_found(cluster.uuid.as_str()).into()),
        Some(Acceptance::Pending) | None => {
            let change = PendingChange {
                cluster: cluster.uuid.clone(),
                status,
                node_group: group.map(|(group, status)| (group.uuid.clone(), status)),
            };
            show(app, cluster, change, message).await;
            Ok(())
        }
    }
}

async fn show(app: &App, cluster: &Cluster, change: PendingChange, message: MessageId) {
    let group = change.node_group.clone().map(|(uuid, _)| uuid);
    let shown = acceptance::show(
        &app.database,
        message,
        cluster.clone(),
        change,
        app.reservation_timeout,
        app.service_down_time,
    );
    match shown.await {
        Ok(true) => tracing::warn!(
            { field::CLUSTER } = %cluster.uuid,
            { field::NODE_GROUP } = group.as_ref().map(tracing::field::display),
            waited_ms = u64::try_from(app.accept_wait.as_millis()).unwrap_or(u64::MAX),
            "no conductor has accepted the request yet; it will be carried out when one does"
        ),
        Ok(false) => {}
        Err(error) => {
            tracing::warn!(%error, "the cluster shows its old status until a conductor has accepted the change");
        }
    }
}

/// Asks until there is an answer or `[api] accept_wait` is over, after growing delays. An outage of the database ends
/// the wait early. Without a wait nothing is asked.
async fn wait<T, F>(app: &App, ask: impl Fn() -> F) -> Option<T>
where
    F: Future<Output = Result<Option<T>, StoreError>>,
{
    if app.accept_wait.is_zero() {
        return None;
    }
    let wait = async {
        let mut delay = FIRST_DELAY;
        loop {
            tokio::time::sleep(delay).await;
            match ask().await {
                Ok(None) => delay = (delay * 2).min(MAX_DELAY),
                Ok(found) => break found,
                Err(error) => {
                    tracing::warn!(error = %error, "the wait for a conductor ends early");
                    break None;
                }
            }
        }
    };
    tokio::time::timeout(app.accept_wait, wait).await.unwrap_or(None)
}
