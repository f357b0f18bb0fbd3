//! Whatever fails has a reason that is the driver's own, or one of a few that are rules. Everything else is the programs'
//! own trouble, which they have promised to keep to themselves.

use super::history::{Heard, Operation};
use super::{History, Rule, Verdict};

/// A reason that is a rule, and not a driver's.
struct Stated {
    /// How such an operation ends.
    state: &'static str,
    /// What its reason contains.
    contains: &'static str,
    /// What has to be so for it to be true.
    holds: fn(&History, &Operation) -> bool,
}

/// All of them.
const STATED: &[Stated] = &[
    Stated {
        state: "failed",
        contains: "Timed out: the cluster was not ",
        holds: is_over_its_limit,
    },
    Stated {
        state: "cancelled",
        contains: "The cluster is being deleted",
        holds: has_a_delete,
    },
    Stated {
        state: "cancelled",
        contains: "The cluster's row is gone.",
        holds: was_deleted_before,
    },
    Stated {
        state: "cancelled",
        contains: " is deleting the ",
        holds: names_an_open_delete,
    },
    Stated {
        state: "refused",
        contains: "\" is not supported.",
        holds: |_, operation| {
            operation
                .reason
                .as_deref()
                .is_some_and(|text| text.contains(" when "))
        },
    },
    Stated {
        state: "failed",
        contains: "_FAILED\" is not supported.",
        holds: was_refused_at_its_turn,
    },
    Stated {
        state: "refused",
        contains: " already exists in the cluster ",
        holds: |history, operation| {
            let mut others = history.operations.iter().filter(|one| one.id != operation.id);
            others.any(|one| one.cluster == operation.cluster && one.kind == operation.kind)
        },
    },
    Stated {
        state: "refused",
        contains: " could not be found",
        holds: |_, _| true,
    },
];

/// What no client is to read: it is of the inside.
const INSIDE: &[&str] = &[
    "127.0.0.1",
    "SQLSTATE",
    "diesel",
    "sqlite",
    "mysql",
    "postgres",
    "constraint",
    "deadlock",
    "Lock wait",
    "os error",
    "conductor_operation",
];

/// See the module.
pub fn check(history: &History) -> Vec<Verdict> {
    let failed = history
        .operations
        .iter()
        .filter(|one| one.has_ended() && one.state != "succeeded");
    let mut verdicts: Vec<Verdict> = failed
        .filter(|one| !is_the_drivers(history, one) && !is_stated(history, one))
        .map(|one| {
            let calls: Vec<String> = history.calls_of(one).map(ToString::to_string).collect();
            let what = format!("{one}; no driver has said so, nor a rule: {calls:?}");
            Verdict::new(Rule::Reasons, &one.id, what)
        })
        .collect();
    for told in &history.told {
        let text = match &told.heard {
            Heard::Refused { text, .. } | Heard::Failure(text) => text,
            _ => continue,
        };
        if let Some(word) = INSIDE.iter().find(|word| text.contains(**word)) {
            let about = told
                .id
                .as_ref()
                .map_or_else(|| "?".to_owned(), ToString::to_string);
            verdicts.push(Verdict::new(
                Rule::Reasons,
                &about,
                format!("{word:?} is of the inside: {told}"),
            ));
        }
    }
    for row in &history.clusters {
        let reason = row.reason.as_deref().unwrap_or_default();
        if let Some(word) = INSIDE.iter().find(|word| reason.contains(**word)) {
            let what = format!("{word:?} is of the inside: {reason}");
            verdicts.push(Verdict::new(Rule::Reasons, &row.uuid, what));
        }
    }
    verdicts
}

/// A driver has said so, when it was called for this operation.
fn is_the_drivers(history: &History, operation: &Operation) -> bool {
    let reason = operation.reason.as_deref().unwrap_or_default();
    let mut says = history
        .calls_of(operation)
        .filter_map(|call| call.end.as_ref()?.says.as_deref());
    operation.state == "failed" && says.any(|says| reason.contains(says))
}

fn is_stated(history: &History, operation: &Operation) -> bool {
    let reason = operation.reason.as_deref().unwrap_or_default();
    STATED.iter().any(|stated| {
        stated.state == operation.state
            && reason.contains(stated.contains)
            && (stated.holds)(history, operation)
    })
}

/// It says that its time is over; a second for what is rounded.
fn is_over_its_limit(history: &History, operation: &Operation) -> bool {
    let limit = history.asked_for(operation).map(|told| told.limit);
    let took = operation.ended.unwrap_or_default() - operation.created;
    limit.is_none_or(|limit| took + 1000 >= limit)
}

/// It had waited behind one that failed, and its cluster's status does not allow it since.
fn was_refused_at_its_turn(history: &History, operation: &Operation) -> bool {
    let mut before = history.operations.iter().filter(|one| {
        one.id != operation.id && one.cluster == operation.cluster && one.ended <= operation.ended
    });
    history.calls_of(operation).next().is_none() && before.any(|one| one.state == "failed")
}

fn has_a_delete(history: &History, operation: &Operation) -> bool {
    let mut others = history.operations.iter();
    others.any(|one| one.cluster == operation.cluster && one.kind == "cluster_delete")
}

/// A deletion has overtaken it: its conductor was cut off when that began, so its lease had to end first.
fn was_deleted_before(history: &History, operation: &Operation) -> bool {
    let mut others = history.operations.iter();
    others.any(|one| {
        (one.cluster == operation.cluster && one.kind == "cluster_delete" && one.state == "succeeded")
            && one
                .ended
                .is_some_and(|ended| operation.ended.is_some_and(|end| ended <= end))
    })
}

/// Another one of its kind does the same already.
fn names_an_open_delete(history: &History, operation: &Operation) -> bool {
    let reason = operation.reason.as_deref().unwrap_or_default();
    let mut others = history.operations.iter();
    others.any(|one| {
        one.id != operation.id
            && (one.kind.as_str(), &one.cluster) == (operation.kind.as_str(), &operation.cluster)
            && one.kind.ends_with("_delete")
            && reason.contains(&one.id)
            && one.was_open_at(operation.created)
    })
}
