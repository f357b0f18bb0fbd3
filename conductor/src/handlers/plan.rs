//! What accepting a request changes, as data.
//!
//! The planning functions get a [`View`] (the rows as read in the accept transaction) and return a [`Plan`].
//! They touch nothing, so every rule is testable without a database; the acceptor turns plans into rows, many
//! plans in few statements.

use magnum_common::error::Fault;
use magnum_common::ids::{NodeGroupUuid, OperationId};
use magnum_common::model::{Cluster, ClusterStatus, ClusterTemplate, HealthStatus, NodeGroup, StringMap};
use serde_json::Value;

use crate::operations::State;
use crate::workflows::{Args, DriverRef, OperationKind};

/// The rows a plan is made from.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The cluster, if it exists (and, for a delete, is the caller's to see).
    pub cluster: Option<Cluster>,
    /// Its node groups.
    pub node_groups: Vec<NodeGroup>,
    /// Its template, if that exists.
    pub template: Option<ClusterTemplate>,
    /// Operations of this cluster that have not ended, in order.
    pub open: Vec<OpenOperation>,
}

/// An operation that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOperation {
    /// Row number: the order.
    pub row: i64,
    /// Its id.
    pub id: OperationId,
    /// Its kind; `None` when a newer release wrote one that this program does not know.
    pub kind: Option<OperationKind>,
    /// Where it is.
    pub state: State,
}

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// There is work: queued.
    Queue(Args),
    /// Done by the writes of this plan. The value answers a call.
    Done(Value),
    /// Not allowed. Nothing is written but the journal.
    Refuse(Fault),
    /// Another operation does the same already. Nothing is written but the journal; the reason says which.
    Merge(String),
}

/// A request's consequences.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What becomes of it.
    pub verdict: Verdict,
    /// The rows to write together with it.
    pub writes: Writes,
}

/// Changes of rows. Each change of something that exists compares what the view showed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Writes {
    /// A new cluster.
    pub cluster: Option<Box<Cluster>>,
    /// New node groups.
    pub node_groups: Vec<NodeGroup>,
    /// A change of the cluster's status.
    pub status: Option<StatusChange>,
    /// A change of the cluster's health, in any status.
    pub health: Option<(Option<HealthStatus>, StringMap)>,
    /// A new node count: group, old, new.
    pub count: Option<(NodeGroupUuid, i32, i32)>,
    /// Operations that are not run any more.
    pub cancel: Vec<OpenOperation>,
    /// Running operations that are to stop at their next border.
    pub stop: Vec<OpenOperation>,
    /// An operation whose next attempt is due now instead of later.
    pub hasten: Option<OpenOperation>,
    /// The driver found for the operation, when it could be found.
    pub driver: Option<DriverRef>,
}

/// A compare-and-set of a cluster's status; the reason is cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusChange {
    /// What the view showed.
    pub from: Option<ClusterStatus>,
    /// The new status.
    pub to: ClusterStatus,
    /// Whether all node groups get it too.
    pub node_groups: bool,
}

impl Plan {
    /// A refusal.
    pub fn refuse(fault: Fault) -> Self {
        Self {
            verdict: Verdict::Refuse(fault),
            writes: Writes::default(),
        }
    }
}
