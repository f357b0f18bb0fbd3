//! What was confirmed is exactly one operation, or a dead letter, of which there may be copies; and there is none that nobody
//! asked for.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Heard, Operation, RequestId};
use super::{History, Rule, Verdict};

/// See the module.
pub fn check(history: &History) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let known = Known::of(history);
    for told in &history.told {
        let Some(id) = &told.id else { continue };
        let operations = known.operations(id);
        let letters = known.letters.get(id).copied().unwrap_or_default();
        // What cannot be read is in no journal by which a copy could be recognised.
        let count = operations.len() + letters.min(1);
        let is_wrong = match &told.heard {
            Heard::Confirmed | Heard::Result | Heard::Failure(_) => count != 1,
            Heard::Nothing => count > 1,
            // That nobody knows, as after a broken line.
            Heard::Refused { status: 500.., .. } => count > 1,
            // That nothing will happen: at most the refusal is written down, or the end of what had to wait for its turn.
            Heard::Refused { text, .. } => {
                let is_written = |one: &&Operation| one.state == "refused" || ended_as_told(one, text);
                count > 1 || !operations.iter().all(is_written)
            }
        };
        if is_wrong {
            let seen: Vec<String> = operations.iter().map(ToString::to_string).collect();
            let evidence = format!(
                "{told}; there are {} operations and {letters} dead letters: {seen:?}",
                operations.len()
            );
            verdicts.push(Verdict::new(Rule::Accepted, &id.to_string(), evidence));
        }
        verdicts.extend(
            operations
                .iter()
                .filter_map(|one| contradicts(history, &told.heard, one)),
        );
    }
    verdicts.extend(unasked(history));
    verdicts
}

/// Whether an operation failed for what its caller was told, in JSON.
fn ended_as_told(operation: &Operation, text: &str) -> bool {
    let words = |text: &str| text.replace(['"', '\\'], "");
    let reason = operation.reason.as_deref().unwrap_or_default();
    operation.state == "failed" && !reason.is_empty() && words(text).contains(&words(reason))
}

/// Whether the driver has reported how the cluster is. Then a caller gets its result, which shows the cluster: before the cloud has
/// done it, and also when it has failed.
fn is_reported(history: &History, operation: &Operation) -> bool {
    let calls = history.calls.iter().filter(|call| call.operation == operation.id);
    let ends = calls.filter_map(|call| call.end.as_ref());
    ends.map(|end| end.outcome.as_str())
        .any(|outcome| outcome.ends_with("_IN_PROGRESS") || outcome.ends_with("_FAILED"))
}

/// A caller was told the other thing.
fn contradicts(history: &History, heard: &Heard, operation: &Operation) -> Option<Verdict> {
    let is_told = match heard {
        Heard::Result => operation.state == "succeeded" || is_reported(history, operation),
        Heard::Failure(_) => operation.state != "succeeded",
        _ => true,
    };
    let evidence = || format!("its caller was told {heard:?}: {operation}");
    (!is_told).then(|| Verdict::new(Rule::Accepted, &operation.id, evidence()))
}

/// Operations of whom nobody has heard. A request that got no answer has no id that a client knows: these are as many.
fn unasked(history: &History) -> Vec<Verdict> {
    let ids: BTreeSet<&RequestId> = history.told.iter().filter_map(|told| told.id.as_ref()).collect();
    let mut unanswered: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for told in history.told.iter().filter(|told| told.id.is_none()) {
        *unanswered.entry((&told.tenant, &told.kind)).or_default() += 1;
    }
    let mut verdicts = Vec::new();
    for operation in &history.operations {
        let request = operation.request.clone().map(RequestId::Rest);
        let message = operation.message.clone().map(RequestId::Message);
        if [request, message].iter().flatten().any(|id| ids.contains(id)) {
            continue;
        }
        match unanswered.get_mut(&(operation.tenant.as_str(), operation.kind.as_str())) {
            Some(left @ 1..) => *left -= 1,
            _ => {
                let evidence = format!("nobody has asked for {operation}");
                verdicts.push(Verdict::new(Rule::Accepted, &operation.id, evidence));
            }
        }
    }
    verdicts
}

/// The journal and the dead letters, by id.
struct Known<'a> {
    by_id: BTreeMap<RequestId, Vec<&'a Operation>>,
    letters: BTreeMap<RequestId, usize>,
}

impl<'a> Known<'a> {
    fn of(history: &'a History) -> Self {
        let mut by_id: BTreeMap<RequestId, Vec<&Operation>> = BTreeMap::new();
        for operation in &history.operations {
            let request = operation.request.clone().map(RequestId::Rest);
            let message = operation.message.clone().map(RequestId::Message);
            for id in [request, message].into_iter().flatten() {
                by_id.entry(id).or_default().push(operation);
            }
        }
        let mut letters = BTreeMap::new();
        for id in &history.dead_letters {
            *letters.entry(id.clone()).or_default() += 1;
        }
        Self { by_id, letters }
    }

    fn operations(&self, id: &RequestId) -> &[&'a Operation] {
        self.by_id.get(id).map_or(&[], Vec::as_slice)
    }
}
