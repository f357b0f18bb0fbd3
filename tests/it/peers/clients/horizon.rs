//! A real Horizon with magnum-ui before our API: a person logs in by Horizon's form, looks at the page of clusters, and does
//! what its forms do, by the paths that its scripts ask. Horizon asks Keystone, our API and Neutron with the person's token.
//!
//! No browser runs the scripts. What they would send is taken from their sources: empty fields left out, but for
//! `discovery_url`, which is null. What magnum-ui makes of it is in `dashboard_forms`, compared with Magnum.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::openstack::PASSWORD;
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::process::little_environment;
use magnum_tests::rest::IMAGE;
use magnum_tests::run_dir::{base, run_dir};
use magnum_tests::wait;
use serde_json::{Value, json};

use super::world::{ANNA, BERT, BOSS, PATIENCE, RITA, Stack, Who};

/// Below this the scripts of magnum-ui ask.
const API: &str = "/api/container_infra";
/// The page of clusters.
const PAGE: &str = "/project/clusters/";

struct Dashboard {
    stack: Stack,
    horizon: OsloPeer,
}

/// What the dashboard has answered.
#[derive(Debug)]
struct Told {
    status: u64,
    body: Value,
}

impl Dashboard {
    async fn start() -> Result<Self> {
        let stack = Stack::start().await?;
        stack.list_the_cloud().await?;
        let program = base().join("horizon/bin/python");
        ensure!(
            program.exists(),
            "{} is missing: tests/run makes it",
            program.display()
        );
        let mut command = Command::new(program);
        little_environment(&mut command)
            .arg("-B")
            .arg(base().with_file_name("peers/dashboard.py"))
            .args([&stack.cloud.openstack.keystone_url(), &stack.region, PASSWORD])
            .arg(run_dir()?.folder("horizon")?);
        let horizon = OsloPeer::start_command("horizon", command).await?;
        Ok(Self { stack, horizon })
    }

    async fn log_in(&mut self, who: Who) -> Result<()> {
        let told = self.horizon.ask(json!({"do": "log_in", "user": who.0})).await??;
        ensure!(told == true, "{who:?}: {told}");
        Ok(())
    }

    async fn told(&mut self, who: Who, method: &str, path: &str, body: Value) -> Result<Told> {
        let request = json!({"do": "ask", "user": who.0, "method": method, "path": path, "body": body});
        let told = self.horizon.ask(request).await??;
        Ok(Told {
            status: told["status"].as_u64().context("a status")?,
            body: told["told"].clone(),
        })
    }

    /// A request of a script that must succeed.
    async fn ask(&mut self, who: Who, method: &str, path: &str, body: Value) -> Result<Value> {
        let told = self.told(who, method, &format!("{API}/{path}"), body).await?;
        ensure!((200..300).contains(&told.status), "{method} {path}: {told:?}");
        Ok(told.body)
    }

