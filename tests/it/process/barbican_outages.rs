//! Keystone and Barbican go away in the middle of a request. What was accepted is finished when they are back, who asked
//! is answered meanwhile, and Barbican holds in the end what the clusters' rows name and nothing else.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::openstack::{self, OpenStack};
use magnum_tests::oslo_peer::{OsloPeer, Raised};
use magnum_tests::process::Program;
use magnum_tests::{Backend, raw_rpc, wait};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(90);

/// A conductor whose Keystone and Barbican are behind lines.
struct Scene {
    deployment: Deployment,
    keystone: ChaosProxy,
    barbican: ChaosProxy,
    /// Sees Barbican as it is.
    service: openstack::Session,
    api: Api,
    template: String,
    conductor: Program,
}

impl Scene {
    async fn set() -> Result<Self> {
        let cloud = OpenStack::shared().await?;
        let keystone = ChaosProxy::start(cloud.keystone_address()).await?;
        let barbican = ChaosProxy::start(cloud.barbican_address()).await?;
        let region = cloud
            .region_via(&format!("http://{}", barbican.address()))
            .await?;
        let mut deployment = Deployment::new(Backend::Mariadb).await?;
        for (section, option, value) in cloud.options(keystone.address(), &region) {
            deployment.set(section, option, value);
        }
        deployment.set("keystone_auth", "timeout", 3);
        deployment.set("DEFAULT", "rpc_response_timeout", 8);
        let conductor = deployment.conductor("one").await?;
        let api = deployment.api().await?;
        let template = api.rest.create_template("small").await?;
        Ok(Self {
            service: cloud.log_in("magnum", "service").await?,
            deployment,
            keystone,
            barbican,
            api,
            template,
            conductor,
        })
    }

    /// Names of the containers and secrets that were made for an operation.
    async fn kept(&self, operation: &str) -> Result<(Vec<String>, Vec<String>)> {
        Ok((
            self.service.names("containers", operation).await?,
            self.service.names("secrets", operation).await?,
        ))
    }

    /// Asks for a cluster. Returns it, and its operation.
    async fn ask(&self, name: &str) -> Result<(String, String)> {
        let rest = &self.api.rest;
        let cluster = rest.create_cluster(&self.template, name, json!({})).await?;
        let operations = self.deployment.operations().await?;
        let mine = operations.iter().find(|one| one["cluster"] == cluster.as_str());
        let mine = mine.with_context(|| format!("{operations:#?}"))?;
        let operation = mine["id"].as_str().with_context(|| format!("{mine}"))?;
        Ok((cluster, operation.to_owned()))
    }

    /// Waits until some of an operation's secrets are in Barbican.
    async fn in_the_middle(&self, operation: &str) -> Result<()> {
        wait::until("the first secret", PATIENCE, async || {
            let (_, secrets) = self.kept(operation).await?;
            ensure!(!secrets.is_empty(), "none yet");
            Ok(())
        })
        .await
    }

    /// Waits until an attempt has failed with these words.
    async fn fails(&self, operation: &str, words: &str) -> Result<()> {
        wait::until("an attempt to fail", PATIENCE, async || {
            let operations = self.deployment.operations().await?;
            let mine = operations.iter().find(|one| one["id"] == operation);
            let told = mine.context("the operation")?.to_string();
            ensure!(told.contains(words), "{told}");
            Ok(())
        })
        .await
    }

    /// The cluster is built, and Barbican has its set and nothing else of the operation.
    async fn completes(&self, cluster: &str, operation: &str) -> Result<()> {
        self.api
            .rest
            .wait_status(cluster, "CREATE_COMPLETE", PATIENCE)
            .await?;
        let (containers, secrets) = self.kept(operation).await?;
        ensure!(
            (containers.len(), secrets.len()) == (4, 12),
            "{containers:?} {secrets:?}"
        );
        Ok(())
    }

