//! Waiting until a conductor has accepted a request.

use std::time::Duration;

use magnum_common::ids::{ClusterUuid, NodeGroupUuid};
use magnum_telemetry::field;

use crate::state::App;
use crate::store::{self, StoreError};

const FIRST_DELAY: Duration = Duration::from_millis(5);
const MAX_DELAY: Duration = Duration::from_millis(250);

/// The row that a conductor creates when it accepts the request.
#[derive(Debug)]
pub(super) enum AcceptedRow<'a> {
    Cluster(&'a ClusterUuid),
    NodeGroup(&'a ClusterUuid, &'a NodeGroupUuid),
}

impl AcceptedRow<'_> {
    fn ids(&self) -> (&ClusterUuid, Option<&NodeGroupUuid>) {
        match self {
            Self::Cluster(uuid) => (uuid, None),
            Self::NodeGroup(cluster, uuid) => (cluster, Some(uuid)),
        }
    }

    async fn exists(&self, app: &App) -> Result<bool, StoreError> {
        match self {
            Self::Cluster(uuid) => store::clusters::exists(&app.database, (*uuid).clone()).await,
            Self::NodeGroup(cluster, uuid) => {
                store::node_groups::exists(&app.database, (*cluster).clone(), (*uuid).clone()).await
            }
        }
    }
}

/// Waits until the row exists, for at most `[api] accept_wait`, and returns whether it does. Looks it up after growing
/// delays. An outage of the database ends the wait early: the request is safe in its queue. Without a wait there is no
/// look-up.
pub(super) async fn wait(app: &App, row: AcceptedRow<'_>) -> bool {
    if app.accept_wait.is_zero() {
        return false;
    }
    let wait = async {
        let mut delay = FIRST_DELAY;
        loop {
            tokio::time::sleep(delay).await;
            match row.exists(app).await {
                Ok(false) => delay = (delay * 2).min(MAX_DELAY),
                Ok(true) => break true,
                Err(error) => {
                    tracing::warn!(error = %error, "the wait for a conductor ends early");
                    break false;
                }
            }
        }
    };
    tokio::time::timeout(app.accept_wait, wait)
        .await
        .unwrap_or_else(|_| {
            let (cluster, node_group) = row.ids();
            tracing::warn!(
                { field::CLUSTER } = %cluster,
                { field::NODE_GROUP } = node_group.map(tracing::field::display),
                waited_ms = u64::try_from(app.accept_wait.as_millis()).unwrap_or(u64::MAX),
                "no conductor has accepted the request yet; it will be carried out when one does"
            );
            false
        })
}
