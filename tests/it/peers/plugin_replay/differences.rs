//! Where the chain does not do what was recorded, and why.

use serde_json::{Value, json};

use super::super::replay::{Columns, Difference};
use super::case::Case;
use super::expected::Expected;
use super::rows::TEMPLATE;

/// All of the packages. Those that users can see are in `docs/differences.md`, too.
pub const DIFFERENCES: &[Difference<Case, Expected>] = &[
    REFUSED_BEFOREHAND,
    NOT_IMPLEMENTED,
    TOO_FEW_MASTERS,
    LABEL_IS_NO_NUMBER,
    TEMPLATE_AFTERWARDS,
    CREDENTIAL_ALONE,
    SAME_STACK_AGAIN,
    NOT_LOOKED_AT,
];

pub const REFUSED_BEFOREHAND: Difference<Case, Expected> = Difference {
    reason: "what the driver says it cannot do is refused before anything changes",
    is_in: |case| case.class() == "not_supported" && case.call().starts_with("rotate_"),
    instead: |case, expected| {
        expected.state = "refused".to_owned();
        if case.call() == "rotate_credential" {
            expected.reason = json!("Credential rotation is not supported by driver.");
        }
    },
};

pub const NOT_IMPLEMENTED: Difference<Case, Expected> = Difference {
    reason: "NotImplementedError says nothing to a user: the driver is named",
    is_in: |case| case.recorded["result"]["exception"] == "builtins.NotImplementedError" && !is_told(case),
    instead: |case, expected| {
        let driver = format!("driver {0} {1} ({0})", case.driver, case.version);
        let reason = json!(format!("{driver} does not support this"));
        if let Some(cluster) = &mut expected.after.cluster
            && cluster["status_reason"] == expected.reason
        {
            cluster.insert("status_reason".to_owned(), reason.clone());
        }
        expected.reason = reason;
    },
};

pub const TOO_FEW_MASTERS: Difference<Case, Expected> = Difference {
    reason: "a number of masters below 1 is refused in words that are true of it",
    is_in: |case| {
        let count = case.argument("node_count").as_i64();
        case.call().starts_with("validate_master_") && count.is_some_and(|count| count < 1)
    },
    instead: |_, expected| {
        let reason = expected.reason.as_str().unwrap_or_default();
        expected.reason = json!(reason.replace("size cannot be an even number", "size must be at least 1"));
    },
};

pub const LABEL_IS_NO_NUMBER: Difference<Case, Expected> = Difference {
    reason: "the label min_node_count is read when a create is accepted: one that is no number refuses it",
    is_in: |case| {
        let label = case.given()["cluster"]["labels"]["min_node_count"].as_str();
        case.call() == "create_cluster" && label.is_some_and(|label| label.trim().parse::<i32>().is_err())
    },
    instead: |case, expected| {
        let label = &case.given()["cluster"]["labels"]["min_node_count"];
        let label = label.as_str().unwrap_or_default();
        expected.state = "refused".to_owned();
        expected.reason = json!(format!(
            "The label min_node_count must be an integer, it is '{label}'."
        ));
        expected.steps.clear();
        expected.cloud_reads.clear();
        expected.after = Columns::default();
    },
};

pub const TEMPLATE_AFTERWARDS: Difference<Case, Expected> = Difference {
    reason: "the template of an upgrade is the cluster's when the driver has taken it, not when its call fails",
    is_in: |case| {
        let mut saves = case.saves();
        !case.is_done() && saves.any(|save| save["fields"]["cluster_template_id"].is_string())
    },
    instead: |_, expected| {
        expected
            .cluster()
            .insert("cluster_template_id".to_owned(), json!(TEMPLATE));
    },
};

pub const CREDENTIAL_ALONE: Difference<Case, Expected> = Difference {
    reason: "a new credential leaves the cluster's status alone: an update that runs is not over by it",
    is_in: |case| case.call() == "rotate_credential" && case.is_done(),
    instead: |case, expected| {
        let before = case.given()["cluster"]["status"].clone();
        expected.cluster().insert("status".to_owned(), before);
    },
};

pub const SAME_STACK_AGAIN: Difference<Case, Expected> = Difference {
    reason: "a create that is made again goes on with the stack that it has begun, whose objects are there",
    is_in: |case| {
        let mut saves = case.saves();
        case.call() == "create_cluster"
            && case.given()["cluster"]["stack_id"].is_string()
            && saves.any(|save| save["fields"]["stack_id"].is_string())
    },
    instead: |_, expected| expected.steps.iter_mut().for_each(updated_if_of_the_stack),
};

const NOT_LOOKED_AT: Difference<Case, Expected> = Difference {
    reason: "a cluster that is not in progress is not looked at",
    is_in: |case| case.call() == "update_cluster_status" && !is_looked_at(case),
    instead: |case, expected| {
        expected.state = "not looked at".to_owned();
        expected.steps.clear();
        expected.cloud_reads.clear();
        if !case.name().ends_with("second-poll") {
            expected.after = expected.before.clone();
        }
    },
};

/// A request that makes an object of a new stack, as the one that updates it.
fn updated_if_of_the_stack(step: &mut Value) {
    let name = step["kubernetes"]["body"]["metadata"]["name"].as_str();
    let Some(name) = name.filter(|name| name.contains("RANDOM")).map(str::to_owned) else {
        return;
    };
    let made = step["kubernetes"]["request"].as_str();
    if let Some(path) = made.and_then(|request| request.strip_prefix("POST ")) {
        step["kubernetes"]["request"] = json!(format!("PUT {path}/{name}"));
        step["kubernetes"]["status"] = json!(200);
    }
}

fn is_told(case: &Case) -> bool {
    case.message().contains(' ')
}

/// Whether the recorded look would be made: the first one always of a cluster in progress, the second one if the first has
/// left it so.
fn is_looked_at(case: &Case) -> bool {
    let is_second = case.name().ends_with("second-poll");
    let afterwards = &case.recorded["rows_after"]["cluster"]["status"];
    is_in_progress(&case.given()["status"]) && (!is_second || is_in_progress(afterwards))
}

fn is_in_progress(status: &Value) -> bool {
    status
        .as_str()
        .is_some_and(|status| status.ends_with("_IN_PROGRESS"))
}