    /// The same for one that begins an operation; it has ended when this returns.
    async fn carried_out(&mut self, method: &str, path: &str, body: Value) -> Result<Value> {
        let before = self.stack.deployment.operations().await?.len();
        let told = self.ask(ANNA, method, path, body).await?;
        self.stack.deployment.settled_with(before + 1, PATIENCE).await?;
        Ok(told)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_has_a_cluster_by_the_forms_of_horizon() -> Result<()> {
    let mut dashboard = Dashboard::start().await?;
    let none = Value::Null;
    let wrong = json!({"do": "log_in", "user": ANNA.0, "password": "not hers"});
    let told = dashboard.horizon.ask(wrong).await??;
    ensure!(told == false, "a wrong password was let through: {told}");
    dashboard.log_in(ANNA).await?;
    let page = dashboard.told(ANNA, "GET", PAGE, none.clone()).await?;
    let html = page.body.as_str().context("a page")?;
    ensure!(
        page.status == 200
            && html.contains("<title>Container Infra - Clusters - OpenStack Dashboard</title>")
            && html.contains("horizon.dashboard.container-infra"),
        "{page:?}"
    );

    let networks = dashboard.ask(ANNA, "GET", "networks/", none.clone()).await?;
    // Other tests have external networks in this cloud, too.
    let networks = networks["items"].as_array().context("a list of networks")?;
    ensure!(networks.iter().any(|one| one["name"] == "public"), "{networks:?}");
    let mut form = json!({
        "name": "small", "coe": "kubernetes", "image_id": IMAGE, "flavor_id": "m1.small", "master_flavor_id": "m1.small",
        "keypair_id": "key", "network_driver": "calico", "volume_driver": "cinder", "external_network_id": "public",
        "floating_ip_enabled": true, "docker_volume_size": 3, "dns_nameserver": "9.9.9.9", "labels": "tier=gold,a=b"});
    let template = dashboard
        .ask(ANNA, "POST", "cluster_templates/", form.clone())
        .await?;
    let template = template["uuid"].as_str().context("an id")?.to_owned();
    for flag in [
        "public",
        "hidden",
        "tls_disabled",
        "registry_enabled",
        "master_lb_enabled",
    ] {
        form[flag] = json!(false);
    }
    form["server_type"] = json!("vm");
    form["dns_nameserver"] = json!("8.8.4.4");
    let path = format!("cluster_templates/{template}");
    dashboard.ask(ANNA, "PATCH", &path, form).await?;
    let shown = dashboard.ask(ANNA, "GET", &path, none.clone()).await?;
    ensure!(
        shown["dns_nameserver"] == "8.8.4.4"
            && shown["docker_volume_size"] == 3
            && shown["labels"] == json!({"tier": "gold", "a": "b"}),
        "{shown}"
    );

    let form = json!({
        "discovery_url": null, "create_timeout": 60, "rollback": false, "name": "one", "cluster_template_id": template,
        "keypair": "key", "master_lb_enabled": false, "master_count": 1, "node_count": 2, "labels": {
            "tier": "gold", "availability_zone": "", "auto_scaling_enabled": true, "auto_healing_enabled": false,
            "master_lb_floating_ip_enabled": false, "min_node_count": 1, "max_node_count": 3}});
    let made = dashboard.ask(ANNA, "POST", "clusters/", form).await?;
    let id = made["uuid"].as_str().context("an id")?.to_owned();
    let path = format!("clusters/{id}");
    // As the page does: it asks again until nothing is in progress.
    let listed = wait::until("the cluster to be made", PATIENCE, async || {
        let listed = dashboard.ask(ANNA, "GET", "clusters/", Value::Null).await?;
        ensure!(listed["items"][0]["status"] == "CREATE_COMPLETE", "{listed}");
        Ok(listed)
    })
    .await?;
    let shown = &listed["items"][0];
    ensure!(
        shown["id"] == *id && shown["node_count"] == 2 && shown["labels"]["max_node_count"] == "3",
        "{shown}"
    );
    change(&mut dashboard, &path, &template).await?;
    certificates(&mut dashboard, &id).await?;
    others(&mut dashboard, &path).await?;

    dashboard.carried_out("DELETE", "clusters/", json!([id])).await?;
    dashboard
        .ask(ANNA, "DELETE", "cluster_templates/", json!([template]))
        .await?;
    for kind in ["clusters", "cluster_templates"] {
        let left = dashboard
            .ask(ANNA, "GET", &format!("{kind}/"), none.clone())
            .await?;
        ensure!(left == json!({"items": []}), "{left}");
    }
    dashboard.stack.deployment.settled(PATIENCE).await?;
    Ok(())
}

async fn change(dashboard: &mut Dashboard, path: &str, template: &str) -> Result<()> {
    let none = Value::Null;
    let form = dashboard
        .ask(ANNA, "GET", &format!("{path}/resize"), none.clone())
        .await?;
    ensure!(form["nodegroups"][1]["name"] == "default-worker", "{form}");
    let body = json!({"node_count": 3, "nodegroup": "default-worker"});
    dashboard
        .carried_out("POST", &format!("{path}/resize"), body)
        .await?;
    let body = json!({"cluster_template": template, "max_batch_size": 1, "nodegroup": "default-worker"});
    dashboard
        .carried_out("POST", &format!("{path}/upgrade"), body)
        .await?;
    let shown = dashboard.ask(ANNA, "GET", path, none).await?;
    ensure!(
        shown["node_count"] == 3 && shown["status"] == "UPDATE_COMPLETE",
        "{shown}"
    );
    Ok(())
}

async fn certificates(dashboard: &mut Dashboard, id: &str) -> Result<()> {
    const BEGIN: &str = "BEGIN CERTIFICATE";
    let none = Value::Null;
    let path = format!("certificates/{id}");
    let pem = |told: &Value| told["pem"].as_str().unwrap_or_default().to_owned();
    let first = dashboard.ask(ANNA, "GET", &path, none.clone()).await?;
    ensure!(pem(&first).contains(BEGIN), "{first}");
    let csr = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/csr/rsa-2048.pem"))?;
    let body = json!({"cluster_uuid": id, "csr": csr});
    let signed = dashboard.ask(ANNA, "POST", "certificates/", body).await?;
    ensure!(
        pem(&signed).contains(BEGIN) && pem(&signed) != pem(&first),
        "{signed}"
    );
    let config = format!("clusters/{id}/config/download");
    let config = dashboard.ask(ANNA, "GET", &config, none.clone()).await?;
    let config = config.as_str().context("a file")?;
    ensure!(
        config.contains("https://192.0.2.1:6443") && config.contains("client-certificate-data"),
        "{config}"
    );
    // It is carried out, but magnum-ui fails with the answer, and with Magnum's own: `dashboard_forms` has it, too.
    let before = dashboard.stack.deployment.operations().await?.len();
    let told = dashboard
        .told(ANNA, "DELETE", &format!("{API}/{path}"), json!([id]))
        .await?;
    ensure!(
        told.status == 500 && told.body == "'_io.StringIO' object has no attribute 'items'",
        "magnum-ui can rotate a certificate: say so in docs/clients.md: {told:?}"
    );
    dashboard
        .stack
        .deployment
        .settled_with(before + 1, PATIENCE)
        .await?;
    let second = dashboard.ask(ANNA, "GET", &path, none.clone()).await?;
    ensure!(
        pem(&second).contains(BEGIN) && pem(&second) != pem(&first),
        "{second}"
    );
    dashboard
        .carried_out("PATCH", &format!("credentials/{id}"), none)
        .await?;
    Ok(())
}

/// A reader, somebody of another project, and its administrator.
async fn others(dashboard: &mut Dashboard, path: &str) -> Result<()> {
    let none = Value::Null;
    for who in [RITA, BERT, BOSS] {
        dashboard.log_in(who).await?;
    }
    let listed = dashboard.ask(BERT, "GET", "clusters/", none.clone()).await?;
    ensure!(listed == json!({"items": []}), "{listed}");
    for (who, refusal) in [(RITA, "(HTTP 403)"), (BERT, "(HTTP 404)")] {
        let body = json!({"node_count": 1, "nodegroup": "default-worker"});
        let told = dashboard
            .told(who, "POST", &format!("{API}/{path}/resize"), body)
            .await?;
        // Horizon answers 500 whatever Magnum does; what Magnum said is in it.
        let is_refused = told.body.as_str().is_some_and(|text| text.ends_with(refusal));
        ensure!(told.status == 500 && is_refused, "{who:?}: {told:?}");
    }
    let stats = dashboard.ask(ANNA, "GET", "stats/", none.clone()).await?;
    ensure!(stats["stats"] == json!({"clusters": 1, "nodes": 4}), "{stats}");
    let shown = dashboard.ask(ANNA, "GET", path, none.clone()).await?;
    let project = shown["project_id"].as_str().context("a project")?;
    let mut quota = json!({"project_id": project, "resource": "Cluster", "hard_limit": 5});
    dashboard.ask(BOSS, "POST", "quotas/", quota.clone()).await?;
    quota["hard_limit"] = json!(7);
    let path = format!("quotas/{project}/Cluster");
    dashboard.ask(BOSS, "PATCH", &path, quota).await?;
    let listed = dashboard.ask(BOSS, "GET", "quotas/", none.clone()).await?;
    ensure!(listed["items"][0]["hard_limit"] == 7, "{listed}");
    let body = json!({"project_id": project, "resource": "Cluster"});
    dashboard.ask(BOSS, "DELETE", &path, body).await?;
    let listed = dashboard.ask(BOSS, "GET", "quotas/", none).await?;
    ensure!(listed == json!({"items": []}), "{listed}");
    Ok(())
}
