//! `magnum-dev demo`: a cluster's whole life over HTTP, with what happens meanwhile.

mod client;
mod journal;
mod screen;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use self::client::Client;
use self::screen::Screen;
use crate::service::Service;
use crate::state::{IMAGE, State};

/// How the demonstration runs.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Keep everything in this folder; without it a temporary one is used and removed
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Milliseconds that the driver takes for each node
    #[arg(long, default_value_t = 1100)]
    node_delay_ms: u64,
}

/// Longest wait for one status.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often the cluster is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs the demonstration. An error is a failed one; its state is kept to be looked at.
pub(crate) async fn run(options: Options) -> anyhow::Result<()> {
    need_python()?;
    let temporary = match &options.state {
        Some(_) => None,
        None => Some(tempfile::Builder::new().prefix("magnum-dev-").tempdir()?),
    };
    let folder = match (&options.state, &temporary) {
        (Some(folder), _) => folder.clone(),
        (None, Some(temporary)) => temporary.path().to_owned(),
        (None, None) => bail!("no folder for the state"),
    };
    let state = State::prepare(&folder)?;
    let service = Service::start(&state, options.port, Some(&state.log())).await?;
    let screen = Screen::new();
    screen.say(&format!("Magnum's API is at {}", service.endpoint()));
    screen.say(&format!(
        "What it logs is in {}{}",
        state.log().display(),
        match temporary {
            Some(_) => ", removed at the end (--state DIR keeps it)",
            None => "",
        }
    ));
    let toured = tokio::select! {
        toured = tour(&service, &screen, &options) => Some(toured),
        _ = tokio::signal::ctrl_c() => None,
    };
    service.stop().await;
    let toured = toured.context("interrupted")?;
    if toured.is_err()
        && let Some(temporary) = temporary
    {
        let kept = temporary.keep();
        return toured.with_context(|| {
            format!(
                "the demonstration failed; its state is kept in {}",
                kept.display()
            )
        });
    }
    toured
}

/// The example driver is a Python program; better said now than by a failed cluster.
fn need_python() -> anyhow::Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    ensure!(
        std::env::split_paths(&path).any(|folder| folder.join("python3").is_file()),
        "the example driver needs python3 in PATH: install Python 3"
    );
    Ok(())
}

async fn tour(service: &Service, screen: &Screen, options: &Options) -> anyhow::Result<()> {
    let client = Client::new(service.endpoint());

    screen.title("Create a cluster template");
    let body = json!({
        "name": "demo-template", "coe": "kubernetes", "image_id": IMAGE, "external_network_id": "public",
        "keypair_id": "demo-key", "flavor_id": "m1.small", "master_flavor_id": "m1.small",
    });
    let template = client.post("/clustertemplates", &body).await?;
    screen.say(&format!(
        "template {}: driver {} was chosen for {} on {}",
        text(&template, "name"),
        text(&template, "driver"),
        text(&template, "coe"),
        text(&template, "cluster_distro")
    ));

    screen.title("Create a cluster with one master and two workers");
    let body = json!({
        "name": "demo", "cluster_template_id": template["uuid"], "master_count": 1, "node_count": 2,
        "keypair": "demo-key", "labels": {"disk_delay_ms": options.node_delay_ms.to_string()},
    });
    let accepted = client.post("/clusters", &body).await?;
    let uuid = text(&accepted, "uuid");
    screen.say(&format!("202 Accepted: cluster {uuid}"));
    let cluster = watch(service, screen, &client, &uuid, ["", "CREATE_COMPLETE"]).await?;
    show(screen, &cluster);

    screen.title("Resize it to four workers");
    let patch = json!([{"op": "replace", "path": "/node_count", "value": 4}]);
    client.patch(&format!("/clusters/{uuid}"), &patch).await?;
    screen.say("202 Accepted");
    let cluster = watch(
        service,
        screen,
        &client,
        &uuid,
        ["CREATE_COMPLETE", "UPDATE_COMPLETE"],
    )
    .await?;
    show(screen, &cluster);

    screen.title("Delete it");
    client.delete(&format!("/clusters/{uuid}")).await?;
    screen.say("204 No Content: accepted");
    watch(service, screen, &client, &uuid, ["UPDATE_COMPLETE", GONE]).await?;
    client
        .delete(&format!("/clustertemplates/{}", text(&template, "uuid")))
        .await?;
    screen.say("the template is deleted, too");

    screen.title("What the journal recorded");
    journal::print(service.database(), screen, &uuid).await?;
    screen.title("Done");
    screen.say("Try it yourself: `magnum-dev serve` keeps it running, and then, for example:");
    screen.say("  curl http://127.0.0.1:9511/v1/clusters");
    screen.say("  openstack --os-auth-type none --os-endpoint http://127.0.0.1:9511/v1 coe cluster list");
    Ok(())
}

/// Stands for the status of a cluster that is no more.
const GONE: &str = "gone";

/// Shows every status and what the driver says, on the way from one status to another.
async fn watch(
    service: &Service,
    screen: &Screen,
    client: &Client,
    uuid: &str,
    [left, wanted]: [&str; 2],
) -> anyhow::Result<Value> {
    let mut progress = screen.progress(left);
    let started = Instant::now();
    loop {
        let cluster = client.find(&format!("/clusters/{uuid}")).await?;
        let status = cluster
            .as_ref()
            .map_or_else(|| GONE.to_owned(), |cluster| text(cluster, "status"));
        let said = journal::progress(service.database(), uuid).await?;
        progress.show(&status, said.as_deref());
        if status == wanted {
            progress.finish();
            return Ok(cluster.unwrap_or_default());
        }
        if status.ends_with("_FAILED") || (status == GONE && wanted != GONE) {
            let reason = cluster
                .map(|cluster| text(&cluster, "status_reason"))
                .unwrap_or_default();
            bail!("the cluster became {status}: {reason}");
        }
        ensure!(
            started.elapsed() < PATIENCE,
            "the cluster is still {status} after {} seconds",
            PATIENCE.as_secs()
        );
        sleep(LOOK_EVERY).await;
    }
}

fn show(screen: &Screen, cluster: &Value) {
    let nodes = |key: &str| {
        let addresses = cluster[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let addresses: Vec<&str> = addresses.iter().filter_map(Value::as_str).collect();
        addresses.join(", ")
    };
    screen.say(&format!("  masters: {}", nodes("master_addresses")));
    screen.say(&format!("  workers: {}", nodes("node_addresses")));
    screen.say(&format!("  its API: {}", text(cluster, "api_address")));
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}
