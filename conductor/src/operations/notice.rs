//! What the rest of the conductor tells the notifier: that something was accepted, refused, or has ended; and what
//! clusters use.
//!
//! Told after the commit, never waited for, and lost with the process: notifications are best effort. Without a
//! notification driver nothing is even collected.

use magnum_common::context::RequestContext;
use magnum_common::error::Fault;
use magnum_common::ids::{ClusterUuid, OperationId};
use magnum_common::model::{Cluster, NodeGroup};
use magnum_driver_api::Utilisation;
use tokio::sync::mpsc;

use crate::workflows::OperationKind;

/// Notices on their way in this process.
const QUEUE: usize = 4096;

/// How something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeOutcome {
    /// Accepted, not done.
    Pending,
    /// Done.
    Success,
    /// Refused, or given up.
    Failure,
}

/// A cluster as whoever tells saw it: it may be gone when the notification is written.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterSnapshot {
    /// The cluster.
    pub cluster: Cluster,
    /// Its node groups.
    pub node_groups: Vec<NodeGroup>,
}

/// One thing to tell.
#[derive(Debug, Clone)]
pub enum Notice {
    /// Everything it takes.
    Complete(Box<NoticeDetails>),
    /// The operation has ended; the outcome is read from the journal.
    Ended {
        /// The operation.
        operation: OperationId,
        /// Its cluster, as the operation last read it.
        snapshot: Option<Box<ClusterSnapshot>>,
    },
    /// A driver has reported the utilisation of a cluster.
    Utilisation(Box<UtilisationNotice>),
}

/// The utilisation of a cluster, with its owner.
#[derive(Debug, Clone, PartialEq)]
pub struct UtilisationNotice {
    /// The cluster.
    pub cluster: ClusterUuid,
    /// Its owner's project.
    pub project_id: Option<String>,
    /// Its owner.
    pub user_id: Option<String>,
    /// The figures.
    pub utilisation: Utilisation,
}

/// A notice that needs nothing from the journal.
#[derive(Debug, Clone)]
pub struct NoticeDetails {
    /// The kind of operation that was requested.
    pub kind: OperationKind,
    /// Its outcome so far.
    pub outcome: NoticeOutcome,
    /// The cluster of the request.
    pub cluster: ClusterUuid,
    /// The cluster, where it exists and its user may see it.
    pub snapshot: Option<ClusterSnapshot>,
    /// The context of the request.
    pub context: RequestContext,
    /// The refusal, if there is one.
    pub refusal: Option<Fault>,
}

/// Where notices go. The default takes none.
#[derive(Debug, Clone, Default)]
pub struct NoticeQueue(Option<mpsc::Sender<Notice>>);

/// A queue and its other end.
pub fn queue() -> (NoticeQueue, mpsc::Receiver<Notice>) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    (NoticeQueue(Some(sender)), receiver)
}

impl NoticeQueue {
    /// Whether anybody listens. If not, nothing needs to be collected.
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Queues a notice. Never waits: one that does not fit is lost, with a warning in the log.
    pub fn send(&self, notice: Notice) {
        if let Some(sender) = &self.0
            && sender.try_send(notice).is_err()
        {
            tracing::warn!("a notification is lost: too many wait to be sent");
        }
    }

    /// Queues a notice that the next one replaces, only while at least half of the queue is free. `false`: it was left
    /// out.
    pub fn send_if_there_is_room(&self, notice: Notice) -> bool {
        match &self.0 {
            Some(sender) if sender.capacity() > QUEUE / 2 => sender.try_send(notice).is_ok(),
            Some(_) => false,
            None => true,
        }
    }
}
