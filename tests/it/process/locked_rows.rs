//! Somebody holds a cluster's row: what is asked of this cluster waits in the order in which it was asked, unacknowledged,
//! and what others ask is recorded and done meanwhile.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::row_lock::RowLock;
use serde_json::json;

use crate::conductor::example_drivers::install_disk;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_others_go_on_while_a_clusters_row_is_locked() -> Result<()> {
    for backend in [Backend::Mariadb, Backend::Postgres] {
        with(backend).await?;
    }
    Ok(())
}

async fn with(backend: Backend) -> Result<()> {
    let mut deployment = Deployment::new(backend).await?;
    install_disk(&mut deployment)?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let rest = &api.rest;
    let template = rest.create_template_for("t", "disk").await?;
    let held = rest.create_cluster(&template, "held", json!({})).await?;
    rest.wait_status(&held, "CREATE_COMPLETE", PATIENCE).await?;

    let lock = RowLock::take(&deployment.database, "cluster", &format!("uuid = '{held}'")).await?;
    rest.resize(&held, 2).await?.expect(202)?;
    rest.delete(&format!("/clusters/{held}")).await?.expect(204)?;
    for number in 0..3 {
        let other = rest
            .create_cluster(&template, &format!("other-{number}"), json!({}))
            .await?;
        rest.wait_status(&other, "CREATE_COMPLETE", PATIENCE).await?;
    }
    let of_held = async || {
        let mut operations = deployment.operations().await?;
        operations.retain(|one| one["cluster"] == held.as_str());
        operations.reverse();
        Ok::<_, anyhow::Error>(operations)
    };
    let recorded = of_held().await?;
    ensure!(recorded.len() == 1, "more than the create: {recorded:?}");
    drop(lock);
    rest.wait_gone(&held, PATIENCE).await?;
    let recorded = of_held().await?;
    let asked: Vec<_> = recorded.iter().map(|one| (&one["kind"], &one["state"])).collect();
    ensure!(
        asked[1].0 == "cluster_update" && asked[1].1 != "refused" && asked[2].0 == "cluster_delete",
        "in the order in which it was asked: {asked:?}"
    );
    deployment.settled(PATIENCE).await?;
    Ok(())
}
