//! Where the chain does not do what was recorded, and why.

use serde_json::json;

use super::super::replay::Difference;
use super::case::Case;
use super::expected::Expected;
use super::fixtures::is_of_masters;

/// All of them. Those that users can see are in `docs/differences.md`, too.
pub const DIFFERENCES: &[Difference<Case, Expected>] = &[
    Difference {
        reason: "a cluster that is not in progress is not looked at, as by Magnum's own task; nor is one without a stack",
        is_in: |case| case.is_look() && !case.is_looked_at(),
        instead: |_, expected| {
            expected.state = "not looked at".to_owned();
            expected.calls.clear();
            expected.after = expected.given.clone();
        },
    },
    Difference {
        reason: "a deletion that nobody has asked for is not written, and one that was asked for is not taken back",
        is_in: |case| case.is_look() && case.is_looked_at() && contradicts_deletion(case),
        instead: |case, expected| {
            expected.after = expected.given.clone();
            expected.write(&case.recorded["saved"]);
            expected.take_back(&["status", "status_reason"]);
        },
    },
    Difference {
        reason: "of what a failed call has set only the stack is kept: the rest may not be so",
        is_in: |case| {
            let set = case.recorded["unsaved"]["cluster"].as_object();
            let mut names = set.into_iter().flat_map(|fields| fields.keys());
            !case.is_look() && !case.failure().is_empty() && names.any(|name| name != "stack_id")
        },
        instead: |case, expected| {
            let set = case.recorded["unsaved"]["cluster"].as_object();
            let names = set.into_iter().flat_map(|fields| fields.keys());
            let names: Vec<&str> = names
                .map(String::as_str)
                .filter(|name| *name != "stack_id")
                .collect();
            expected.take_back(&names);
        },
    },
    Difference {
        reason: "what the driver says it cannot do with masters is refused before anything changes, as by Magnum's API",
        is_in: |case| case.operation() == "resize" && is_of_masters(case),
        instead: |_, expected| {
            expected.state = "refused".to_owned();
            expected.reason = json!("Resizing the master nodegroup is not supported by this driver.");
            expected.calls.clear();
            expected.after = expected.given.clone();
        },
    },
    Difference {
        reason: "a cluster whose driver cannot be upgraded stays as it was",
        is_in: |case| case.operation() == "upgrade" && case.failure() == "NotSupported",
        instead: |_, expected| expected.after = expected.given.clone(),
    },
];

/// Whether the look reports a deletion of a cluster that is not being deleted, or something else of one that is.
fn contradicts_deletion(case: &Case) -> bool {
    let before = case.status();
    let saved = &case.recorded["saved"]["cluster"]["status"];
    let after = saved.as_str().unwrap_or(&before);
    before.starts_with("DELETE_") != after.starts_with("DELETE_")
}
