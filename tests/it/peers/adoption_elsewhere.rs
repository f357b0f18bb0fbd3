//! PostgreSQL and SQLite, for which Magnum's own `magnum-db-manage` fails: the tables that ours makes there serve
//! Magnum's real classes, and rows of either side serve the other.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::Deployment;
use magnum_tests::python_magnum::{ANNA, NORTH, PythonMagnum};
use magnum_tests::{Backend, TestDatabase, rabbitmq};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(90);

async fn magnums_classes_work_on_our_tables(backend: Backend) -> Result<()> {
    let deployment = Deployment::on(TestDatabase::empty(backend).await?, rabbitmq::vhost().await?).await?;
    let python = PythonMagnum::beside(&deployment).await?;
    let version = python.manage(&["version"]).await?;
    ensure!(version.contains("b3e1cf4a2d5e"), "{version}");
    // At the head there is nothing to do, so not even Magnum's own upgrade can fail.
    python.manage(&["upgrade"]).await?;

    let mut rows = python.rows().await?;
    let template = rows
        .ask(json!({"do": "make_template", "name": "theirs"}))
        .await??;
    let template = template.as_str().context("template")?;
    let mut theirs = Vec::new();
    for name in ["kept", "changed", "removed"] {
        let made = rows
            .ask(json!({"do": "make_cluster", "name": name, "template": template}))
            .await??;
        theirs.push(made.as_str().context("uuid")?.to_owned());
    }
    rows.ask(json!({"do": "make_others", "cluster": theirs[0]}))
        .await??;

    let mut conductor = deployment.conductor("ours").await?;
    let api = deployment.api().await?;
    let rest = api.rest.as_somebody(NORTH, ANNA);
    let shown = rest.get(&format!("/clusters/{}", theirs[0])).await?.expect(200)?;
    ensure!(
        shown["labels"] == json!({"tier": "gold"}) && shown["node_count"] == 2,
        "{shown}"
    );
    let shown = rest
        .get(&format!("/clustertemplates/{template}"))
        .await?
        .expect(200)?;
    ensure!(shown["labels"]["note"] == "UTF-8: żółć 雲 🚀", "{shown}");
    rest.resize(&theirs[0], 3).await?.expect(202)?;
    rest.wait_status(&theirs[0], "UPDATE_COMPLETE", PATIENCE).await?;
    let ours = rest.create_cluster(template, "ours", json!({"ø": "🚀"})).await?;
    rest.wait_status(&ours, "CREATE_COMPLETE", PATIENCE).await?;
    rest.delete(&format!("/clusters/{}", theirs[2]))
        .await?
        .expect(204)?;
    rest.wait_gone(&theirs[2], PATIENCE).await?;
    deployment.settled(PATIENCE).await?;

    let seen = rows.ask(json!({"do": "read"})).await??;
    let clusters = seen["clusters"].as_array().context("clusters")?;
    let statuses: Vec<_> = clusters
        .iter()
        .map(|one| (one["name"].as_str(), one["status"].as_str()))
        .collect();
    let wanted = [
        (Some("kept"), Some("UPDATE_COMPLETE")),
        (Some("changed"), Some("CREATE_COMPLETE")),
        (Some("ours"), Some("CREATE_COMPLETE")),
    ];
    ensure!(statuses == wanted, "{statuses:?}");
    ensure!(clusters[2]["labels"] == json!({"ø": "🚀"}), "{}", clusters[2]);
    let groups = seen["node_groups"].as_array().context("node groups")?;
    let of = |cluster: &str| groups.iter().filter(|one| one["cluster_id"] == cluster).count();
    ensure!(
        of(&theirs[0]) == 2 && of(&ours) == 2 && groups.len() == 6,
        "{groups:#?}"
    );
    ensure!(
        groups[1]["node_count"] == 3 && groups[1]["node_taints"][0]["key"] == "gpu",
        "{}",
        groups[1]
    );
    ensure!(
        seen["quotas"][0]["hard_limit"] == 10 && seen["federations"][0]["name"] == "fed",
        "{seen}"
    );
    let hosts = seen["services"].as_array().context("services")?;
    ensure!(hosts.iter().any(|one| one["host"] == "ours"), "{hosts:#?}");

    // Magnum reads before it writes in one transaction, and so does not wait its turn on SQLite when ours writes.
    conductor.terminate(PATIENCE).await?;
    for cluster in [&theirs[1], &ours] {
        rows.ask(json!({"do": "change", "cluster": cluster})).await??;
        let shown = rest.get(&format!("/clusters/{cluster}")).await?.expect(200)?;
        ensure!(shown["health_status_reason"]["said"] == "by Python", "{shown}");
        rows.ask(json!({"do": "remove", "cluster": cluster})).await??;
        ensure!(rest.status(cluster).await?.is_none(), "{cluster} is still there");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn magnums_classes_work_on_our_tables_on_postgres() -> Result<()> {
    magnums_classes_work_on_our_tables(Backend::Postgres).await
}

#[tokio::test(flavor = "multi_thread")]
async fn magnums_classes_work_on_our_tables_on_sqlite() -> Result<()> {
    magnums_classes_work_on_our_tables(Backend::Sqlite).await
}
