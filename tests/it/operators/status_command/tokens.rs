//! The check of token validation: content with the real Keystone, and clear about what to do otherwise.

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::deployment::Deployment;
use magnum_tests::openstack::{OpenStack, PASSWORD};

use super::{FAILURE, OK, WARNING, finds, status};

const CHECK: &str = "Tokens";

#[tokio::test(flavor = "multi_thread")]
async fn an_api_that_could_not_validate_tokens_is_found_before_it_starts() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let finished = status(&deployment, &["--json"]).await?;
    ensure!(!finished.stdout.contains(CHECK), "{finished:?}");

    deployment.set("api", "auth_strategy", "keystone");
    let missing = [
        "[keystone_authtoken] auth_url is not set",
        "magnum-api does not start",
    ];
    finds(&deployment, CHECK, WARNING, &missing).await?;

    let cloud = OpenStack::shared().await?;
    let keystone = ChaosProxy::start(cloud.keystone_address()).await?;
    let url = format!("http://{}/v3", keystone.address());
    let region = cloud.region_of("identity", "internal", &url).await?;
    for (option, value) in [
        ("auth_url", url.as_str()),
        ("www_authenticate_uri", "http://keystone.example"),
        ("username", "magnum"),
        ("password", PASSWORD),
        ("project_name", "service"),
        ("region_name", &region),
        ("http_connect_timeout", "2"),
        ("http_request_max_retries", "0"),
    ] {
        deployment.set("keystone_authtoken", option, value);
    }
    finds(&deployment, CHECK, OK, &[]).await?;
    keystone.cut();
    finds(
        &deployment,
        CHECK,
        FAILURE,
        &["Keystone is not available", "auth_url"],
    )
    .await?;
    keystone.restore();

    deployment.set("keystone_authtoken", "token_cache_time", 0);
    finds(&deployment, CHECK, WARNING, &["token_cache_time = 0"]).await?;
    deployment.set("keystone_authtoken", "token_cache_time", 300);
    deployment.set("keystone_authtoken", "region_name", "Elsewhere");
    let elsewhere = ["in region Elsewhere", "[keystone_authtoken] region_name"];
    finds(&deployment, CHECK, FAILURE, &elsewhere).await?;
    deployment.set("keystone_authtoken", "region_name", region);
    deployment.set("keystone_authtoken", "password", "hunter2");
    finds(&deployment, CHECK, FAILURE, &["HTTP 401", "Check the user"]).await?;
    Ok(())
}
