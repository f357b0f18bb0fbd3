//! What was promised: the rules of [`checker`], and those that only a simulation can check, since it knows who
//! lived when.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::checker::history::{ClusterRow, Heard, History, Operation, Told};
use crate::checker::{self, Bounds, Rule, Verdict};

use super::conductor::{ALIVE, Surroundings};
use super::database::EPOCH_MS;
use super::plan::{DRIVERS, LEASE, LIMIT};
use super::record::Written;

/// Who lived when, and what was strange about it.
#[derive(Default)]
pub struct Seen(Mutex<Vec<Life>>);

/// A process.
#[derive(Debug, Clone)]
pub struct Life {
    /// Of which member.
    pub member: usize,
    /// What it has loaded.
    pub drivers: Vec<&'static str>,
    /// Its begin.
    pub from: Duration,
    /// Its end.
    pub until: Option<Duration>,
    /// How often it has asked the database since all troubles ended, and for how many seconds.
    pub asked: (u32, u32),
    /// A part of it panicked.
    pub broken: Option<String>,
}

impl Seen {
    /// A process begins. Returns its number.
    pub fn begin(&self, member: usize, drivers: &[&'static str], from: Duration) -> usize {
        let mut lives = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lives.push(Life {
            member,
            drivers: drivers.to_vec(),
            from,
            until: None,
            asked: (0, 0),
            broken: None,
        });
        lives.len() - 1
    }

    /// Something becomes known of the process with this number.
    pub fn learn(&self, number: usize, learn: impl FnOnce(&mut Life)) {
        let mut lives = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(life) = lives.get_mut(number) {
            learn(life);
        }
    }

    fn lives(&self) -> Vec<Life> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Accesses of a conductor in a second, when all troubles are over. At rest it makes less than one.
const MOST_ACCESSES: f64 = 6.0;
/// Over shorter times this says nothing.
const LONG_ENOUGH: u32 = 30;

/// All that is known in the end.
pub struct Evidence<'a> {
    /// The schedule.
    pub around: &'a Surroundings,
    /// Who lived when.
    pub seen: &'a Seen,
    /// What clients were told.
    pub told: Vec<Told>,
    /// Ids of the messages whose sender waits for an answer.
    pub calls: Vec<String>,
    /// The journal.
    pub operations: Vec<Operation>,
    /// Rows.
    pub clusters: Vec<ClusterRow>,
    /// What drivers wrote down.
    pub record: Written,
}

impl Evidence<'_> {
    /// What was not as promised, in words.
    pub fn verdicts(&self) -> Vec<String> {
        let plan = &self.around.stage.plan;
        let history = self.history();
        let requests = u32::try_from(plan.requests.len()).unwrap_or(u32::MAX);
        let bounds = Bounds {
            // What waits behind others of its cluster has its time afterwards.
            after_limit: plan.quiet + LIMIT * requests + LEASE * 4,
            waiting: plan.quiet + LIMIT * requests,
            idle_statements: 0.0,
        };
        let verdicts = checker::check(&history, &bounds).into_iter();
        let mut verdicts: Vec<String> = verdicts
            .filter(|verdict| !self.is_excused(&history, verdict))
            .map(|verdict| verdict.to_string())
            .collect();
        verdicts.extend(self.unanswered(&history));
        for life in self.seen.lives() {
            if let Some(broken) = &life.broken {
                verdicts.push(format!("a part of m{} panicked: {broken}", life.member));
            }
            let (asked, seconds) = life.asked;
            if seconds >= LONG_ENOUGH && f64::from(asked) / f64::from(seconds) > MOST_ACCESSES {
                verdicts.push(format!(
                    "Idle: m{} asked {asked} times in {seconds} s",
                    life.member
                ));
            }
        }
        verdicts
    }

    fn history(&self) -> History {
        let plan = &self.around.stage.plan;
        // The journal has the times of whoever wrote, a driver's record the schedule's.
        let (least, most) = plan.offsets_ms();
        let mut calls = self.record.calls.clone();
        for call in &mut calls {
            call.began_wall += least;
        }
        // Its time limit counts by one clock, its begin and its end may be by others.
        let mut operations = self.operations.clone();
        for operation in &mut operations {
            operation.created -= most - least;
        }
        History {
            told: self.told.iter().map(|told| self.heard(told)).collect(),
            calls,
            overlaps: self.record.overlaps.clone(),
            operations,
            dead_letters: Vec::new(),
            clusters: self.clusters.clone(),
            built: self.around.cloud.built(),
            idle: Vec::new(),
        }
    }

