//! The unmodified `openstack coe` client against the API, RabbitMQ and two conductors, with the example driver
//! that builds on disk; on each of the three databases.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use magnum_tests::deployment::Deployment;
use magnum_tests::openstack_command::OpenstackCommand;
use magnum_tests::rest::IMAGE;
use magnum_tests::{TestDatabase, on_every_database, rabbitmq};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);

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
        let mut openstack = OpenstackCommand::without_keystone(&api.rest, &deployment).await?;

        let create = format!(
            "cluster template create small --coe kubernetes --image {IMAGE} --external-network public \
             --keypair key --flavor m1.small --master-flavor m1.small --driver disk --labels a=1,b=2"
        );
        openstack.coe(&create).await?;
        let template = openstack.coe("cluster template show small -f json").await?;
        assert_eq!(template["driver"], "disk");
        assert_eq!(template["cluster_distro"], "ubuntu");
        let listed = openstack.coe("cluster template list -f json").await?;
        assert_eq!(listed[0]["uuid"], template["uuid"]);
        openstack.coe("cluster template update small --name renamed").await?;
        assert_eq!(openstack.coe("cluster template show renamed -f json").await?["uuid"], template["uuid"]);

        let accepted = openstack
            .coe("cluster create prod --cluster-template renamed --node-count 2 --keypair key")
            .await?;
        assert!(accepted.as_str().is_some_and(|text| text.contains("accepted")), "{accepted}");
        let shown = openstack.coe("cluster show prod -f json").await?;
        let uuid = shown["uuid"].as_str().context("uuid")?.to_owned();
        let complete = api.rest.wait_status(&uuid, "CREATE_COMPLETE", PATIENCE).await?;
        assert_eq!(complete["node_addresses"].as_array().map(Vec::len), Some(2));
        assert_eq!(nodes_on_disk(&root), 3, "one master, two workers");
        assert_eq!(openstack.coe("cluster list -f json").await?[0]["status"], "CREATE_COMPLETE");

        openstack.coe("cluster update prod --node-count 3").await?;
        api.rest.wait_status(&uuid, "UPDATE_COMPLETE", PATIENCE).await?;
        assert_eq!(openstack.coe("cluster show prod -f json").await?["node_count"], 3);
        assert_eq!(nodes_on_disk(&root), 4);

        let in_use = openstack.coe("cluster template delete renamed").await;
        assert!(format!("{in_use:?}").contains("referenced"), "{in_use:?}");
        openstack.coe("cluster delete prod").await?;
        api.rest.wait_gone(&uuid, PATIENCE).await?;
        assert_eq!(nodes_on_disk(&root), 0);
        openstack.coe("cluster template delete renamed").await?;
        assert_eq!(openstack.coe("cluster template list -f json").await?, json!([]));
        let services = openstack.coe("service list").await?;
        assert!(services.to_string().contains("magnum-conductor"), "{services}");

        deployment.settled(PATIENCE).await.map(drop)
    }
}
