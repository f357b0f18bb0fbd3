//! `[conductor] message_authentication = require`: our programs work with each other, and Python's client, which cannot sign,
//! changes nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::process::Launch;
use magnum_tests::wait;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);

fn require(deployment: &mut Deployment) -> Result<()> {
    let file = deployment.folder.join("messages.key");
    fs::write(&file, STANDARD.encode([7; 32]))?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    deployment.set("conductor", "message_key_file", file.display());
    deployment.set("conductor", "message_authentication", "require");
    Ok(())
}

async fn letters(deployment: &Deployment, args: &[&str]) -> Result<String> {
    Launch::program("magnum-conductor")?
        .config(&deployment.config_file("dead-letters")?)
        .args([&["dead-letters"], args].concat())
        .output()
        .await
}

/// The only dead letter, which has to be there soon.
async fn the_letter(deployment: &Deployment) -> Result<Value> {
    wait::until("the dead letter", SOON, async || {
        let list: Value = serde_json::from_str(&letters(deployment, &["list", "--json"]).await?)?;
        let list = list.as_array().context("a list")?;
        ensure!(list.len() == 1, "{list:?}");
        Ok::<_, anyhow::Error>(list[0].clone())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_changes_nothing_and_an_operator_can_let_his_message_through() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    require(&mut deployment)?;
    let conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("small").await?;
    let cluster = api.rest.create_cluster(&template, "ours", json!({})).await?;
    api.rest.wait_status(&cluster, "CREATE_COMPLETE", SOON).await?;
    let before = deployment.settled(SOON).await?.len();

    let config = deployment.config_file("peer")?.display().to_string();
    let mut stranger = OsloPeer::start("oslo_client.py", &[&config]).await?;
    let context = json!({"is_admin": true, "all_tenants": true, "user_id": "u", "project_id": "p"});
    let cast =
        json!({"do": "cast", "method": "cluster_delete", "args": {"uuid": cluster}, "context": context});
    stranger.ask(cast).await??;
    let letter = the_letter(&deployment).await?;
    ensure!(
        letter["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("is not signed")),
        "{letter}"
    );
    ensure!(letter["method"] == "cluster_delete", "{letter}");
    ensure!(
        deployment.settled(SOON).await?.len() == before,
        "an operation came of it"
    );
    ensure!(api.rest.status(&cluster).await?.as_deref() == Some("CREATE_COMPLETE"));
    ensure!(conductor.log().contains("a message was refused, unread"));

    // Put back as it is, it comes again; signed by an operator, it is carried out.
    letters(&deployment, &["requeue", "--all"]).await?;
    let again = the_letter(&deployment).await?;
    ensure!(again["id"] != letter["id"], "a new copy");
    let told = letters(&deployment, &["requeue", "--all", "--sign"]).await?;
    ensure!(told.starts_with("1 put back"), "{told}");
    wait::until("the deletion", SOON, async || {
        let operations = deployment.operations().await?;
        ensure!(
            operations
                .iter()
                .any(|one| one["kind"] == "cluster_delete" && one["state"] == "succeeded"),
            "{operations:?}"
        );
        Ok::<_, anyhow::Error>(())
    })
    .await
}
