//! One call of a driver: domain objects, never rows, leases or messages.

use std::time::Duration;

use magnum_common::context::RequestContext;
use magnum_common::ids::OperationId;
use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup};
use tokio_util::sync::CancellationToken;

use crate::{ProgressSink, SharedObjects, Task};

/// Everything a driver may know while it works for one operation.
#[derive(Clone)]
pub struct DriverCall<'a> {
    /// What to do.
    pub task: Task<'a>,
    /// The cluster as it shall become.
    pub cluster: &'a Cluster,
    /// Its node groups, with the counts wanted.
    pub node_groups: &'a [NodeGroup],
    /// The template it was made from.
    pub template: &'a ClusterTemplate,
    /// Who asked. Holds a token: hand it on only to what must act for the user.
    pub context: &'a RequestContext,
    /// The operation: the same for every attempt, so effects can be made idempotent by it.
    pub operation: &'a OperationId,
    /// Counts from 1.
    pub attempt: u32,
    /// How long the whole operation may still take (`create_timeout` and its like); `None` is without limit.
    pub time_left: Option<Duration>,
    /// The cluster's rows, for a driver that reads and writes them itself.
    pub objects: SharedObjects,
    /// Where to tell how far it got.
    pub progress: &'a dyn ProgressSink,
    /// When cancelled, the driver stops at once and returns [`crate::DriverError::Cancelled`].
    pub cancel: CancellationToken,
}
