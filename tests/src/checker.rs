//! Decides whether a run kept what was promised, from the outside.
//!
//! It knows nothing of how the programs work. It is given a [`History`]: what clients were told, what drivers wrote down of
//! their calls, and the rows that are there in the end. From these it decides, by pure functions, one for each promise:
//!
//! | rule | promise | module |
//! |---|---|---|
//! | [`Rule::Accepted`] | what was confirmed is exactly one operation, or one dead letter | [`accepted`] |
//! | [`Rule::OneAtATime`] | no two driver calls for one cluster at a time, no call made twice for one attempt | [`calls`] |
//! | [`Rule::Order`] | an operation that succeeded was done by the driver, which is not called for what has ended | [`calls`] |
//! | [`Rule::InTime`] | every operation has ended, within its time limit and a stated bound | [`in_time`] |
//! | [`Rule::Rows`] | the final rows are what the last operation and the driver's world say | [`rows`] |
//! | [`Rule::Reasons`] | every failure has a reason that is the driver's own, or on a short list | [`reasons`] |
//! | [`Rule::Waiting`] | no tenant waits longer for a driver than a stated bound | [`waiting`] |
//! | [`Rule::Idle`] | who has nothing to do asks the database for little | [`waiting`] |
//!
//! [`read`] gets a history from a driver's record and by SQL. A [`Verdict`] names the operation, cluster or tenant, and shows the evidence. `broken` takes a sound history and breaks
//! it in many ways, each of which has to be noticed.

pub mod accepted;
#[cfg(test)]
mod borderline;
#[cfg(test)]
mod broken;
pub mod calls;
pub mod evidence;
pub mod history;
pub mod in_time;
pub mod read;
pub mod reasons;
pub mod rows;
pub mod waiting;

use std::fmt;
use std::time::Duration;

pub use history::History;

/// A promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Exactly one operation or dead letter for each confirmed request.
    Accepted,
    /// One driver call at a time, and one for each attempt.
    OneAtATime,
    /// What the journal says was done.
    Order,
    /// Everything ends.
    InTime,
    /// The final rows are right.
    Rows,
    /// Failures are somebody else's.
    Reasons,
    /// Nobody starves.
    Waiting,
    /// Who is idle is quiet.
    Idle,
}

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Which.
    pub rule: Rule,
    /// The operation, cluster or tenant.
    pub about: String,
    /// What shows it.
    pub evidence: String,
}

impl Verdict {
    pub(crate) fn new(rule: Rule, about: &str, evidence: impl Into<String>) -> Self {
        Self {
            rule,
            about: about.to_owned(),
            evidence: evidence.into(),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}: {}", self.rule, self.about, self.evidence)
    }
}

/// What is stated: how long things may take at most.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// From the end of an operation's time limit to its end.
    pub after_limit: Duration,
    /// From the moment in which an operation could begin to the first call of its driver.
    pub waiting: Duration,
    /// Statements of an idle conductor, in a second.
    pub idle_statements: f64,
}

/// Every promise that was not kept.
pub fn check(history: &History, bounds: &Bounds) -> Vec<Verdict> {
    let mut verdicts = accepted::check(history);
    verdicts.extend(calls::check(history));
    verdicts.extend(in_time::check(history, bounds));
    verdicts.extend(rows::check(history));
    verdicts.extend(reasons::check(history));
    verdicts.extend(waiting::check(history, bounds));
    verdicts
}
