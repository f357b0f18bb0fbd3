//! How evidence is shown.

use std::fmt;

use super::History;
use super::history::{Call, Operation, RequestId, Told};

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rest(id) => write!(f, "request {id}"),
            Self::Message(id) => write!(f, "message {id}"),
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cluster = self.cluster.as_deref().unwrap_or("?");
        let (at, tenant, kind) = (self.asked, &self.tenant, &self.kind);
        write!(
            f,
            "{at} {tenant} asked {kind} of {cluster} and heard {:?}",
            self.heard
        )
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            id,
            cluster,
            state,
            attempts,
            ..
        } = self;
        let ended = self.ended.map_or_else(|| "-".to_owned(), |at| at.to_string());
        let reason = self.reason.as_deref().unwrap_or("no reason");
        write!(
            f,
            "{}..{ended} {kind} {id} of {cluster} {state} after {attempts} attempts ({reason})",
            self.created
        )
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            call,
            operation,
            attempt,
            conductor,
            pid,
            ..
        } = self;
        write!(
            f,
            "{} {call} by {conductor}, pid {pid}, attempt {attempt} of {operation}, from {:.3} ",
            self.began_wall, self.began
        )?;
        match &self.end {
            Some(end) => write!(f, "to {:.3}: {}", end.at, end.outcome),
            None => write!(f, "without an end"),
        }
    }
}

/// All that is known of one cluster, a line each.
pub fn of_cluster(history: &History, cluster: &str) -> String {
    let told = history
        .told
        .iter()
        .filter(|told| told.cluster.as_deref() == Some(cluster));
    let told = told.map(ToString::to_string);
    let operations = history.operations.iter().filter(|one| one.cluster == cluster);
    let operations = operations.map(ToString::to_string);
    let calls = history.calls.iter().filter(|call| call.cluster == cluster);
    let calls = calls.map(ToString::to_string);
    let row = history.clusters.iter().find(|row| row.uuid == cluster);
    let row = row.map(|row| format!("row: {} {:?} {:?}", row.status, row.reason, row.groups));
    let built = history
        .built
        .get(cluster)
        .map(|nodes| format!("built with {nodes} nodes"));
    let lines: Vec<String> = told
        .chain(operations)
        .chain(calls)
        .chain(row)
        .chain(built)
        .collect();
    lines.join("\n    ")
}
