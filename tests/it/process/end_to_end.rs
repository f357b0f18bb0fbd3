//! The unmodified `openstack coe` client against the API, RabbitMQ and two conductors, with the example driver
//! that builds on disk; on each of the three databases.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::oslo_peer::tool;
use magnum_tests::process::Launch;
use magnum_tests::rest::IMAGE;
use magnum_tests::{TestDatabase, on_every_database, rabbitmq};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `openstack coe …` and returns what it printed.
async fn coe(api: &Api, command: &str) -> Result<String> {
    let openstack = Launch::command("openstack", Command::new(tool("openstack")?));
    let login = ["--os-auth-type", "none", "--os-endpoint", api.rest.base(), "coe"];
    openstack.args(login).args(command.split(' ')).output().await
}

/// The same for commands that can print JSON.
async fn coe_json(api: &Api, command: &str) -> Result<Value> {
    let text = coe(api, &format!("{command} -f json")).await?;
    // Some commands say first that the request was accepted.
    let start = text.find(['{', '[']).unwrap_or(0);
    serde_json::from_str(&text[start..]).with_context(|| text)
}

/// Node folders that the driver built.
fn nodes_on_disk(root: &Path) -> usize {
    let mut folders = vec![root.join("clusters")];
    let mut nodes = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                nodes += usize::from(entry.file_name().to_string_lossy().starts_with("node-"));
                folders.push(entry.path());
            }
        }
    }
    nodes
}

on_every_database! {
    async fn the_command_line_client_does_its_whole_job(database: TestDatabase) -> Result<()> {
        let mut deployment = Deployment::on(database, rabbitmq::vhost().await?).await?;
        let root = deployment.folder.join("disk");
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/drivers");
        deployment.set("drivers", "driver_path", shipped.canonicalize()?.display());
        deployment.set_environment("DISK_DRIVER_ROOT", &root.display().to_string());
        let _one = deployment.conductor("one").await?;
        let _two = deployment.conductor("two").await?;
        let api = deployment.api().await?;

        let create = format!(
            "cluster template create small --coe kubernetes --image {IMAGE} --external-network public \
             --keypair key --flavor m1.small --master-flavor m1.small --driver disk --labels a=1,b=2"
        );
        let template = coe_json(&api, &create).await?;
        assert_eq!(template["driver"], "disk");
        assert_eq!(template["cluster_distro"], "ubuntu");
        let listed = coe_json(&api, "cluster template list").await?;
        assert_eq!(listed[0]["uuid"], template["uuid"]);
        coe_json(&api, "cluster template update small --name renamed").await?;
        assert_eq!(coe_json(&api, "cluster template show renamed").await?["uuid"], template["uuid"]);

        let accepted = coe(&api, "cluster create prod --cluster-template renamed --node-count 2 --keypair key").await?;
        assert!(accepted.contains("accepted"), "{accepted}");
        let shown = coe_json(&api, "cluster show prod").await?;
        let uuid = shown["uuid"].as_str().context("uuid")?.to_owned();
        let complete = api.rest.wait_status(&uuid, "CREATE_COMPLETE", PATIENCE).await?;
        assert_eq!(complete["node_addresses"].as_array().map(Vec::len), Some(2));
        assert_eq!(nodes_on_disk(&root), 3, "one master, two workers");
        assert_eq!(coe_json(&api, "cluster list").await?[0]["status"], "CREATE_COMPLETE");

        coe(&api, "cluster update prod --node-count 3").await?;
        api.rest.wait_status(&uuid, "UPDATE_COMPLETE", PATIENCE).await?;
        assert_eq!(coe_json(&api, "cluster show prod").await?["node_count"], 3);
        assert_eq!(nodes_on_disk(&root), 4);

        let in_use = coe(&api, "cluster template delete renamed").await;
        assert!(format!("{in_use:?}").contains("referenced"), "{in_use:?}");
        coe(&api, "cluster delete prod").await?;
        api.rest.wait_gone(&uuid, PATIENCE).await?;
        assert_eq!(nodes_on_disk(&root), 0);
        coe(&api, "cluster template delete renamed").await?;
        assert_eq!(coe_json(&api, "cluster template list").await?, serde_json::json!([]));
        assert!(coe(&api, "service list").await?.contains("magnum-conductor"));

        deployment.settled(PATIENCE).await.map(drop)
    }
}
