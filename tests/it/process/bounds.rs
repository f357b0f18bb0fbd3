//! A bound of a node group that was set holds for the request after it, also while the cluster is at work.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use serde_json::json;

use crate::conductor::example_drivers::install_disk;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_that_was_set_holds_for_the_request_after_it() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    install_disk(&mut deployment)?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let rest = &api.rest;
    let template = rest.create_template_for("t", "disk").await?;
    let labels = json!({"disk_delay_ms": "500"});
    let cluster = rest.create_cluster(&template, "c", labels).await?;
    rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
    let group = format!("/clusters/{cluster}/nodegroups/default-worker");
    let resize = format!("/clusters/{cluster}/actions/resize");
    // The first on an idle cluster, the second while what came before it is at work or waits.
    for (most, too_many) in [(4, 5), (3, 4)] {
        let bound = json!([{"op": "replace", "path": "/max_node_count", "value": most}]);
        rest.patch(&group, &bound).await?.expect(202)?;
        let refused = rest.post(&resize, &json!({"node_count": too_many})).await?;
        ensure!(
            refused.status.as_u16() == 400 && refused.detail().contains(&most.to_string()),
            "{refused:?}"
        );
        rest.post(&resize, &json!({"node_count": 2})).await?.expect(202)?;
    }
    deployment.settled(PATIENCE).await?;
    Ok(())
}
