//! What clusters use: shown by a conductor's metrics, told to a real oslo.messaging listener if the option says so, gone
//! with the cluster.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::Deployment;
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::rest::Rest;
use magnum_tests::{Backend, wait};
use serde_json::{Value, json};

use crate::conductor::example_drivers::{disk_nodes, install_disk};

const PATIENCE: Duration = Duration::from_secs(90);
const EVENT: &str = "magnum.cluster.metrics.update";

/// The lines of `name` that are about the cluster.
fn lines<'a>(metrics: &'a str, name: &str, cluster: &str) -> Vec<&'a str> {
    let start = format!("{name}{{cluster=\"{cluster}\"");
    metrics.lines().filter(|line| line.starts_with(&start)).collect()
}

fn value(line: &str) -> Result<f64> {
    let (_, value) = line.rsplit_once(' ').context("a value")?;
    Ok(value.parse()?)
}

async fn build(rest: &Rest, name: &str, labels: Value) -> Result<String> {
    let template = rest.create_template_for("t", "disk").await?;
    let cluster = rest.create_cluster(&template, name, labels).await?;
    rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
    Ok(cluster)
}

/// A deployment of the driver `disk` that looks at its clusters every second, and tells whoever listens.
async fn deployment() -> Result<(Deployment, OsloPeer)> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set("kubernetes", "health_polling_interval", 1);
    deployment.set("oslo_messaging_notifications", "driver", "messagingv2");
    let config = deployment.config_file("listener")?;
    let config = config.to_str().context("path")?;
    let listener = OsloPeer::start("oslo_notified.py", &[config]).await?;
    Ok((deployment, listener))
}

/// Bytes of the files of a cluster's nodes.
fn bytes(root: &Path, cluster: &str) -> Result<u64> {
    let folder = root.join("clusters").join(cluster);
    let nodes = disk_nodes(root, cluster)?.into_keys();
    let sizes = nodes.map(|node| Ok(fs::metadata(folder.join(node).join("node.json"))?.len()));
    sizes.sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn utilisation_is_shown_and_notified_until_the_cluster_is_gone() -> Result<()> {
    let (mut deployment, mut listener) = deployment().await?;
    deployment.set("drivers", "send_cluster_metrics", "true");
    let root = install_disk(&mut deployment)?;
    let conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let cluster = build(&api.rest, "c", json!({})).await?;
    let senseless = build(&api.rest, "s", json!({"disk_monitor": "senseless"})).await?;

    let shown = wait::until("the cluster in the metrics", PATIENCE, async || {
        let text = deployment.metrics("one").await?;
        ensure!(
            !lines(&text, "magnum_cluster_memory_used_bytes", &cluster).is_empty(),
            "{text}"
        );
        Ok(text)
    })
    .await?;
    let used = lines(&shown, "magnum_cluster_memory_used_bytes", &cluster);
    ensure!(value(used[0])? == bytes(&root, &cluster)? as f64, "{used:?}");
    let percent = lines(&shown, "magnum_cluster_cpu_percent", &cluster);
    ensure!(percent.len() == 1 && value(percent[0])? <= 100.0, "{percent:?}");
    let groups = lines(&shown, "magnum_node_group_memory_used_bytes", &cluster);
    ensure!(
        groups.len() == 2 && groups.iter().all(|line| line.contains(",node_group=\"")),
        "{groups:?}"
    );
    ensure!(
        shown.contains("# TYPE magnum_node_group_cpu_percent gauge"),
        "{shown}"
    );

    let told = loop {
        let heard = listener.next_event(PATIENCE).await?;
        if heard["event_type"] == EVENT {
            break heard;
        }
    };
    ensure!(
        told["priority"] == "info" && told["publisher_id"] == "container-infra.one",
        "{told:#}"
    );
    let payload = &told["payload"];
    let mut keys: Vec<&String> = payload.as_object().context("an object")?.keys().collect();
    keys.sort();
    ensure!(
        keys == ["metrics", "project_id", "resource_id", "user_id"],
        "{told:#}"
    );
    ensure!(payload["resource_id"] == cluster.as_str(), "{told:#}");
    ensure!(payload["project_id"] == "noauth", "{told:#}");
    let metrics_told = payload["metrics"].as_array().context("a list")?;
    let names: Vec<_> = metrics_told
        .iter()
        .map(|one| (&one["name"], &one["unit"]))
        .collect();
    ensure!(
        names
            == [
                (&json!("memory_util"), &json!("%")),
                (&json!("cpu_util"), &json!("%"))
            ],
        "{told:#}"
    );
    ensure!(metrics_told.iter().all(|one| one["value"].is_f64()), "{told:#}");

    // What makes no sense is not shown, said once in the log, and not held against the cluster's health.
    conductor
        .wait_log("cluster.cpu_percent must be 100 at most, it is 250", PATIENCE)
        .await?;
    wait::until("more looks at the senseless cluster", PATIENCE, async || {
        let text = deployment.metrics("one").await?;
        let failed = "magnum_utilisation_polls_total{outcome=\"failed\"} ";
        let looks = text.lines().find_map(|line| line.strip_prefix(failed));
        let looks: u64 = looks.context("no look has failed")?.parse()?;
        ensure!(looks >= 4, "{looks} looks");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    let log = conductor.log();
    let said = log
        .matches("the driver cannot tell what the cluster uses")
        .count();
    ensure!(said == 1, "said {said} times");
    ensure!(
        !deployment.metrics("one").await?.contains(&senseless),
        "it is shown"
    );
    for uuid in [&cluster, &senseless] {
        let shown = api.rest.get(&format!("/clusters/{uuid}")).await?.expect(200)?;
        ensure!(shown["health_status"] == "HEALTHY", "{shown:#}");
    }

    api.rest
        .delete(&format!("/clusters/{cluster}"))
        .await?
        .expect(204)?;
    api.rest.wait_gone(&cluster, PATIENCE).await?;
    wait::until("no figures of a cluster that is gone", PATIENCE, async || {
        let text = deployment.metrics("one").await?;
        ensure!(!text.contains(&cluster), "{text}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_option_utilisation_is_shown_but_not_notified() -> Result<()> {
    let (mut deployment, mut listener) = deployment().await?;
    install_disk(&mut deployment)?;
    let mut conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let cluster = build(&api.rest, "c", json!({})).await?;
    wait::until("the cluster in the metrics", PATIENCE, async || {
        let text = deployment.metrics("one").await?;
        ensure!(
            !lines(&text, "magnum_cluster_cpu_percent", &cluster).is_empty(),
            "{text}"
        );
        Ok(())
    })
    .await?;
    // A conductor that has stopped has sent what it had to send.
    ensure!(conductor.terminate(PATIENCE).await?.success());
    let mut heard = 0;
    while let Ok(event) = listener.next_event(Duration::from_secs(2)).await {
        ensure!(event["event_type"] == "magnum.cluster.create", "{event:#}");
        heard += 1;
    }
    ensure!(heard == 2, "{heard} notifications");
    Ok(())
}
