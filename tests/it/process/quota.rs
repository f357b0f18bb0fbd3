//! A quota holds when many ask at the same time at several APIs, whether conductors run or not: what was promised with
//! a 202 comes, and not one more.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::{TestDatabase, on_every_database, rabbitmq, wait};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(120);
const LIMIT: usize = 5;
const REQUESTS: usize = 40;

/// Asks for clusters at all APIs in turn, all at once. Returns those that were promised; every other one has to be
/// refused for the quota.
async fn ask(apis: &[Api], template: &str, round: &str) -> Result<Vec<String>> {
    let asking = (0..REQUESTS).map(async |number| {
        let rest = &apis[number % apis.len()].rest;
        rest.ask_for_cluster(template, &format!("{round}-{number}"), json!({}))
            .await
    });
    let mut promised = Vec::new();
    for answer in try_join_all(asking).await? {
        if answer.status.as_u16() == 202 {
            promised.push(answer.body["uuid"].as_str().context("a uuid")?.to_owned());
        } else {
            ensure!(
                answer.detail().contains("maximum clusters per project, 5."),
                "{answer:?}"
            );
            answer.expect(403)?;
        }
    }
    promised.sort_unstable();
    Ok(promised)
}

async fn clusters(api: &Api) -> Result<Vec<String>> {
    let listed = api.rest.get("/clusters").await?.expect(200)?;
    let listed = listed["clusters"].as_array().context("a list")?;
    let mut uuids: Vec<String> = listed
        .iter()
        .filter_map(|cluster| cluster["uuid"].as_str().map(str::to_owned))
        .collect();
    uuids.sort_unstable();
    Ok(uuids)
}

on_every_database! {
    async fn forty_requests_at_two_apis_make_as_many_clusters_as_the_quota_allows(database: TestDatabase) -> Result<()> {
        let mut deployment = Deployment::on(database, rabbitmq::vhost().await?).await?;
        deployment.set("quotas", "max_clusters_per_project", LIMIT);
        let mut conductor = deployment.conductor("one").await?;
        let apis = [deployment.api().await?, deployment.api().await?];
        let template = apis[0].rest.create_template("template").await?;

        let promised = ask(&apis, &template, "first").await?;
        assert_eq!(promised.len(), LIMIT);
        assert_eq!(clusters(&apis[1]).await?, promised);

        // Room for two, and nobody there to make them.
        for cluster in &promised[..2] {
            apis[0].rest.wait_status(cluster, "CREATE_COMPLETE", PATIENCE).await?;
            apis[0].rest.delete(&format!("/clusters/{cluster}")).await?.expect(204)?;
            apis[0].rest.wait_gone(cluster, PATIENCE).await?;
        }
        conductor.terminate(PATIENCE).await?;
        let mut expected = promised[2..].to_vec();
        expected.extend(ask(&apis, &template, "second").await?);
        assert_eq!(expected.len(), LIMIT);
        assert_eq!(ask(&apis, &template, "third").await?.len(), 0);
        expected.sort_unstable();

        let _conductor = deployment.conductor("two").await?;
        wait::until("every promised cluster to be there", PATIENCE, async || {
            let there = clusters(&apis[0]).await?;
            ensure!(there == expected, "{there:?}");
            Ok(())
        })
        .await?;
        // What was reserved is free again when it is gone.
        for cluster in &expected {
            apis[0].rest.wait_status(cluster, "CREATE_COMPLETE", PATIENCE).await?;
            apis[0].rest.delete(&format!("/clusters/{cluster}")).await?.expect(204)?;
            apis[0].rest.wait_gone(cluster, PATIENCE).await?;
        }
        assert_eq!(ask(&apis, &template, "fourth").await?.len(), LIMIT);
        Ok(())
    }
}
