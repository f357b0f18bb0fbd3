//! The check of Keystone and Barbican: content with the real ones, and clear about what to do without one of them.

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::deployment::Deployment;
use magnum_tests::openstack::OpenStack;

use super::{FAILURE, OK, finds, status};

const CHECK: &str = "Key manager";

#[tokio::test(flavor = "multi_thread")]
async fn the_key_manager_is_asked_where_certificates_are_kept_in_it() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let finished = status(&deployment, &["--json"]).await?;
    ensure!(!finished.stdout.contains(CHECK), "{finished:?}");

    let cloud = OpenStack::shared().await?;
    let keystone = ChaosProxy::start(cloud.keystone_address()).await?;
    let barbican = ChaosProxy::start(cloud.barbican_address()).await?;
    let region = cloud
        .region_via(&format!("http://{}", barbican.address()))
        .await?;
    for (section, option, value) in cloud.options(keystone.address(), &region) {
        deployment.set(section, option, value);
    }
    deployment.set("keystone_auth", "timeout", 2);
    finds(&deployment, CHECK, OK, &[]).await?;
    ensure!(barbican.accepted() > 0, "Barbican was not asked");

    for (line, words) in [
        (
            &keystone,
            ["Keystone is not available", "[keystone_auth] auth_url"],
        ),
        (
            &barbican,
            ["Barbican is not available", "cert_manager_type = x509keypair"],
        ),
    ] {
        line.cut();
        finds(&deployment, CHECK, FAILURE, &words).await?;
        line.restore();
        line.stall();
        finds(&deployment, CHECK, FAILURE, &[words[0], "no answer within 2s"]).await?;
        line.restore();
    }

    // What is not away but wrong.
    let wrong = async |option: (&str, &str), value: &str, right: &str, words: &[&str]| {
        let mut other = Deployment::new(Backend::Sqlite).await?;
        for (section, option, value) in cloud.options(keystone.address(), &region) {
            other.set(section, option, value);
        }
        other.set(option.0, option.1, value);
        finds(&other, CHECK, FAILURE, words).await?;
        other.set(option.0, option.1, right);
        finds(&other, CHECK, OK, &[]).await
    };
    let user = ["HTTP 401", "Check the service user"];
    wrong(
        ("keystone_auth", "password"),
        "hunter2",
        "openstack-secret",
        &user,
    )
    .await?;
    let region_name = ["[barbican_client] region_name", "in region Elsewhere"];
    wrong(
        ("barbican_client", "region_name"),
        "Elsewhere",
        &region,
        &region_name,
    )
    .await?;
    let interface = ["no internal endpoint", "endpoint_type"];
    wrong(
        ("barbican_client", "endpoint_type"),
        "internalURL",
        "publicURL",
        &interface,
    )
    .await?;
    let finished = status(&deployment, &[]).await?;
    ensure!(
        finished.stdout.contains("| Check: Key manager "),
        "{}",
        finished.stdout
    );
    ensure!(
        !finished.stdout.contains("openstack-secret"),
        "{}",
        finished.stdout
    );
    Ok(())
}
