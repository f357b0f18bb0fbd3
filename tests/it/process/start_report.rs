//! What both services say at their start: what they have reached, and as whom; what is missing, and what to do.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::deployment::Deployment;
use magnum_tests::openstack::OpenStack;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_service_says_what_it_has_reached_and_as_whom() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    let cloud = OpenStack::shared().await?;
    for (option, value) in cloud.service_user() {
        deployment.set("keystone_auth", option, &value);
        deployment.set("keystone_authtoken", option, &value);
    }
    deployment.set("keystone_authtoken", "www_authenticate_uri", cloud.keystone_url());
    let conductor = deployment.conductor("one").await?;
    deployment.set("api", "auth_strategy", "keystone");
    let api = deployment.api().await?;
    for program in [&conductor, &api.program] {
        program
            .wait_log("Keystone: magnum of project service at http://", PATIENCE)
            .await?;
        program.wait_log("database: mysql://", PATIENCE).await?;
        program.wait_log("broker: rabbit://", PATIENCE).await?;
        program
            .wait_log("drivers: scripted 1.0.0 for (vm, ubuntu, kubernetes)", PATIENCE)
            .await?;
        let log = program.log();
        let report: Vec<&str> = log.lines().filter(|line| line.contains("start_report")).collect();
        ensure!(
            report.len() == 4 && report.iter().all(|line| !line.contains("WARN")),
            "{report:#?}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_a_warning_that_says_what_to_do() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let broker = ChaosProxy::start(deployment.vhost.address).await?;
    broker.cut();
    deployment.connect_via(Some(broker.address()), None);
    let empty = deployment.folder.join("no-drivers");
    std::fs::create_dir(&empty)?;
    deployment.set("drivers", "driver_path", empty.display());
    let conductor = deployment.conductor_launch("one").await?.spawn()?;
    let api = deployment.api_on(|launch| launch).await?;
    for (program, words) in [
        (&conductor, "drivers: NONE in [drivers] driver_path"),
        (&conductor, "magnum-driver-manage adopt --python"),
        (&conductor, "broker: no connection to the broker"),
        (&api.program, "drivers: no conductor has announced one"),
        (&api.program, "broker: no connection to the broker"),
    ] {
        program.wait_log(words, PATIENCE).await?;
    }
    Ok(())
}
