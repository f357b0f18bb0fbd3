//! `magnum-conductor operations list`: the operations that are meant, once and again and again.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::process::{Finished, Launch};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

async fn list(deployment: &Deployment, args: &[&str]) -> Result<Finished> {
    Launch::program("magnum-conductor")?
        .args(["operations", "list"])
        .args(args)
        .config(&deployment.config_file("list")?)
        .finish()
        .await
}

/// The kinds of the operations that are listed, newest first.
async fn kinds(deployment: &Deployment, args: &[&str]) -> Result<Vec<String>> {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    let finished = list(deployment, &args).await?;
    ensure!(finished.status.success(), "{}", finished.stderr);
    let told: Value = serde_json::from_str(&finished.stdout)?;
    let rows = told.as_array().context("a list")?;
    let kinds = rows
        .iter()
        .map(|row| row["kind"].as_str().unwrap_or_default().to_owned());
    Ok(kinds.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_are_listed_by_cluster_kind_project_state_and_time() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("t").await?;
    let alpha = api.rest.create_cluster(&template, "alpha", json!({})).await?;
    let beta = api.rest.create_cluster(&template, "beta", json!({})).await?;
    for cluster in [&alpha, &beta] {
        api.rest.wait_status(cluster, "CREATE_COMPLETE", PATIENCE).await?;
    }
    let watching = Launch::program("magnum-conductor")?
        .args(["operations", "list", "--watch", "--cluster", "beta"])
        .config(&deployment.config_file("watch")?)
        .spawn()?;
    watching.wait_log("cluster_create", PATIENCE).await?;
    api.rest.delete(&format!("/clusters/{beta}")).await?.expect(204)?;
    deployment.settled(PATIENCE).await?;
    watching.wait_log("cluster_delete", PATIENCE).await?;
    ensure!(watching.ended()?.is_none(), "it goes on");

    let create = ["cluster_create"];
    let both = ["cluster_delete", "cluster_create", "cluster_create"];
    for (args, expected) in [
        (&["--cluster", "alpha"][..], &create[..]),
        (&["--cluster", &alpha], &create),
        (&["--cluster", &beta], &both[..2]),
        (&["--kind", "cluster_delete"], &both[..1]),
        (&["--project", "noauth"], &both),
        (&["--project", "another"], &[]),
        (&["--since", "1h"], &both),
        (&["--since", "2000-01-01 00:00:00", "--limit", "1"], &both[..1]),
        (&["--since", "0s"], &[]),
        (&["--state", "failed"], &[]),
    ] {
        ensure!(kinds(&deployment, args).await? == expected, "{args:?}");
    }
    let table = list(&deployment, &[]).await?.stdout;
    ensure!(table.contains(" alpha "), "{table}");
    ensure!(table.contains(&beta), "of a cluster that is gone: {table}");

    for (args, words) in [
        (["--cluster", "beta"], "listed by its uuid"),
        (["--kind", "create"], "use one of cluster_create"),
        (["--since", "yesterday"], "2h30m"),
    ] {
        let finished = list(&deployment, &args).await?;
        ensure!(!finished.status.success(), "{args:?}");
        ensure!(finished.stderr.contains(words), "{args:?}: {}", finished.stderr);
    }
    Ok(())
}
