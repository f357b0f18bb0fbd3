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
    /// All that is needed stands here.
    Complete(Box<NoticeDetails>),
    /// The operation has ended; the journal knows how.
    Ended {
        /// Which.
        operation: OperationId,
        /// Its cluster, as the operation last saw it.
        seen: Option<Box<ClusterSnapshot>>,
    },
    /// A driver has told what a cluster uses.
    Used(Box<Used>),
}

/// What a cluster uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Used {
    /// Which.
    pub cluster: ClusterUuid,
    /// Its owner's project.
    pub project_id: Option<String>,
    /// Its owner.
    pub user_id: Option<String>,
    /// How much.
    pub used: Utilisation,
}

/// A notice that needs no look at the journal.
#[derive(Debug, Clone)]
pub struct NoticeDetails {
    /// What was asked for.
    pub kind: OperationKind,
    /// How it stands.
    pub outcome: NoticeOutcome,
    /// The cluster asked for.
    pub cluster: ClusterUuid,
    /// The cluster, where it exists and its user may see it.
    pub seen: Option<ClusterSnapshot>,
    /// Who asked.
    pub context: RequestContext,
    /// Why it was refused.
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

    /// Tells. Never waits; what does not fit is lost, with a word in the log.
    pub fn send(&self, notice: Notice) {
        if let Some(sender) = &self.0
            && sender.try_send(notice).is_err()
        {
            tracing::warn!("a notification is lost: too many wait to be sent");
        }
    }

    /// Tells what can as well be told the next time: only while there is room for what cannot. `false`: it was left out.
    pub fn send_if_there_is_room(&self, notice: Notice) -> bool {
        match &self.0 {
            Some(sender) if sender.capacity() > QUEUE / 2 => sender.try_send(notice).is_ok(),
            Some(_) => false,
            None => true,
        }
    }
}
