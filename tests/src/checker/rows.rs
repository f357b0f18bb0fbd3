//! The final rows are what the last operation of each cluster and the driver's world say.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{ClusterRow, GroupRow, Operation};
use super::{History, Rule, Verdict, evidence};

/// See the module.
pub fn check(history: &History) -> Vec<Verdict> {
    let mut of_cluster: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in &history.operations {
        of_cluster.entry(&operation.cluster).or_default().push(operation);
    }
    let rows: BTreeMap<&str, &ClusterRow> = history
        .clusters
        .iter()
        .map(|row| (row.uuid.as_str(), row))
        .collect();
    let clusters: BTreeSet<&str> = of_cluster
        .keys()
        .chain(rows.keys())
        .copied()
        .chain(history.built.keys().map(String::as_str))
        .collect();
    let mut verdicts = Vec::new();
    for cluster in clusters {
        let operations = of_cluster.get(cluster).map_or(&[][..], Vec::as_slice);
        // What has not ended is another rule's.
        if operations.iter().any(|one| !one.has_ended()) {
            continue;
        }
        let subject = Subject {
            row: rows.get(cluster).copied(),
            built: history.built.get(cluster).copied(),
            last: operations
                .iter()
                .rev()
                .find(|one| has_moved(history, one))
                .copied(),
            given_up: operations
                .iter()
                .filter(|one| is_group_given_up(history, one))
                .count(),
        };
        if let Some(what) = subject.is_wrong() {
            let all = evidence::of_cluster(history, cluster);
            verdicts.push(Verdict::new(Rule::Rows, cluster, format!("{what}:\n    {all}")));
        }
    }
    verdicts
}

/// Whether an operation has left its mark on the rows. One that was refused or cancelled, or ended before it began, has not,
/// and the credential is not shown by the status.
fn has_moved(history: &History, operation: &Operation) -> bool {
    let has_begun = || history.calls_of(operation).next().is_some();
    word(&operation.kind).is_some()
        && (operation.state == "succeeded" || operation.state == "failed" && has_begun())
}

/// Whether a node group waited to be made, and its turn never came. It has failed, and its cluster has not.
fn is_group_given_up(history: &History, operation: &Operation) -> bool {
    operation.kind == "nodegroup_create"
        && ["failed", "cancelled"].contains(&operation.state.as_str())
        && history.calls_of(operation).next().is_none()
}

/// By which word a kind shows in the status.
fn word(kind: &str) -> Option<&'static str> {
    match kind {
        "cluster_create" => Some("CREATE"),
        "cluster_delete" => Some("DELETE"),
        "credential_rotate" | "cluster_driver_call" => None,
        _ => Some("UPDATE"),
    }
}

/// One cluster, all that is to fit together.
struct Subject<'a> {
    row: Option<&'a ClusterRow>,
    built: Option<i64>,
    last: Option<&'a Operation>,
    /// Node groups whose turn to be made never came.
    given_up: usize,
}

impl Subject<'_> {
    fn is_wrong(&self) -> Option<String> {
        let Some(last) = self.last else {
            return match (self.row, self.built) {
                (None, None) => None,
                _ => Some("it is there, and no operation has made it".to_owned()),
            };
        };
        if last.kind == "cluster_delete" && last.state == "succeeded" {
            return self.is_not_gone();
        }
        let Some(row) = self.row else {
            return Some(format!("it has no row after {last}"));
        };
        let outcome = if last.state == "succeeded" {
            "COMPLETE"
        } else {
            "FAILED"
        };
        let expected = format!("{}_{outcome}", word(&last.kind).unwrap_or_default());
        if row.status != expected {
            return Some(format!("it is {} instead of {expected} after {last}", row.status));
        }
        if let Some(group) = row
            .groups
            .iter()
            .find(|group| group.status.ends_with("_IN_PROGRESS"))
        {
            return Some(format!("nothing is at work, and its group is {group:?}"));
        }
        match outcome {
            "COMPLETE" => self.is_not_as_built(last, row),
            _ => is_not_marked(last, row),
        }
    }

    fn is_not_gone(&self) -> Option<String> {
        match (self.row, self.built) {
            (Some(_), _) => Some("it was deleted and has a row".to_owned()),
            (_, Some(_)) => Some("it was deleted, and its driver has it".to_owned()),
            _ => None,
        }
    }

    /// Nodes of groups whose turn never came.
    fn never_made(&self, row: &ClusterRow) -> i64 {
        let failed = row.groups.iter().filter(|group| group.status == "CREATE_FAILED");
        failed.take(self.given_up).map(|group| group.nodes).sum()
    }

    fn is_not_as_built(&self, last: &Operation, row: &ClusterRow) -> Option<String> {
        let wanted: i64 = row.groups.iter().map(|group| group.nodes).sum();
        let mut failed = row
            .groups
            .iter()
            .filter(|group| group.status.ends_with("_FAILED"));
        if last.kind == "cluster_create"
            && let Some(group) = failed.nth(self.given_up)
        {
            return Some(format!("it is complete, and its group is {group:?}"));
        }
        match self.built {
            None => Some("it is complete, and its driver has not built it".to_owned()),
            // The driver was asked with the group that went; and of those whose turn never came it knows those that its last call
            // has shown it.
            Some(built)
                if last.kind != "nodegroup_delete"
                    && ![wanted, wanted - self.never_made(row)].contains(&built) =>
            {
                Some(format!(
                    "its rows say {wanted} nodes, its driver has built {built}"
                ))
            }
            Some(_) => None,
        }
    }
}

/// A failure is in the cluster's reason, and on the groups that it was about. An update names none: as in Magnum, only the
/// cluster shows it.
fn is_not_marked(last: &Operation, row: &ClusterRow) -> Option<String> {
    let reason = last.reason.as_deref().unwrap_or_default();
    if !row.reason.as_deref().unwrap_or_default().contains(reason) {
        return Some(format!("its reason is {:?} after {last}", row.reason));
    }
    let mut groups = row.groups.iter();
    let is_failed = |group: &GroupRow| group.status.ends_with("_FAILED");
    let is_marked = match last.kind.as_str() {
        "cluster_create" => groups.all(is_failed),
        "cluster_resize" | "nodegroup_create" | "nodegroup_update" | "nodegroup_delete" => {
            groups.any(is_failed)
        }
        _ => true,
    };
    (!is_marked).then(|| format!("its groups do not show the failure: {:?}", row.groups))
}
