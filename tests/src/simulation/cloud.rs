//! The cloud that drivers of a schedule build in, which all conductors share.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use magnum_common::model::ClusterStatus;

/// What drivers have built.
#[derive(Default)]
pub struct Cloud(Mutex<State>);

#[derive(Default)]
struct State {
    stacks: BTreeMap<String, Stack>,
    poisoned: u32,
}

/// What there is of one cluster.
#[derive(Default)]
struct Stack {
    /// Nodes.
    built: Option<i64>,
    work: Option<Work>,
}

/// What goes on in the cloud.
struct Work {
    operation: String,
    word: &'static str,
    ready: Duration,
    /// Nodes afterwards; none: it is gone.
    nodes: Option<i64>,
    fails: Option<String>,
}

/// What a driver asks for.
pub struct Asked<'a> {
    /// The cluster's uuid.
    pub cluster: &'a str,
    /// The operation's id. What is asked for twice for one operation is done once.
    pub operation: &'a str,
    /// How its statuses begin.
    pub word: &'static str,
    /// Nodes that the cluster is to have; none: it is to go.
    pub nodes: Option<i64>,
    /// It is not done at once.
    pub goes_on: Option<GoesOn>,
}

/// What is done in the cloud when the driver's call is long over.
pub struct GoesOn {
    /// For how long.
    pub takes: Duration,
    /// It fails in the end, for this reason.
    pub fails: Option<String>,
}

impl Cloud {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Clusters that are built, with the number of their nodes.
    pub fn built(&self) -> BTreeMap<String, i64> {
        let state = self.lock();
        let built = state.stacks.iter();
        built
            .filter_map(|(cluster, stack)| Some((cluster.clone(), stack.built?)))
            .collect()
    }

    /// Counts the calls that may end their conductor, this one included.
    pub fn poisons(&self) -> u32 {
        let mut state = self.lock();
        state.poisoned += 1;
        state.poisoned
    }

    /// Does what is asked for, or begins to. Returns the status, its reason, and the reason for which it will fail.
    pub fn build(&self, asked: Asked<'_>, now: Duration) -> (ClusterStatus, Option<String>, Option<String>) {
        let mut state = self.lock();
        let stack = state.stacks.entry(asked.cluster.to_owned()).or_default();
        if !stack.is_at_work_for(asked.operation) {
            stack.work = asked.goes_on.map(|goes_on| Work {
                operation: asked.operation.to_owned(),
                word: asked.word,
                ready: now + goes_on.takes,
                nodes: asked.nodes,
                fails: goes_on.fails,
            });
        }
        // An attempt before this one may have begun it: it is adopted.
        let Some(work) = &stack.work else {
            stack.built = asked.nodes;
            return (status(asked.word, "COMPLETE"), None, None);
        };
        let fails = work.fails.clone();
        let (status, reason) = stack.look(now);
        (status, reason, fails)
    }

    /// How the work for this cluster stands, if there is any.
    pub fn look(&self, cluster: &str, now: Duration) -> Option<(ClusterStatus, Option<String>)> {
        let mut state = self.lock();
        let stack = state.stacks.get_mut(cluster)?;
        stack.work.as_ref()?;
        Some(stack.look(now))
    }
}

impl Stack {
    fn is_at_work_for(&self, operation: &str) -> bool {
        self.work.as_ref().is_some_and(|work| work.operation == operation)
    }

    /// How the work in the cloud stands.
    fn look(&mut self, now: Duration) -> (ClusterStatus, Option<String>) {
        let Some(work) = &self.work else {
            return (ClusterStatus::CreateInProgress, None);
        };
        if now < work.ready {
            return (status(work.word, "IN_PROGRESS"), None);
        }
        if let Some(reason) = &work.fails {
            return (status(work.word, "FAILED"), Some(reason.clone()));
        }
        self.built = work.nodes;
        (status(work.word, "COMPLETE"), None)
    }
}

/// A status by its two words.
fn status(word: &str, outcome: &str) -> ClusterStatus {
    let text = format!("{word}_{outcome}");
    text.parse().unwrap_or(ClusterStatus::UpdateFailed)
}
