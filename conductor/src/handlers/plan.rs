//! The row changes of accepting a request, as data.
//!
//! The planning functions get a [`View`] (the rows as read in the accept transaction) and return a [`Plan`].
//! They touch nothing, so every rule is testable without a database; the acceptor turns plans into rows, many
//! plans in few statements.

use magnum_common::error::Fault;
use magnum_common::ids::OperationId;
use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup};
use serde_json::Value;

use super::command::ReportedHealth;
use crate::operations::State;
use crate::workflows::start::{Start, start};
use crate::workflows::{DriverRef, OperationKind, Work};

/// The rows that a plan is made from.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The cluster, if it exists (and, for a delete, is the caller's to see).
    pub cluster: Option<Cluster>,
    /// Its node groups.
    pub node_groups: Vec<NodeGroup>,
    /// Its template, if that exists.
    pub template: Option<ClusterTemplate>,
    /// The template that the request names, if it names one and that exists.
    pub named_template: Option<ClusterTemplate>,
    /// Whether there is a node group, of any cluster, with the uuid of the one that the request makes.
    pub group_taken: bool,
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

/// The decision about a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// There is work: queued.
    Queue(Work),
    /// Done by the writes of this plan. The value answers a call; a cast leaves no operation.
    Done(Value),
    /// Not allowed. Nothing is written but the journal.
    Refuse(Fault),
    /// Another operation does the same already. Nothing is written but the journal; the reason names it.
    Merge(String),
}

/// A request's consequences.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The decision.
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
    /// The operation starts: what the rows show from now on. `None`: it waits for its turn, or changes nothing.
    pub start: Option<Start>,
    /// Another health of the cluster, in any status.
    pub health: Option<ReportedHealth>,
    /// A node group with other values: as it was, and as it shall be.
    pub group: Option<Box<(NodeGroup, NodeGroup)>>,
    /// Operations that are not run any more.
    pub cancel: Vec<OpenOperation>,
    /// Running operations that are to stop.
    pub stop: Vec<OpenOperation>,
    /// An operation whose next attempt is due now instead of later.
    pub make_due: Option<OpenOperation>,
    /// The driver found for the operation, when it could be found.
    pub driver: Option<DriverRef>,
}

impl View {
    /// Whether another operation has the cluster, or waits for it.
    pub fn is_busy(&self) -> bool {
        !self.open.is_empty()
    }
}

impl Verdict {
    /// There is work.
    pub fn queue(work: impl Into<Work>) -> Self {
        Self::Queue(work.into())
    }
}

impl Plan {
    /// A refusal.
    pub fn refuse(fault: Fault) -> Self {
        Self {
            verdict: Verdict::Refuse(fault),
            writes: Writes::default(),
        }
    }

    /// Work: it starts now, or when its turn has come if the cluster is busy.
    pub fn queue(work: impl Into<Work>, cluster: &Cluster, view: &View) -> Self {
        Self::queue_with(work, cluster, view, Writes::default())
    }

    /// Work that comes with changes of its own.
    pub fn queue_with(work: impl Into<Work>, cluster: &Cluster, view: &View, writes: Writes) -> Self {
        let work = work.into();
        if view.is_busy() {
            return Self {
                verdict: Verdict::Queue(work),
                writes,
            };
        }
        let groups = view.node_groups.iter().chain(&writes.node_groups);
        match start(&work, cluster, groups) {
            Ok(start) => Self {
                verdict: Verdict::Queue(work),
                writes: Writes {
                    start: Some(start),
                    ..writes
                },
            },
            Err(fault) => Self::refuse(fault),
        }
    }
}