    async fn nothing_is_kept(&self, operation: &str) -> Result<()> {
        wait::until("Barbican to have nothing left", PATIENCE, async || {
            let (containers, secrets) = self.kept(operation).await?;
            ensure!(
                containers.is_empty() && secrets.is_empty(),
                "{containers:?} {secrets:?}"
            );
            Ok(())
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_are_built_and_removed_whole_when_barbican_went_away_meanwhile() -> Result<()> {
    let scene = Scene::set().await?;
    let rest = &scene.api.rest;
    // Cut.
    let (one, of_one) = scene.ask("one").await?;
    scene.in_the_middle(&of_one).await?;
    scene.barbican.cut();
    scene.fails(&of_one, "Barbican is not available").await?;
    scene.barbican.restore();
    scene.completes(&one, &of_one).await?;
    // Silent: what is under way arrives when it is back, and was given up long before.
    let (two, of_two) = scene.ask("two").await?;
    scene.in_the_middle(&of_two).await?;
    scene.barbican.stall();
    scene.fails(&of_two, "no answer within").await?;
    scene.barbican.restore();
    scene.completes(&two, &of_two).await?;

    // Away when the clusters are deleted: they are gone, and their certificates follow.
    scene.barbican.cut();
    rest.delete(&format!("/clusters/{one}")).await?.expect(204)?;
    rest.wait_gone(&one, PATIENCE).await?;
    let told = "a certificate of a cluster that is gone cannot be removed now";
    scene.conductor.wait_log(told, PATIENCE).await?;
    ensure!(
        scene.kept(&of_one).await?.0.len() == 4,
        "removed through a line that is cut"
    );
    scene.barbican.restore();
    // And in the middle of it.
    let lines = scene.barbican.accepted();
    rest.delete(&format!("/clusters/{two}")).await?.expect(204)?;
    wait::until("the removal to begin", PATIENCE, async || {
        let (_, secrets) = scene.kept(&of_two).await?;
        ensure!(
            secrets.len() < 12,
            "{} connections more",
            scene.barbican.accepted() - lines
        );
        Ok(())
    })
    .await?;
    scene.barbican.stall();
    scene.conductor.wait_log("no answer within", PATIENCE).await?;
    scene.barbican.restore();
    scene.nothing_is_kept(&of_one).await?;
    scene.nothing_is_kept(&of_two).await?;
    scene.deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_built_when_keystone_was_away_at_its_beginning() -> Result<()> {
    let mut scene = Scene::set().await?;
    for (name, words) in [
        ("cut", "Keystone is not available"),
        ("stalled", "no answer within"),
    ] {
        // A conductor that has no token yet.
        scene.conductor.terminate(PATIENCE).await?;
        scene.conductor = scene.deployment.conductor(name).await?;
        if name == "cut" {
            scene.keystone.cut();
        } else {
            scene.keystone.stall();
        }
        let (cluster, operation) = scene.ask(name).await?;
        scene.fails(&operation, words).await?;
        ensure!(scene.kept(&operation).await? == (Vec::new(), Vec::new()));
        scene.keystone.restore();
        scene.completes(&cluster, &operation).await?;
    }
    scene.deployment.settled(PATIENCE).await.map(drop)
}

/// The request of a real caller, oslo.messaging.
fn question(method: &str, cluster: &str, csr: Option<&str>) -> Value {
    let object = raw_rpc::object("Cluster", "1.24", json!({"uuid": cluster}));
    let args = match csr {
        None => json!({"cluster": object, "ca_cert_type": "kubernetes"}),
        Some(csr) => {
            let fields = json!({"cluster_uuid": cluster, "csr": csr, "ca_cert_type": "kubernetes"});
            json!({"cluster": object, "certificate": raw_rpc::object("Certificate", "1.2", fields)})
        }
    };
    json!({
        "do": "call", "method": method, "args": args, "timeout": 60, "call_monitor_timeout": null,
        "context": {"project_id": "noauth", "user_id": "noauth", "is_admin": true, "all_tenants": true},
    })
}

fn assert_store_unavailable(answer: Result<Value, Raised>) -> Result<()> {
    let raised = answer
        .err()
        .context("an answer through a line that carries nothing")?;
    ensure!(raised.class == "CertificateStorageException", "{raised:?}");
    ensure!(
        raised.message.contains("not available at the moment; try again"),
        "{raised:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_call_during_an_outage_fails_in_time() -> Result<()> {
    let scene = Scene::set().await?;
    let (cluster, operation) = scene.ask("c").await?;
    scene.completes(&cluster, &operation).await?;
    let config = scene.deployment.config_file("client")?;
    let mut python = OsloPeer::start("oslo_client.py", &[config.to_str().context("path")?]).await?;
    let csr = request_for_a_certificate()?;
    for (method, csr) in [
        ("get_ca_certificate", None),
        ("sign_certificate", Some(csr.as_str())),
    ] {
        let asked = question(method, &cluster, csr);
        answered(&mut python, &asked).await?;
        scene.barbican.cut();
        assert_store_unavailable(python.ask(asked.clone()).await?)?;
        scene.barbican.restore();
        scene.barbican.stall();
        let since = Instant::now();
        assert_store_unavailable(python.ask(asked.clone()).await?)?;
        // Half of rpc_response_timeout is 4 s; the rest is for a machine with other work.
        ensure!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
        scene.barbican.restore();
        answered(&mut python, &asked).await?;
    }
    Ok(())
}

/// Waits until the call brings a certificate: on a busy machine Barbican may take longer than the call has.
async fn answered(python: &mut OsloPeer, asked: &Value) -> Result<()> {
    let answer = wait::until("an answer", PATIENCE, async || {
        python
            .ask(asked.clone())
            .await?
            .map_err(|raised| anyhow::anyhow!("{raised:?}"))
    })
    .await?;
    let pem = answer["magnum_object.data"]["pem"].as_str().unwrap_or_default();
    ensure!(pem.contains("BEGIN"), "{answer}");
    Ok(())
}

/// A request for a certificate, as a user makes it.
fn request_for_a_certificate() -> Result<String> {
    let folder = magnum_tests::run_dir::run_dir()?.folder("requests")?;
    let output = std::process::Command::new("openssl")
        .args("req -new -newkey rsa:2048 -nodes -keyout k.pem -subj /CN=node".split(' '))
        .current_dir(&folder)
        .output()?;
    ensure!(output.status.success(), "{output:?}");
    Ok(String::from_utf8(output.stdout)?)
}