    /// With the answer, if one was sent.
    fn heard(&self, told: &Told) -> Told {
        let Some(checker::history::RequestId::Message(id)) = &told.id else {
            return told.clone();
        };
        let heard = match self.around.answers.sent().get(id).and_then(|sent| sent.first()) {
            Some(Ok(_)) => Heard::Result,
            Some(Err(fault)) => Heard::Failure(fault.message.clone()),
            None => told.heard.clone(),
        };
        Told {
            heard,
            ..told.clone()
        }
    }

    /// A caller gets an answer, and no two different ones.
    fn unanswered(&self, history: &History) -> Vec<String> {
        let sent = self.around.answers.sent();
        let mut verdicts: Vec<String> = sent
            .iter()
            .filter(|(_, answers)| answers.iter().any(|answer| Some(answer) != answers.first()))
            .map(|(id, answers)| format!("the call {id} got different answers: {answers:?}"))
            .collect();
        for id in &self.calls {
            let is_known = history
                .operations
                .iter()
                .any(|one| one.message.as_ref() == Some(id));
            if is_known && !sent.contains_key(id) {
                verdicts.push(format!("nobody has answered the call {id}"));
            }
        }
        verdicts
    }

    /// What the checker does not know to be so, and is.
    fn is_excused(&self, history: &History, verdict: &Verdict) -> bool {
        if verdict.rule == Rule::Rows {
            return self.was_never_called(history, &verdict.about);
        }
        let mut operations = history.operations.iter();
        let Some(operation) = operations.find(|one| one.id == verdict.about) else {
            return false;
        };
        let reason = operation.reason.as_deref().unwrap_or_default();
        let has_twin = |state: &str| {
            let mut others = history.operations.iter().filter(|one| one.id != operation.id);
            others.any(|one| {
                one.kind == operation.kind && one.cluster == operation.cluster && one.state == state
            })
        };
        match (verdict.rule, operation.kind.as_str(), operation.state.as_str()) {
            // Asked for twice, and once is enough.
            (Rule::Order, "nodegroup_delete", "succeeded") => {
                reason == "The node group's row is gone." && has_twin("succeeded")
            }
            // Told so, and its caller is answered as if it had done it.
            (Rule::Reasons | Rule::Accepted, "cluster_delete" | "nodegroup_delete", "cancelled") => {
                reason.contains(" is deleting the ") && reason.ends_with(" already")
            }
            (Rule::Reasons, _, "failed") => {
                reason.contains("No running conductor has this driver loaded.")
                    && self.is_missing(reason, operation)
            }
            _ => false,
        }
    }

    /// A cluster shows the failure of an operation that was begun, and for which no driver could be called until it was given up.
    /// What came after it was not begun either.
    fn was_never_called(&self, history: &History, cluster: &str) -> bool {
        let Some(row) = history.clusters.iter().find(|row| row.uuid == cluster) else {
            return false;
        };
        let shown = row.reason.as_deref().unwrap_or_default();
        let is_given_up = ["No running conductor has this driver loaded.", "Timed out: "]
            .iter()
            .any(|given_up| shown.contains(given_up));
        let of_cluster = history
            .operations
            .iter()
            .rev()
            .filter(|one| one.cluster == cluster);
        let mut uncalled = of_cluster
            .filter(|one| matches!(one.state.as_str(), "succeeded" | "failed"))
            .take_while(|one| history.calls_of(one).next().is_none());
        let is_at_rest = !row
            .groups
            .iter()
            .any(|group| group.status.ends_with("_IN_PROGRESS"));
        is_given_up
            && is_at_rest
            && row.status.ends_with("_FAILED")
            && uncalled.any(|one| one.state == "failed" && one.reason.as_deref() == Some(shown))
    }

    /// Whether nobody was there who had the driver that the reason names: none that lived, or only such as had troubles of their
    /// own with the database.
    fn is_missing(&self, reason: &str, operation: &Operation) -> bool {
        let plan = &self.around.stage.plan;
        let ended = operation.ended.unwrap_or_default() - EPOCH_MS;
        let ended = Duration::from_millis(u64::try_from(ended).unwrap_or_default());
        let Some(driver) = DRIVERS.iter().find(|driver| reason.contains(**driver)) else {
            return false;
        };
        // Time to say so, and by how much clocks differ.
        let (least, most) = plan.offsets_ms();
        let moment = Duration::from_secs(8) + Duration::from_millis(most.abs_diff(least));
        let long_before = ended.saturating_sub(ALIVE + plan.driver_patience + moment);
        let is_there = |life: &Life| {
            let lived = life.from + moment <= ended && life.until.is_none_or(|until| until > ended + moment);
            let is_cut_off = plan.troubles.iter().any(|trouble| {
                trouble.who == Some(life.member) && trouble.from <= ended && trouble.until >= long_before
            });
            life.drivers.contains(driver) && lived && !is_cut_off
        };
        !self.seen.lives().iter().any(is_there)
    }
}
