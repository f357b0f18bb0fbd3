//! A conductor is killed when the driver of a create has done its work and nobody has written that down: the next one
//! repeats the create, with the real package.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::Deployment;
use magnum_tests::plugin_requests::{from_person, new_object};
use magnum_tests::plugin_world::{PluginWorld, adopted};
use magnum_tests::raw_rpc::{self, RawRpc};
use magnum_tests::{Backend, probe, wait};
use serde_json::{Value, json};

use super::case;
use super::rows::{self, CLUSTER, Rows};

const PATIENCE: Duration = Duration::from_secs(120);
const POINT: &str = "cluster_create/create_cluster/after_effect";

/// How many of the steps are such requests.
fn count(steps: &[Value], place: &str, method: &str, path: &str) -> usize {
    let is_one = |step: &&Value| {
        let request = step[place]["request"].as_str();
        request
            .and_then(|request| request.split_once(' '))
            .is_some_and(|(verb, at)| verb == method && at.contains(path))
    };
    steps.iter().filter(is_one).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_repeated_after_a_kill_makes_no_second_cluster() -> Result<()> {
    let case = case::titled("cluster-api/create/minimal")?;
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    let mut world = PluginWorld::start(&mut deployment).await?;
    deployment.set("drivers", "driver_path", adopted(&world).await?.display());
    deployment.set(
        "python",
        "runtime_directory",
        deployment.folder.display().to_string(),
    );
    deployment.set("conductor", "operation_lease", 3);
    deployment.set("conductor", "operation_retry_initial", 0.2);
    deployment.set("conductor", "status_poll_interval", 3600);
    let file = deployment.folder.join("crash-point");
    let doomed = deployment.conductor_launch("doomed").await?;
    let mut doomed = doomed
        .env("MAGNUM_TEST_CRASH_POINT", POINT)
        .env("MAGNUM_TEST_CRASH_POINT_FILE", &file)
        .start()
        .await?;
    let db = probe::open(&deployment.database).await?;
    world.reset().await?;
    let rows = Rows::given(&case, &case.driver, None)?;
    rows.put_templates(&db).await?;
    let args = json!({"cluster": new_object(&rows.cluster), "master_count": 1, "node_count": 1, "create_timeout": 60});
    let request = raw_rpc::request("cluster_create", args);
    let rpc = RawRpc::connect(&deployment.vhost).await?;
    rpc.cast(&from_person(request, &world.urls.cloud, "alice"))
        .await?;
    wait::until("the driver to have returned", PATIENCE, async || {
        let reached = file.with_extension("reached").exists();
        reached.then_some(()).context("not yet")
    })
    .await?;
    doomed.kill().await?;
    let stack = rows::row(&db).await?.and_then(|cluster| cluster.stack_id);
    ensure!(stack.is_some(), "the driver saves it before it begins");

    let _heir = deployment.conductor("heir").await?;
    let operation = wait::until("the create to be taken", PATIENCE, async || {
        let operations = deployment.operations().await?;
        let create = operations.into_iter().find(|one| one["cluster"] == CLUSTER);
        let create = create.context("no operation")?;
        ensure!(create["state"] == "observing", "{create}");
        Ok::<_, anyhow::Error>(create)
    })
    .await?;
    ensure!(operation["attempts"].as_u64() > Some(1), "{operation}");
    let again = rows::row(&db).await?.and_then(|cluster| cluster.stack_id);
    ensure!(again == stack, "{again:?} after {stack:?}");

    let stacks: Vec<String> = stack.into_iter().collect();
    let effects = world.effects(&stacks, &std::collections::BTreeMap::new()).await?;
    let steps = &effects.steps;
    let clusters = count(steps, "kubernetes", "POST", "/namespaces/magnum-system/clusters");
    ensure!(clusters == 1, "{clusters} clusters were made");
    let (asked, removed) = (
        count(steps, "cloud", "POST", "/application_credentials"),
        count(steps, "cloud", "DELETE", "/application_credentials/"),
    );
    // The first, the one that is refused, and the one after the repair.
    ensure!((asked, removed) == (3, 1), "{asked} asked for, {removed} removed");
    Ok(())
}
