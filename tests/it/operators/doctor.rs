//! `magnum-conductor doctor`: a sound installation is called that; what is stuck is named with why and what to do.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::deployment::Deployment;
use magnum_tests::process::Launch;
use magnum_tests::wait;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// What it says, and its exit code.
async fn ask(deployment: &Deployment) -> Result<(Vec<Value>, i32)> {
    let finished = Launch::program("magnum-conductor")?
        .args(["doctor", "--json"])
        .config(&deployment.config_file("doctor")?)
        .finish()
        .await?;
    let told: Value = serde_json::from_str(&finished.stdout).with_context(|| format!("{finished:?}"))?;
    let remarks = told["remarks"].as_array().context("remarks")?.clone();
    Ok((remarks, finished.status.code().context("it was killed")?))
}

/// Waits until a remark about this has all of the words, and returns it.
async fn says(deployment: &Deployment, about: &str, level: &str, words: &[&str]) -> Result<Value> {
    wait::until(&format!("{about}: {words:?}"), PATIENCE, async || {
        let (remarks, code) = ask(deployment).await?;
        let found = remarks.iter().find(|remark| {
            let text = format!("{} {}", remark["says"], remark["next"]);
            remark["about"] == about
                && remark["level"] == level
                && words.iter().all(|word| text.contains(word))
        });
        ensure!(code == if level == "BROKEN" { 2 } else { code }, "{code}");
        found.cloned().with_context(|| format!("{remarks:#?}"))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_installation_is_well_and_what_is_stuck_is_named() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    says(
        &deployment,
        "conductors",
        "BROKEN",
        &["none is up", "start magnum-conductor"],
    )
    .await?;
    says(&deployment, "broker", "BROKEN", &["no queue of requests"]).await?;

    let mut conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("t").await?;
    let cluster = api.rest.create_cluster(&template, "sound", json!({})).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    wait::until("all to be well", PATIENCE, async || {
        let (remarks, code) = ask(&deployment).await?;
        ensure!(
            code == 0 && remarks.iter().all(|remark| remark["level"] == "ok"),
            "{remarks:#?}"
        );
        Ok::<_, anyhow::Error>(())
    })
    .await?;

    // What is tried again, and what failed.
    let labels = json!({"scripted_create": "transient:99"});
    api.rest.create_cluster(&template, "again", labels).await?;
    let remark = says(
        &deployment,
        "again",
        "look",
        &["cluster_create has failed", "is tried again in"],
    )
    .await?;
    let id = remark["operation"].as_str().context("an operation")?;
    ensure!(
        remark["next"].as_str().is_some_and(|next| next.contains(id)),
        "{remark}"
    );
    let labels = json!({"scripted_create": "permanent"});
    let failed = api.rest.create_cluster(&template, "failed", labels).await?;
    api.rest.wait_status(&failed, "CREATE_FAILED", PATIENCE).await?;
    says(
        &deployment,
        "failed",
        "look",
        &["cluster_create failed:", "operations retry"],
    )
    .await?;

    // Nobody works any more.
    conductor.kill().await?;
    api.rest.create_cluster(&template, "waiting", json!({})).await?;
    says(
        &deployment,
        "broker",
        "BROKEN",
        &["1 requests wait and nobody takes them"],
    )
    .await?;

    // The text for people names the database and no password.
    let text = Launch::program("magnum-conductor")?
        .args(["doctor"])
        .config(&deployment.config_file("doctor")?)
        .finish()
        .await?
        .stdout;
    ensure!(text.contains("-> start magnum-conductor"), "{text}");

    let line = ChaosProxy::start(deployment.database.address()?).await?;
    line.cut();
    deployment.connect_via(None, Some(line.address()));
    says(&deployment, "database", "BROKEN", &["[database] connection"]).await?;
    Ok(())
}
