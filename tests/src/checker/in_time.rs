//! Every operation has ended, within its time limit and a stated bound.

use super::history::Millis;
use super::{Bounds, History, Rule, Verdict, evidence};

/// See the module.
pub fn check(history: &History, bounds: &Bounds) -> Vec<Verdict> {
    let bound = Millis::try_from(bounds.after_limit.as_millis()).unwrap_or(Millis::MAX);
    let mut verdicts = Vec::new();
    for operation in &history.operations {
        let Some(ended) = operation.ended.filter(|_| operation.has_ended()) else {
            let all = evidence::of_cluster(history, &operation.cluster);
            let what = format!("{operation} has not ended:\n    {all}");
            verdicts.push(Verdict::new(Rule::InTime, &operation.id, what));
            continue;
        };
        let Some(told) = history.asked_for(operation) else {
            continue;
        };
        let took = ended - told.asked;
        if took > told.limit + bound {
            let limit = told.limit;
            let what = format!("{operation} took {took} ms, with a limit of {limit} ms and {bound} ms more");
            verdicts.push(Verdict::new(Rule::InTime, &operation.id, what));
        }
    }
    verdicts
}
