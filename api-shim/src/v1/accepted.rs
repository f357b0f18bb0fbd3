//! Waiting until a conductor has accepted what a 202 promises.

use std::time::Duration;

use magnum_common::ids::{ClusterUuid, NodeGroupUuid};
use magnum_telemetry::field;

use crate::faults::ApiFault;
use crate::state::App;
use crate::store;

const FIRST_LOOK: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// What shall be there.
#[derive(Debug)]
pub(super) enum Promised<'a> {
    Cluster(&'a ClusterUuid),
    NodeGroup(&'a ClusterUuid, &'a NodeGroupUuid),
}

impl Promised<'_> {
    fn ids(&self) -> (&ClusterUuid, Option<&NodeGroupUuid>) {
        match self {
            Self::Cluster(uuid) => (uuid, None),
            Self::NodeGroup(cluster, uuid) => (cluster, Some(uuid)),
        }
    }

    async fn is_there(&self, app: &App) -> Result<bool, ApiFault> {
        match self {
            Self::Cluster(uuid) => store::clusters::exists(&app.database, (*uuid).clone()).await,
            Self::NodeGroup(cluster, uuid) => {
                store::node_groups::exists(&app.database, (*cluster).clone(), (*uuid).clone()).await
            }
        }
    }
}

/// Waits until a conductor has made the row, looking again after ever longer pauses, at most
/// `[api] accept_wait` long, and says whether it was seen. An outage of the database ends the wait early: the request
/// is safe in its queue. Where the option says not to wait, nobody looks.
pub(super) async fn wait(app: &App, promised: Promised<'_>) -> bool {
    if app.accept_wait.is_zero() {
        return false;
    }
    let wait = async {
        let mut pause = FIRST_LOOK;
        loop {
            tokio::time::sleep(pause).await;
            match promised.is_there(app).await {
                Ok(false) => pause = (pause * 2).min(LONGEST_PAUSE),
                Ok(true) => break true,
                Err(_) => break false,
            }
        }
    };
    tokio::time::timeout(app.accept_wait, wait)
        .await
        .unwrap_or_else(|_| {
            let (cluster, node_group) = promised.ids();
            tracing::warn!(
                { field::CLUSTER } = %cluster,
                { field::NODE_GROUP } = node_group.map(tracing::field::display),
                waited_ms = u64::try_from(app.accept_wait.as_millis()).unwrap_or(u64::MAX),
                "no conductor has accepted the request yet; it will be carried out when one does"
            );
            false
        })
}
