//! Crash points: the places between two writes at which a conductor can die.
//!
//! With the cargo feature `test-support` a test can stop a conductor exactly there: it sets
//! `MAGNUM_TEST_CRASH_POINT=<kind>/<step>/<crash point>` and `MAGNUM_TEST_CRASH_POINT_FILE=<path>`. The conductor that reaches
//! the crash point creates `<path>.reached` and waits until `<path>.go` exists, so the test can `kill -9` it, or look,
//! at exactly that point. Without the feature (it is in no default) [`reach`] is empty and reads nothing.

use crate::workflows::OperationKind;

/// The steps that every kind has besides its workflow's own, with their crash points.
const COMMON: &[(&str, &[CrashPoint])] = &[
    (
        "accept",
        &[CrashPoint::BeforeTransaction, CrashPoint::AfterCommit],
    ),
    ("claim", &[CrashPoint::AfterCommit]),
    ("reply", &[CrashPoint::BeforePublish, CrashPoint::AfterPublish]),
];

/// Where in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// Nothing of the step was written.
    BeforeIntent,
    /// The intent is in the journal, the effect not begun.
    AfterIntent,
    /// The effect happened, nobody wrote it down.
    AfterEffect,
    /// The result is in the journal.
    AfterResult,
    /// The message was received, nothing was written.
    BeforeTransaction,
    /// Committed; what follows (ack, work) did not happen.
    AfterCommit,
    /// The answer is in the journal, not sent.
    BeforePublish,
    /// The answer was sent, the journal does not say so.
    AfterPublish,
}

impl CrashPoint {
    /// The crash points of each step of a workflow.
    pub const OF_STEPS: &[Self] = &[
        Self::BeforeIntent,
        Self::AfterIntent,
        Self::AfterEffect,
        Self::AfterResult,
    ];

    /// The name in `MAGNUM_TEST_CRASH_POINT`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BeforeIntent => "before_intent",
            Self::AfterIntent => "after_intent",
            Self::AfterEffect => "after_effect",
            Self::AfterResult => "after_result",
            Self::BeforeTransaction => "before_transaction",
            Self::AfterCommit => "after_commit",
            Self::BeforePublish => "before_publish",
            Self::AfterPublish => "after_publish",
        }
    }
}

/// Every crash point of every kind: the rows of the crash matrix. A new step is in it without further code.
/// The crash points of `reply` are reached by calls only.
pub fn all() -> Vec<String> {
    let mut all = Vec::new();
    for kind in OperationKind::ALL {
        for (step, points) in COMMON {
            all.extend(points.iter().map(|point| name(kind.as_str(), step, *point)));
        }
        for step in kind.steps() {
            all.extend(
                CrashPoint::OF_STEPS
                    .iter()
                    .map(|point| name(kind.as_str(), step.as_str(), *point)),
            );
        }
    }
    all
}

fn name(kind: &str, step: &str, point: CrashPoint) -> String {
    format!("{kind}/{step}/{}", point.as_str())
}

/// Marks a crash point. Returns at once, except in a test that asked to stop here.
#[cfg(not(feature = "test-support"))]
pub async fn reach(_kind: &str, _step: &str, _point: CrashPoint) {}

/// Marks a crash point. Returns at once, except in a test that asked to stop here.
#[cfg(feature = "test-support")]
pub async fn reach(kind: &str, step: &str, point: CrashPoint) {
    let (Ok(wanted), Ok(file)) = (
        std::env::var("MAGNUM_TEST_CRASH_POINT"),
        std::env::var("MAGNUM_TEST_CRASH_POINT_FILE"),
    ) else {
        return;
    };
    if wanted != name(kind, step, point) {
        return;
    }
    if let Err(error) = tokio::fs::write(format!("{file}.reached"), &wanted).await {
        tracing::error!(%error, file, "cannot tell the test that a crash point was reached");
        return;
    }
    let go = format!("{file}.go");
    while !tokio::fs::try_exists(&go).await.unwrap_or(false) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_has_every_step_of_every_kind_and_no_name_twice() {
        let all = all();
        let mut unique = all.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(all.len(), unique.len());
        for kind in OperationKind::ALL {
            for step in kind.steps() {
                let wanted = format!("{kind}/{}/after_effect", step.as_str());
                assert!(all.contains(&wanted), "{wanted}");
            }
            assert!(all.contains(&format!("{kind}/accept/after_commit")));
        }
    }
}
