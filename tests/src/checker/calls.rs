//! What drivers wrote down: one call at a time for a cluster, one for each attempt, and what the journal says was done was
//! done, by the operation that says it.

use std::collections::BTreeMap;

use super::history::{Call, Operation};
use super::{History, Rule, Verdict, evidence};

/// See the module.
pub fn check(history: &History) -> Vec<Verdict> {
    let mut verdicts = overlapping(history);
    verdicts.extend(repeated(history));
    for operation in &history.operations {
        verdicts.extend(not_done(history, operation));
        verdicts.extend(after_the_end(history, operation));
    }
    let known: std::collections::BTreeSet<&str> =
        history.operations.iter().map(|one| one.id.as_str()).collect();
    let stray = history
        .calls
        .iter()
        .filter(|call| !known.contains(call.operation.as_str()));
    verdicts.extend(
        stray.map(|call| Verdict::new(Rule::Order, &call.operation, format!("no such operation: {call}"))),
    );
    verdicts
}

fn overlapping(history: &History) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = history
        .overlaps
        .iter()
        .map(|overlap| {
            let all = evidence::of_cluster(history, &overlap.cluster);
            let what = format!(
                "pid {} found another driver at work on {}:\n    {all}",
                overlap.pid, overlap.cluster
            );
            Verdict::new(Rule::OneAtATime, &overlap.operation, what)
        })
        .collect();
    let mut of_cluster: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in &history.calls {
        of_cluster.entry(&call.cluster).or_default().push(call);
    }
    for calls in of_cluster.values_mut() {
        calls.sort_by(|one, other| one.began.total_cmp(&other.began));
        // The one that lasts longest of those before. One that was killed has no end: the lock above watches over it.
        let mut longest: Option<(&Call, f64)> = None;
        for call in calls.iter() {
            if let Some((before, ended)) = longest
                && call.began < ended
            {
                let what = format!("began before the other had ended: {before}; {call}");
                verdicts.push(Verdict::new(Rule::OneAtATime, &call.operation, what));
            }
            if let Some(end) = &call.end
                && longest.is_none_or(|(_, ended)| ended < end.at)
            {
                longest = Some((call, end.at));
            }
        }
    }
    verdicts
}

/// An attempt is one claim by one conductor: whoever calls twice for one does not hold it.
fn repeated(history: &History) -> Vec<Verdict> {
    let mut first: BTreeMap<(&str, &str, u32), &Call> = BTreeMap::new();
    let mut verdicts = Vec::new();
    for call in &history.calls {
        let key = (call.operation.as_str(), call.call.as_str(), call.attempt);
        if let Some(before) = first.get(&key) {
            let what = format!("one attempt, two calls: {before}; {call}");
            verdicts.push(Verdict::new(Rule::OneAtATime, &call.operation, what));
        }
        first.insert(key, call);
    }
    verdicts
}

/// It is said to have succeeded, and no driver has.
fn not_done(history: &History, operation: &Operation) -> Option<Verdict> {
    if operation.state != "succeeded" || !asks_a_driver(&operation.kind) {
        return None;
    }
    let has_done = |call: &Call| {
        let outcome = call.end.as_ref().map_or("", |end| end.outcome.as_str());
        outcome.ends_with("_COMPLETE") || outcome.ends_with("_IN_PROGRESS")
    };
    if history.calls_of(operation).any(has_done)
        || history
            .calls
            .iter()
            .filter(|call| leaves_nothing(history, call, operation))
            .any(has_done)
    {
        return None;
    }
    let calls: Vec<String> = history.calls_of(operation).map(ToString::to_string).collect();
    let what = format!("{operation}; the driver has not done it: {calls:?}");
    Some(Verdict::new(Rule::Order, &operation.id, what))
}

/// What one delete began, and the cloud ended, leaves nothing to do for another one that has taken its place. Of a node group it
/// may be one that waited behind it: the group was there when that was asked for.
fn leaves_nothing(history: &History, call: &Call, operation: &Operation) -> bool {
    let is_of_its_cluster = call.cluster == operation.cluster;
    match (operation.kind.as_str(), call.call.as_str()) {
        ("cluster_delete", "delete") => is_of_its_cluster,
        ("nodegroup_delete", "delete_nodegroup") => {
            let mut of_call = history.operations.iter().filter(|one| one.id == call.operation);
            is_of_its_cluster && of_call.any(|one| one.was_open_at(operation.created))
        }
        _ => false,
    }
}

/// All kinds do, but the one that only holds a cluster.
fn asks_a_driver(kind: &str) -> bool {
    kind != "cluster_driver_call"
}

/// A driver was called for an operation of which everybody was told that it has ended. Half a second for the program to start.
fn after_the_end(history: &History, operation: &Operation) -> Option<Verdict> {
    let ended = operation.ended?;
    let late = history
        .calls_of(operation)
        .find(|call| call.began_wall > ended + 500)?;
    let what = format!("{operation}; its driver was called afterwards: {late}");
    Some(Verdict::new(Rule::Order, &operation.id, what))
}
