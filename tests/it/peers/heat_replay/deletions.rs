//! Deletions that Heat answers as no recording has it: a stack that is gone, and one that Heat is at work on.

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use serde_json::{Value, json};

use super::super::replay::Columns;
use super::case::{Case, named};
use super::stage::{Outcome, Stage};

/// The recorded deletion of a cluster with another stack for a group, which Heat answers so.
fn answered(heat_error: &str) -> Result<Case> {
    let mut case = named("delete/with node group")?;
    case.recorded["given"]["cloud"] = json!({"heat_error": heat_error});
    Ok(case)
}

fn deleted_stacks(outcome: &Outcome) -> Vec<&Value> {
    let calls = outcome.calls.iter();
    calls
        .filter(|call| call["call"] == "heat.stacks.delete")
        .map(|call| &call["args"]["stack_id"])
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_whose_stacks_are_gone_is_deleted_and_one_with_a_busy_stack_is_tried_again() -> Result<()> {
    let cases = vec![answered("HTTPNotFound")?, answered("HTTPConflict")?];
    let outcomes = Stage::play(Backend::Sqlite, cases).await?;
    let [gone, busy] = outcomes.as_slice() else {
        anyhow::bail!("{} outcomes", outcomes.len());
    };
    ensure!(gone.state == "succeeded", "{gone:?}");
    ensure!(gone.after == Columns::default(), "{:?}", gone.after);
    let stacks = deleted_stacks(gone);
    ensure!(
        stacks.len() == 2 && stacks[0] != stacks[1],
        "both are asked for: {stacks:?}"
    );

    ensure!(busy.state == "retrying", "{busy:?}");
    let cluster = busy.after.cluster.as_ref().context("the cluster")?;
    ensure!(cluster["status"] == "DELETE_IN_PROGRESS", "{cluster:?}");
    ensure!(deleted_stacks(busy).len() == 1, "{:?}", busy.calls);
    Ok(())
}
