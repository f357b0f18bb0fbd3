//! A Magnum 22 with clusters in Heat is moved: its services stop, `magnum-db-manage upgrade` brings its database to our
//! tables, and our conductor with its driver goes on with its clusters.
//!
//! The same request given to both is the same stack and the same row: that is compared on the way.

mod likeness;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::heat::Heat;
use magnum_tests::heat_cloud;
use magnum_tests::heat_deployment::HeatDeployment;
use magnum_tests::heat_magnum::HeatMagnum;
use magnum_tests::{probe, wait};
use serde_json::{Value, json};

use self::likeness::{Eyes, alike};

/// A cluster of two nodes has some 80 resources in nested stacks.
const PATIENCE: Duration = Duration::from_secs(240);

/// What differs between what Python's Magnum 22 and ours make of a request, and why.
const DIFFERENCES: &[(&str, &str)] = &[
    ("/groups/default-master/min_node_count", NO_MINIMUM),
    ("/groups/default-worker/min_node_count", NO_MINIMUM),
    ("/groups/default-master/node_labels", SINCE_23),
    ("/groups/default-worker/node_labels", SINCE_23),
    ("/groups/default-master/node_taints", SINCE_23),
    ("/groups/default-worker/node_taints", SINCE_23),
];
const NO_MINIMUM: &str = "Python leaves it empty, which its objects read as the 0 that is written here";
const SINCE_23: &str = "a column of Magnum 23, empty in rows of 22; empty and none are read alike";

#[tokio::test(flavor = "multi_thread")]
async fn clusters_of_magnum_22_in_heat_go_on_here_and_new_ones_are_made_alike() -> Result<()> {
    let _turn = Heat::turn().await?;
    let mut python = HeatMagnum::start().await?;
    let cloud = python.cloud;
    let owner = cloud.person().await?;
    let rest = python.rest(&owner).await?;
    let template = heat_cloud::template("coreos");
    let template = rest.post("/clustertemplates", &template).await?.expect(201)?;
    let template = template["uuid"].as_str().context("a uuid")?.to_owned();
    let theirs = rest.create_cluster(&template, "heated", json!({})).await?;
    let made = rest.wait_status(&theirs, "CREATE_COMPLETE", PATIENCE).await?;
    python.conductor.kill_group().await?;
    python.api.program.kill_group().await?;

    let heated = HeatDeployment::on(python.database.clone()).await?;
    let rest = heated.rest(&owner).await?;
    let shown = rest.get(&format!("/clusters/{theirs}")).await?.expect(200)?;
    for field in [
        "status",
        "api_address",
        "node_addresses",
        "master_addresses",
        "coe_version",
    ] {
        ensure!(shown[field] == made[field], "{field}: {shown} {made}");
    }
    let (stacks, domain) = (cloud.heat.stacks(&owner).await?, cloud.trustee_domain());
    let db = probe::open(&heated.deployment.database).await?;
    let eyes = Eyes {
        db: &db,
        stacks: &stacks,
        domain: &domain,
    };
    let by_python = eyes.look(&theirs, python.api.rest.base()).await?;

    // One after the other: the engine has its hands full with one cluster.
    let ours = rest.create_cluster(&template, "heated", json!({})).await?;
    rest.wait_status(&ours, "CREATE_COMPLETE", PATIENCE).await?;
    rest.resize(&theirs, 2).await?.expect(202)?;
    let resized = rest.wait_status(&theirs, "UPDATE_COMPLETE", PATIENCE).await?;
    let stack = stacks.show(made["stack_id"].as_str().context("a stack")?).await?;
    ensure!(stack.parameters["number_of_minions"] == "2", "{stack:?}");
    ensure!(
        resized["node_addresses"] == *stack.output("kube_minions")? && resized["node_count"] == 2,
        "{resized}"
    );
    alike(
        &by_python,
        &eyes.look(&ours, heated.api.rest.base()).await?,
        DIFFERENCES,
    )?;

    for cluster in [&theirs, &ours] {
        rest.delete(&format!("/clusters/{cluster}")).await?.expect(204)?;
    }
    heated.deployment.settled(PATIENCE).await?;
    let listed = rest.get("/clusters").await?.expect(200)?;
    ensure!(listed["clusters"] == json!([]), "{listed}");
    let left = stacks.list().await?;
    ensure!(left.is_empty(), "{left:?}");
    // Removed after the clusters, which need not wait for Keystone.
    wait::until("the users and the trusts to be removed", PATIENCE, async || {
        for cluster in [&theirs, &ours] {
            let users = domain.users_of(cluster).await?;
            ensure!(users.is_empty(), "{users:?}");
        }
        let trusts: Vec<Value> = domain.trusts_of(&owner).await?;
        ensure!(trusts.is_empty(), "{trusts:?}");
        Ok(())
    })
    .await
}
