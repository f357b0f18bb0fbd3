//! Health from a cluster's own API server, through the whole conductor: a driver says where the server is, the server is a
//! real kube-apiserver that believes the cluster's CA alone, and nobody but the conductor has its client certificate.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::certificates::Signed;
use magnum_tests::deployment::Deployment;
use magnum_tests::kubernetes::{Identity, Kubernetes};
use magnum_tests::ports::free_port;
use magnum_tests::rest::Rest;
use magnum_tests::{Backend, wait};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// A driver whose clusters have their API server on this port of this host.
fn install_driver(deployment: &mut Deployment, port: u16) -> Result<()> {
    let folder = deployment.folder.join("drivers/here");
    fs::create_dir_all(&folder)?;
    fs::write(
        folder.join("driver.toml"),
        "[driver]\nname = 'here'\nversion = '1.0.0'\nengine = 'exec'\n[[provides]]\nserver_type = 'vm'\n\
         os = 'ubuntu'\ncoe = 'kubernetes'\n[capabilities]\nhealth = true\n\
         [exec]\nprogram = 'run'\nhealth = 'kubernetes'\n",
    )?;
    let address = format!("https://127.0.0.1:{port}");
    let created = json!({"result": {"cluster": {"status": "CREATE_COMPLETE", "api_address": address}}});
    let program = folder.join("run");
    fs::write(
        &program,
        format!(
            "#!/bin/sh\ncat > /dev/null\n[ \"$MAGNUM_CALL\" = create ] && echo '{created}' || echo '{{\"result\": {{}}}}'\n"
        ),
    )?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let drivers = deployment.folder.join("drivers");
    deployment.set("drivers", "driver_path", drivers.display());
    deployment.set("kubernetes", "health_polling_interval", 1);
    Ok(())
}

/// A key of `name`, and its certificate, signed through the API for whoever asks.
async fn signed(rest: &Rest, cluster: &str, folder: &Path, name: &str) -> Result<Signed> {
    let (key, request) = (
        folder.join(format!("{name}.key")),
        folder.join(format!("{name}.csr")),
    );
    let made = Command::new("openssl")
        .args([
            "req",
            "-new",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ])
        .args(["-subj", &format!("/O=system:masters/CN={name}")])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&request)
        .output()?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let body = json!({"cluster_uuid": cluster, "csr": fs::read_to_string(&request)?});
    let answer = rest.post("/certificates", &body).await?.expect(201)?;
    let certificate = folder.join(format!("{name}.pem"));
    fs::write(&certificate, answer["pem"].as_str().context("no pem")?)?;
    Ok(Signed { certificate, key })
}

/// What the cluster's own CA makes of a server and of its administrator.
async fn identity(rest: &Rest, cluster: &str, folder: &Path) -> Result<Identity> {
    let answer = rest.get(&format!("/certificates/{cluster}")).await?.expect(200)?;
    let authority = folder.join("cluster-ca.pem");
    fs::write(&authority, answer["pem"].as_str().context("no pem")?)?;
    Ok(Identity {
        authority,
        admin: signed(rest, cluster, folder, "admin").await?,
        server: signed(rest, cluster, folder, "kube-apiserver").await?,
    })
}

async fn wait_health(
    rest: &Rest,
    cluster: &str,
    status: &str,
    is_right: impl Fn(&Value) -> bool,
) -> Result<()> {
    wait::until(&format!("the health {status}"), PATIENCE, async || {
        let seen = rest.get(&format!("/clusters/{cluster}")).await?.expect(200)?;
        let reasons = &seen["health_status_reason"];
        ensure!(
            seen["health_status"] == status && is_right(reasons),
            "{} {reasons}",
            seen["health_status"]
        );
        Ok::<_, anyhow::Error>(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_health_follows_its_api_server() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let port = free_port()?;
    install_driver(&mut deployment, port)?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let rest = &api.rest;
    let template = rest.create_template_for("t", "here").await?;
    let cluster = rest.create_cluster(&template, "c", json!({})).await?;
    rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;

    let api_says = |text: &'static str| {
        move |reasons: &Value| reasons["api"].as_str().is_some_and(|api| api.contains(text))
    };
    wait_health(rest, &cluster, "UNHEALTHY", api_says("onnection refused")).await?;
    let identity = identity(rest, &cluster, &deployment.folder).await?;
    let kubernetes = Kubernetes::listening_on(port, identity).await?;
    wait_health(rest, &cluster, "HEALTHY", |reasons| {
        *reasons == json!({"api": "ok"})
    })
    .await?;
    kubernetes.add_node("worker-0", "False").await?;
    let reasons = json!({"api": "ok", "worker-0.Ready": "False"});
    wait_health(rest, &cluster, "UNHEALTHY", |seen| *seen == reasons).await?;
    kubernetes.set_ready("worker-0", "True").await?;
    let reasons = json!({"api": "ok", "worker-0.Ready": "True"});
    wait_health(rest, &cluster, "HEALTHY", |seen| *seen == reasons).await?;
    kubernetes.kill().await?;
    kubernetes.kill_etcd().await?;
    wait_health(rest, &cluster, "UNHEALTHY", api_says("onnection refused")).await
}
