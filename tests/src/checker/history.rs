//! What a run left behind, as plain data. Times of clients, drivers and the journal are milliseconds since 1970: all of them
//! are on one machine.

use std::collections::BTreeMap;

/// Milliseconds since 1970.
pub type Millis = i64;

/// Everything that the checker is given.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// What clients asked, and heard.
    pub told: Vec<Told>,
    /// Calls of drivers, in the order in which they began.
    pub calls: Vec<Call>,
    /// Calls that found another one at work on their cluster: the driver holds a lock of the kernel's.
    pub overlaps: Vec<Overlap>,
    /// The journal, in the order in which it was written.
    pub operations: Vec<Operation>,
    /// Ids of the requests that are dead letters.
    pub dead_letters: Vec<RequestId>,
    /// Clusters that have a row.
    pub clusters: Vec<ClusterRow>,
    /// Clusters that the drivers have built, with the number of their nodes.
    pub built: BTreeMap<String, i64>,
    /// What conductors asked of the database while there was nothing to do.
    pub idle: Vec<IdleSample>,
}

/// By what a client and the journal know a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestId {
    /// The API's `x-openstack-request-id`.
    Rest(String),
    /// The message's own `_unique_id`.
    Message(String),
}

/// One request, as its client knows it.
#[derive(Debug, Clone)]
pub struct Told {
    /// Its id; none where no answer named one.
    pub id: Option<RequestId>,
    /// Who asked.
    pub tenant: String,
    /// What for: the kind of the operation.
    pub kind: String,
    /// About which cluster; none for a create that was not answered.
    pub cluster: Option<String>,
    /// When.
    pub asked: Millis,
    /// The time limit that it has, by the request or by the configuration.
    pub limit: Millis,
    /// What was heard.
    pub heard: Heard,
}

/// What a client heard of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It was accepted: 202, 204, or the broker's confirmation.
    Confirmed,
    /// A caller got its result.
    Result,
    /// A caller got an exception.
    Failure(String),
    /// It was refused, or could not be taken.
    Refused {
        /// Status code.
        status: u16,
        /// The words.
        text: String,
    },
    /// Nothing, so it may have been accepted.
    Nothing,
}

impl Heard {
    /// Whether the programs have promised to carry it out.
    pub fn is_promise(&self) -> bool {
        matches!(self, Self::Confirmed | Self::Result | Self::Failure(_))
    }
}

/// One call of a driver.
#[derive(Debug, Clone)]
pub struct Call {
    /// `create`, `resize`, …: the word of the protocol.
    pub call: String,
    /// About which cluster.
    pub cluster: String,
    /// On behalf of which operation.
    pub operation: String,
    /// Which attempt of it. It rises with every owner.
    pub attempt: u32,
    /// Which conductor called.
    pub conductor: String,
    /// Process id of the driver.
    pub pid: u32,
    /// When it began, on the monotonic clock, in seconds.
    pub began: f64,
    /// When it began.
    pub began_wall: Millis,
    /// How it ended; none for one that was killed.
    pub end: Option<End>,
}

/// The end of a driver's call.
#[derive(Debug, Clone)]
pub struct End {
    /// When, on the monotonic clock, in seconds.
    pub at: f64,
    /// `*_COMPLETE`, `*_IN_PROGRESS`, `transient`, `permanent`, …
    pub outcome: String,
    /// What the driver says of its failure.
    pub says: Option<String>,
}

/// A driver found another one at work.
#[derive(Debug, Clone)]
pub struct Overlap {
    /// On this cluster.
    pub cluster: String,
    /// It was called for this operation.
    pub operation: String,
    /// Its process id.
    pub pid: u32,
}

/// One line of the journal, read by SQL.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Its id.
    pub id: String,
    /// The message that asked for it.
    pub message: Option<String>,
    /// The API's request that did.
    pub request: Option<String>,
    /// `cluster_create`, …
    pub kind: String,
    /// About which cluster.
    pub cluster: String,
    /// Whose.
    pub tenant: String,
    /// `succeeded`, `failed`, `refused`, `cancelled`, or one that is no end.
    pub state: String,
    /// Why.
    pub reason: Option<String>,
    /// How often it was claimed.
    pub attempts: i64,
    /// When it was written.
    pub created: Millis,
    /// When it ended.
    pub ended: Option<Millis>,
}

/// A cluster's row.
#[derive(Debug, Clone)]
pub struct ClusterRow {
    /// Its uuid.
    pub uuid: String,
    /// Its status.
    pub status: String,
    /// Why.
    pub reason: Option<String>,
    /// Its node groups.
    pub groups: Vec<GroupRow>,
}

/// A node group's row.
#[derive(Debug, Clone)]
pub struct GroupRow {
    /// Its name.
    pub name: String,
    /// Its status.
    pub status: String,
    /// How many nodes it is to have.
    pub nodes: i64,
}

/// What was asked of the database while nothing was to do.
#[derive(Debug, Clone)]
pub struct IdleSample {
    /// Of which server.
    pub server: String,
    /// For so many seconds.
    pub seconds: f64,
    /// By so many conductors.
    pub conductors: u32,
    /// What, and how often.
    pub asked: Vec<(String, u64)>,
}

impl IdleSample {
    /// All that was asked.
    pub fn statements(&self) -> u64 {
        self.asked.iter().map(|(_, count)| count).sum()
    }
}

impl Operation {
    /// Whether nothing more will become of it.
    pub fn has_ended(&self) -> bool {
        ["succeeded", "failed", "refused", "cancelled"].contains(&self.state.as_str())
    }

    /// Whether it was recorded by then, and had not ended before.
    pub fn was_open_at(&self, at: i64) -> bool {
        self.created <= at && self.ended.is_none_or(|ended| at <= ended)
    }

    /// Whether it is the one that was asked for by this id.
    pub fn is_for(&self, id: &RequestId) -> bool {
        match id {
            RequestId::Rest(id) => self.request.as_ref() == Some(id),
            RequestId::Message(id) => self.message.as_ref() == Some(id),
        }
    }
}

impl History {
    /// What the client of an operation was told, if it is known.
    pub fn asked_for(&self, operation: &Operation) -> Option<&Told> {
        self.told
            .iter()
            .find(|told| told.id.as_ref().is_some_and(|id| operation.is_for(id)))
    }

    /// The calls that were made for an operation.
    pub fn calls_of<'a>(&'a self, operation: &'a Operation) -> impl Iterator<Item = &'a Call> {
        self.calls.iter().filter(|call| call.operation == operation.id)
    }
}
