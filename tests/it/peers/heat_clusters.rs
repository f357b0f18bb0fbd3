//! Magnum 22 with the Heat driver that it brings, API and conductor, in the tests' real cloud: what our conductor is compared
//! with when it runs the same driver.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::heat_cloud;
use magnum_tests::heat_magnum::HeatMagnum;
use reqwest::Method;
use serde_json::{Value, json};

/// A cluster of two nodes has some 80 resources in nested stacks, and Magnum looks at it every ten seconds.
const PATIENCE: Duration = Duration::from_secs(240);

/// The users that were made for a cluster's machines.
async fn trustees(magnum: &HeatMagnum, cluster: &str) -> Result<usize> {
    let heat = magnum.cloud.heat;
    let path = format!("/users?domain_id={}", heat.trustees.id);
    let found = heat.people.administrate(Method::GET, &path, Value::Null).await?;
    let users = found["users"].as_array().context("users")?;
    let names = users.iter().filter_map(|user| user["name"].as_str());
    Ok(names.filter(|name| name.starts_with(cluster)).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn magnum_22_makes_a_cluster_as_a_stack_with_a_trustee_and_deletes_all_three() -> Result<()> {
    let magnum = HeatMagnum::start().await?;
    let owner = magnum.cloud.person().await?;
    let rest = magnum.rest(&owner).await?;
    let template = heat_cloud::template("coreos");
    let template = rest.post("/clustertemplates", &template).await?.expect(201)?;
    let template = template["uuid"].as_str().context("a uuid")?;
    let cluster = rest.create_cluster(template, "heated", json!({})).await?;
    let made = rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;

    let stacks = magnum.cloud.heat.stacks(&owner).await?;
    let stack = made["stack_id"].as_str().context("a stack")?;
    let stack = stacks.show(stack).await?;
    ensure!(stack.status == "CREATE_COMPLETE", "{stack:?}");
    ensure!(stack.name.starts_with("heated-"), "{stack:?}");
    for (parameter, value) in [
        ("cluster_uuid", cluster.as_str()),
        ("project_id", &owner.project_id),
        ("number_of_minions", "1"),
        ("minion_flavor", "m1.small"),
        ("master_flavor", "m1.medium"),
        ("magnum_url", magnum.api.rest.base()),
        ("trustee_domain_id", &magnum.cloud.heat.trustees.id),
    ] {
        ensure!(stack.parameters[parameter] == value, "{parameter}: {stack:?}");
    }
    ensure!(made["node_addresses"] == *stack.output("kube_minions")?, "{made}");
    ensure!(
        made["master_addresses"] == *stack.output("kube_masters")?,
        "{made}"
    );
    let address = stack.output("api_address")?.as_str().context("an address")?;
    ensure!(made["api_address"] == format!("https://{address}:6443"), "{made}");
    ensure!(trustees(&magnum, &cluster).await? == 1, "no trustee");

    rest.delete(&format!("/clusters/{cluster}")).await?.expect(204)?;
    rest.wait_gone(&cluster, PATIENCE).await?;
    let gone = stacks.show(&stack.id).await?;
    ensure!(gone.status == "DELETE_COMPLETE", "{gone:?}");
    ensure!(trustees(&magnum, &cluster).await? == 0, "the trustee is left");
    Ok(())
}
