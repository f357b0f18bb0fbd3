//! The tests' Heat is one that a Heat driver can work with: stacks have addresses without machines, and a cluster's trustee
//! sees and changes what its owner made.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_tests::heat::Heat;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(90);

/// So many machines, with their addresses.
fn template() -> Value {
    json!({
        "heat_template_version": "2018-08-31",
        "parameters": {"workers": {"type": "number"}, "flavor": {"type": "string", "default": "m1.small"}},
        "resources": {
            "nodes": {"type": "OS::Heat::ResourceGroup", "properties": {
                "count": {"get_param": "workers"},
                "resource_def": {"type": "OS::Nova::Server", "properties": {"flavor": {"get_param": "flavor"}}}}},
            // Nothing will ever signal it.
            "ready": {"type": "OS::Heat::WaitCondition", "properties": {"handle": "none", "timeout": 600}}},
        "outputs": {"addresses": {"value": {"get_attr": ["nodes", "first_address"]}}}
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_of_machines_is_made_changed_and_deleted_without_any_machine() -> Result<()> {
    let heat = Heat::shared().await?;
    let owner = heat.person().await?;
    let stacks = heat.stacks(&owner).await?;
    let undeclared = json!({"workers": 2, "unheard_of": Value::Null});
    let refused = stacks.create("small", &template(), &undeclared).await;
    ensure!(
        refused.as_ref().is_err_and(|why| why.to_string().contains("400")),
        "{refused:?}"
    );
    let id = stacks
        .create("small", &template(), &json!({"workers": 2}))
        .await?;
    let made = stacks.wait_status(&id, "CREATE_COMPLETE", PATIENCE).await?;
    ensure!(made.parameters["workers"] == "2", "{made:?}");
    ensure!(made.parameters["flavor"] == "m1.small", "{made:?}");
    let addresses = made.output("addresses")?.clone();
    ensure!(
        addresses.as_array().is_some_and(|all| all.len() == 2),
        "{addresses}"
    );
    ensure!(
        addresses[0].as_str().is_some_and(|one| one.starts_with("10.")),
        "{addresses}"
    );
    let listed = stacks.list().await?;
    ensure!(listed.len() == 1 && listed[0].id == id, "{listed:?}");

    stacks.update(&made, &json!({"workers": 3})).await?;
    let changed = stacks.wait_status(&id, "UPDATE_COMPLETE", PATIENCE).await?;
    let more = changed.output("addresses")?;
    ensure!(more.as_array().is_some_and(|all| all.len() == 3), "{more}");
    ensure!(
        more[0] == addresses[0],
        "an address has changed: {addresses}, {more}"
    );

    stacks.delete(&changed).await?;
    stacks.wait_status(&id, "DELETE_COMPLETE", PATIENCE).await?;
    let left = stacks.list().await?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trustee_changes_and_deletes_what_the_trustor_made_and_makes_nothing() -> Result<()> {
    let heat = Heat::shared().await?;
    let owner = heat.person().await?;
    let stacks = heat.stacks(&owner).await?;
    let id = stacks
        .create("trusted", &template(), &json!({"workers": 1}))
        .await?;
    stacks.wait_status(&id, "CREATE_COMPLETE", PATIENCE).await?;

    let roles = ["member", "heat_stack_owner"];
    let token = heat.people.trustee_token(&owner, &heat.trustees, &roles).await?;
    let trustee = heat.stacks_with(&owner, &token);
    // Heat makes a trust of its own for each stack, which a trust does not allow.
    let created = trustee
        .create("theirs", &template(), &json!({"workers": 1}))
        .await;
    ensure!(created.is_err(), "a trustee made {created:?}");
    let seen = trustee.show(&id).await?;
    trustee.update(&seen, &json!({"workers": 2})).await?;
    trustee.wait_status(&id, "UPDATE_COMPLETE", PATIENCE).await?;
    trustee.delete(&seen).await?;
    trustee.wait_status(&id, "DELETE_COMPLETE", PATIENCE).await?;

    let stranger = heat.stacks_with(&owner, &heat.people.token(&heat.person().await?).await?);
    let shown = stranger.show(&id).await;
    ensure!(shown.is_err(), "another project's user sees it: {shown:?}");
    Ok(())
}
