//! A conductor is killed when Heat has accepted a stack and nobody has written down which: the next one goes on with that
//! stack, of a cluster as of a node group, and in the end no stack is left that nobody knows of.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::heat::Heat;
use magnum_tests::heat_cloud;
use magnum_tests::heat_deployment::HeatDeployment;
use magnum_tests::heat_stacks::Stacks;
use magnum_tests::process::Program;
use magnum_tests::rest::Rest;
use magnum_tests::wait;
use serde_json::{Value, json};

/// A cluster of two nodes has some 80 resources in nested stacks.
const PATIENCE: Duration = Duration::from_secs(240);

/// A conductor that is killed at `point`, when `request` has led it there; the operation's next one is left to `heir`.
async fn killed_at(
    point: &str,
    heated: &mut HeatDeployment,
    request: impl AsyncFnOnce() -> Result<()>,
) -> Result<()> {
    let deployment = &heated.deployment;
    let file = deployment.folder.join(point.replace('/', "-"));
    heated.conductor.terminate(PATIENCE).await?;
    let doomed = deployment.conductor_launch("doomed").await?;
    let mut doomed: Program = doomed
        .env("MAGNUM_TEST_CRASH_POINT", point)
        .env("MAGNUM_TEST_CRASH_POINT_FILE", &file)
        .start()
        .await?;
    request().await?;
    wait::until("the driver to have returned", PATIENCE, async || {
        let reached = file.with_extension("reached").exists();
        reached.then_some(()).context("not yet")
    })
    .await?;
    doomed.kill().await?;
    heated.conductor = deployment.conductor("heir").await?;
    Ok(())
}

/// The last operation of this kind, once Heat was asked; it took more than one attempt.
async fn asked_again(heated: &HeatDeployment, kind: &str) -> Result<()> {
    wait::until(&format!("the {kind} to be taken again"), PATIENCE, async || {
        let operations = heated.deployment.operations().await?;
        let operation = operations.into_iter().find(|one| one["kind"] == kind);
        let operation = operation.context("no operation")?;
        ensure!(operation["attempts"].as_u64() > Some(1), "{operation}");
        let asked = ["observing", "succeeded"].map(Value::from);
        ensure!(asked.contains(&operation["state"]), "{operation}");
        Ok(())
    })
    .await
}

/// The ids of the project's stacks, which are those that the cluster and its groups name.
async fn stacks_known(stacks: &Stacks, rest: &Rest, cluster: &str) -> Result<Vec<String>> {
    let mut listed: Vec<String> = stacks.list().await?.into_iter().map(|one| one.id).collect();
    listed.sort();
    let groups = rest
        .get(&format!("/clusters/{cluster}/nodegroups"))
        .await?
        .expect(200)?;
    let groups = groups["nodegroups"].as_array().context("node groups")?;
    let mut known: Vec<String> = groups
        .iter()
        .filter_map(|group| group["stack_id"].as_str().map(str::to_owned))
        .collect();
    known.sort();
    known.dedup();
    ensure!(
        listed == known,
        "Heat has {listed:?}, the cluster's groups {known:?}"
    );
    Ok(listed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_that_an_interrupted_attempt_has_made_is_gone_on_with() -> Result<()> {
    let _turn = Heat::turn().await?;
    let mut heated = HeatDeployment::start().await?;
    heated.deployment.set("conductor", "operation_lease", 3);
    heated.deployment.set("conductor", "operation_retry_initial", 0.2);
    let owner = heated.cloud.person().await?;
    let rest = heated.rest(&owner).await?;
    let stacks = heated.cloud.heat.stacks(&owner).await?;
    let template = heat_cloud::template("coreos");
    let template = rest.post("/clustertemplates", &template).await?.expect(201)?;
    let template = template["uuid"].as_str().context("a uuid")?.to_owned();

    let mut cluster = String::new();
    killed_at(
        "cluster_create/create_cluster/after_effect",
        &mut heated,
        async || {
            cluster = rest.create_cluster(&template, "heated", json!({})).await?;
            Ok(())
        },
    )
    .await?;
    let row = rest.get(&format!("/clusters/{cluster}")).await?.expect(200)?;
    ensure!(row["stack_id"].is_null(), "it was written down: {row}");
    asked_again(&heated, "cluster_create").await?;
    rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
    let one = stacks_known(&stacks, &rest, &cluster).await?;
    ensure!(one.len() == 1, "{one:?}");

    let pool = json!({"name": "pool", "node_count": 1});
    killed_at(
        "nodegroup_create/create_nodegroup/after_effect",
        &mut heated,
        async || {
            let path = format!("/clusters/{cluster}/nodegroups");
            rest.post(&path, &pool).await?.expect(202).map(drop)
        },
    )
    .await?;
    asked_again(&heated, "nodegroup_create").await?;
    rest.wait_status(&cluster, "UPDATE_COMPLETE", PATIENCE).await?;
    let two = stacks_known(&stacks, &rest, &cluster).await?;
    ensure!(two.len() == 2 && two.contains(&one[0]), "{two:?} after {one:?}");

    rest.delete(&format!("/clusters/{cluster}")).await?.expect(204)?;
    rest.wait_gone(&cluster, PATIENCE).await?;
    let left = stacks.list().await?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}
