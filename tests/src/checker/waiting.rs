//! Nobody waits for ever: how long tenants wait for a driver, and how often who has nothing to do asks the database.

use std::collections::BTreeMap;

use super::history::{Millis, Operation};
use super::{Bounds, History, Rule, Verdict};

/// See the module.
pub fn check(history: &History, bounds: &Bounds) -> Vec<Verdict> {
    let bound = Millis::try_from(bounds.waiting.as_millis()).unwrap_or(Millis::MAX);
    let mut worst: BTreeMap<&str, (Millis, &Operation)> = BTreeMap::new();
    for operation in &history.operations {
        let Some(waited) = waited(history, operation) else {
            continue;
        };
        let known = worst.entry(&operation.tenant).or_insert((waited, operation));
        if waited > known.0 {
            *known = (waited, operation);
        }
    }
    let starved = worst.into_iter().filter(|(_, (waited, _))| *waited > bound);
    let mut verdicts: Vec<Verdict> = starved
        .map(|(tenant, (waited, operation))| {
            let what = format!("waited {waited} ms for a driver, {bound} ms are stated: {operation}");
            Verdict::new(Rule::Waiting, tenant, what)
        })
        .collect();
    for sample in &history.idle {
        let each = per_second(sample.statements(), sample.seconds, sample.conductors);
        if each > bounds.idle_statements {
            let what = format!("{each:.1} statements a second and conductor: {:#?}", sample.asked);
            verdicts.push(Verdict::new(Rule::Idle, &sample.server, what));
        }
    }
    verdicts
}

/// The longest that each tenant waited, in milliseconds.
pub fn longest(history: &History) -> BTreeMap<&str, Millis> {
    let mut longest = BTreeMap::new();
    for operation in &history.operations {
        let waited = waited(history, operation).unwrap_or_default();
        let known: &mut Millis = longest.entry(operation.tenant.as_str()).or_default();
        *known = waited.max(*known);
    }
    longest
}

/// From the moment in which an operation could begin to the first call of its driver: it was asked for, and the one before
/// it on the same cluster had ended.
fn waited(history: &History, operation: &Operation) -> Option<Millis> {
    let began = history.calls_of(operation).map(|call| call.began_wall).min()?;
    let asked = history
        .asked_for(operation)
        .map_or(operation.created, |told| told.asked);
    let others = history
        .operations
        .iter()
        .filter(|one| one.cluster == operation.cluster && one.id != operation.id);
    let before = others
        .filter_map(|one| one.ended)
        .filter(|ended| *ended <= began)
        .max();
    Some(began - asked.max(before.unwrap_or(asked)))
}

#[expect(clippy::cast_precision_loss, reason = "counts of a few seconds")]
fn per_second(statements: u64, seconds: f64, conductors: u32) -> f64 {
    statements as f64 / seconds / f64::from(conductors.max(1))
}
