//! The shipped example drivers do what their files say: a cluster is built, resized and taken away by the programs
//! under `deploy/drivers`, as an operator would install them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::Deployment;
use magnum_tests::files::copy_folder;
use magnum_tests::oslo_peer::tool;
use magnum_tests::{Backend, wait};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(90);

/// A tenant's words that Ansible would run if it took them for a template; they would make this file.
fn hostile(marker: &Path) -> String {
    format!(
        "{{{{ lookup('ansible.builtin.pipe', 'touch {}') }}}}",
        marker.display()
    )
}

/// Installs an example driver in the deployment, with some lines of its manifest changed.
fn install(deployment: &mut Deployment, name: &str, changes: &[(&str, String)]) -> Result<PathBuf> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy/drivers")
        .join(name);
    let path = deployment.folder.join("drivers");
    let to = path.join(name);
    copy_folder(&from, &to)?;
    let mut manifest = fs::read_to_string(from.join("driver.toml"))?;
    for (line, changed) in changes {
        ensure!(manifest.contains(line), "driver.toml has no `{line}` any more");
        manifest = manifest.replace(line, changed);
    }
    fs::write(to.join("driver.toml"), manifest)?;
    deployment.set("drivers", "driver_path", path.display());
    deployment.set("drivers", "enabled_beta_drivers", name);
    Ok(to)
}

/// Builds a cluster, resizes it and takes it away; `nodes` counts what exists after each step.
async fn lives(
    deployment: &Deployment,
    driver: &str,
    labels: Value,
    nodes: impl Fn(&str) -> Result<usize>,
) -> Result<()> {
    let api = deployment.api().await?;
    let rest = &api.rest;
    let cluster = rest
        .create_cluster(&rest.create_template_for("t", driver).await?, "c", labels)
        .await?;
    rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
    ensure!(
        nodes(&cluster)? == 2,
        "{} nodes instead of a master and a worker",
        nodes(&cluster)?
    );
    rest.resize(&cluster, 3).await?.expect(202)?;
    rest.wait_status(&cluster, "UPDATE_COMPLETE", PATIENCE).await?;
    ensure!(
        nodes(&cluster)? == 4,
        "{} nodes instead of a master and three workers",
        nodes(&cluster)?
    );
    rest.delete(&format!("/clusters/{cluster}")).await?.expect(204)?;
    rest.wait_gone(&cluster, PATIENCE).await?;
    ensure!(nodes(&cluster)? == 0, "something is left of the cluster");
    deployment.settled(PATIENCE).await?;
    Ok(())
}

/// Installs `disk`, which obeys labels. Returns the folder that it builds in.
pub(crate) fn install_disk(deployment: &mut Deployment) -> Result<PathBuf> {
    let obeys = ("obey_labels = false", "obey_labels = true".to_owned());
    install_disk_with(deployment, &[obeys])
}

fn install_disk_with(deployment: &mut Deployment, changes: &[(&str, String)]) -> Result<PathBuf> {
    let root = deployment.folder.join("built");
    let manifest =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/drivers/disk/driver.toml"))?;
    let root_line = manifest
        .lines()
        .find(|line| line.starts_with("root = "))
        .context("the manifest names no root")?;
    let root_there = format!("root = {:?}", root.display().to_string());
    install(
        deployment,
        "disk",
        &[&[(root_line, root_there)][..], changes].concat(),
    )?;
    Ok(root)
}

#[tokio::test(flavor = "multi_thread")]
async fn disk_builds_nodes_in_a_folder() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let root = install_disk(&mut deployment)?;
    let _conductor = deployment.conductor("one").await?;
    let nodes = |cluster: &str| {
        let Ok(groups) = fs::read_dir(root.join("clusters").join(cluster)) else {
            return Ok(0);
        };
        let groups = groups.filter_map(|group| fs::read_dir(group.ok()?.path()).ok());
        Ok(groups.flatten().count())
    };
    lives(&deployment, "disk", json!({}), nodes).await
}

/// Labels are a tenant's words: as it is shipped, none makes the driver fail, wait or lie.
#[tokio::test(flavor = "multi_thread")]
async fn disk_obeys_labels_only_where_its_settings_say_so() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    install_disk_with(&mut deployment, &[])?;
    let conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let rest = &api.rest;
    let template = rest.create_template_for("t", "disk").await?;
    let labels = json!({"disk_fail": "permanent", "disk_fail_on": "all", "disk_delay_ms": "600000"});
    let cluster = rest.create_cluster(&template, "c", labels).await?;
    rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
    let log = conductor.log();
    ensure!(
        log.contains("are ignored: disk_fail, disk_fail_on, disk_delay_ms"),
        "{log}"
    );
    Ok(())
}

/// So are counts.
#[tokio::test(flavor = "multi_thread")]
async fn more_nodes_than_a_drivers_settings_allow_are_refused_and_can_be_deleted() -> Result<()> {
    for driver in ["disk", "ansible"] {
        let mut deployment = Deployment::new(Backend::Sqlite).await?;
        match driver {
            "disk" => drop(install_disk(&mut deployment)?),
            _ => drop(install_ansible(&mut deployment)?),
        }
        let _conductor = deployment.conductor("one").await?;
        let api = deployment.api().await?;
        let rest = &api.rest;
        let template = rest.create_template_for("t", driver).await?;
        let body = json!({
            "name": "c", "cluster_template_id": template, "keypair": "key", "node_count": i32::MAX,
        });
        let accepted = rest.post("/clusters", &body).await?.expect(202)?;
        let cluster = accepted["uuid"].as_str().context("no uuid")?;
        let failed = rest.wait_status(cluster, "CREATE_FAILED", PATIENCE).await?;
        let reason = failed["status_reason"].as_str().unwrap_or_default();
        ensure!(
            reason.contains("this driver builds at most 1000 nodes for a cluster, not 2147483648"),
            "{driver}: {reason}"
        );
        rest.delete(&format!("/clusters/{cluster}")).await?.expect(204)?;
        rest.wait_gone(cluster, PATIENCE).await?;
        deployment.settled(PATIENCE).await?;
    }
    Ok(())
}

/// What `disk` has written down of the nodes of a cluster, by node.
pub(crate) fn disk_nodes(root: &Path, cluster: &str) -> Result<BTreeMap<String, Value>> {
    let folder = root.join("clusters").join(cluster);
    let mut nodes = BTreeMap::new();
    for group in fs::read_dir(&folder)?.filter_map(Result::ok) {
        let Ok(of_group) = fs::read_dir(group.path()) else {
            continue;
        };
        for node in of_group.filter_map(Result::ok) {
            let name = node.path().strip_prefix(&folder)?.display().to_string();
            let text = fs::read_to_string(node.path().join("node.json"))?;
            nodes.insert(name, serde_json::from_str(&text)?);
        }
    }
    Ok(nodes)
}

#[tokio::test(flavor = "multi_thread")]
async fn disk_reboots_and_rebuilds_the_nodes_that_are_meant() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let root = install_disk(&mut deployment)?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let rest = &api.rest;
    let template = rest.create_template_for("t", "disk").await?;
    let cluster = rest.create_cluster(&template, "c", json!({})).await?;
    rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
    let act = async |action: &str, body: Value, leads_to: &str| -> Result<Value> {
        let path = format!("/clusters/{cluster}/actions/{action}");
        let accepted = rest.post(&path, &body).await?.expect(202)?;
        ensure!(accepted == json!({"uuid": cluster}), "{accepted}");
        // The 202 comes after the cluster's row shows it, so an old status is not taken for the new one.
        rest.wait_status(&cluster, leads_to, PATIENCE).await
    };
    act("reboot", json!({"type": "soft"}), "UPDATE_COMPLETE").await?;
    let nodes = disk_nodes(&root, &cluster)?;
    ensure!(nodes.len() == 2, "{nodes:?}");
    ensure!(
        nodes
            .values()
            .all(|node| node["boots"] == 1 && node["last_boot"] == "soft"),
        "{nodes:?}"
    );

    let worker = nodes
        .keys()
        .find(|name| name.starts_with("default-worker"))
        .context("a worker")?;
    let body = json!({"type": "hard", "nodegroup": "default-worker", "nodes": [worker]});
    act("reboot", body, "UPDATE_COMPLETE").await?;
    for (name, node) in disk_nodes(&root, &cluster)? {
        let expected = if name == *worker { (2, "hard") } else { (1, "soft") };
        ensure!(
            node["boots"] == expected.0 && node["last_boot"] == expected.1,
            "{name}: {node}"
        );
    }

    let body = json!({"nodes": ["nowhere"]});
    let failed = act("rebuild", body, "UPDATE_FAILED").await?;
    let reason = failed["status_reason"].as_str().unwrap_or_default();
    ensure!(reason.contains("there is no node nowhere"), "{reason}");

    act(
        "rebuild",
        json!({"nodegroup": "default-worker"}),
        "UPDATE_COMPLETE",
    )
    .await?;
    for (name, node) in disk_nodes(&root, &cluster)? {
        ensure!(
            node["boots"].is_null() == (name == *worker),
            "only the worker is new: {name}: {node}"
        );
    }
    deployment.settled(PATIENCE).await?;
    Ok(())
}

/// Installs `ansible`. Returns the folder that it builds in.
fn install_ansible(deployment: &mut Deployment) -> Result<PathBuf> {
    let state = deployment.folder.join("ansible");
    let command = tool("ansible-playbook")?;
    let changes = [
        (
            "command = \"ansible-playbook\"",
            format!("command = {:?}", command.display().to_string()),
        ),
        (
            "state_directory = \"/var/lib/magnum/ansible\"",
            format!("state_directory = {:?}", state.display().to_string()),
        ),
    ];
    install(deployment, "ansible", &changes)?;
    Ok(state)
}

#[tokio::test(flavor = "multi_thread")]
async fn ansible_runs_its_playbooks_and_no_tenants_words() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let state = install_ansible(&mut deployment)?;
    let _conductor = deployment.conductor("one").await?;
    let marker = deployment.folder.join("obeyed");
    let words = hostile(&marker);
    let nodes = |cluster: &str| {
        let Ok(words) = fs::read_to_string(state.join(cluster).join("words.json")) else {
            return Ok(0);
        };
        ensure!(
            words.contains("lookup("),
            "the label is not taken literally:\n{words}"
        );
        Ok(inventory(&state, cluster)?.1.len())
    };
    lives(&deployment, "ansible", json!({ "note": words }), nodes).await?;
    ensure!(!marker.exists(), "a label was run as a template");
    Ok(())
}

/// The groups and the hosts of an inventory, which has to hold nothing else.
fn inventory(state: &Path, cluster: &str) -> Result<(Vec<String>, Vec<String>)> {
    let text = fs::read_to_string(state.join(cluster).join("nodes.ini"))?;
    let (mut groups, mut hosts) = (Vec::new(), Vec::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        let group = line
            .strip_prefix("[group_")
            .and_then(|rest| rest.strip_suffix(']'));
        let (words, uuid, found) = match (group, line.rsplit_once('-')) {
            (Some(group), _) => (group, group.replace('_', "-"), &mut groups),
            (None, Some((uuid, number))) => {
                number.parse::<u32>().with_context(|| text.clone())?;
                (line, uuid.to_owned(), &mut hosts)
            }
            _ => anyhow::bail!("{line:?} in\n{text}"),
        };
        uuid::Uuid::parse_str(&uuid).with_context(|| format!("{line:?} in\n{text}"))?;
        found.push(words.to_owned());
    }
    Ok((groups, hosts))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_of_a_node_group_is_no_line_of_ansibles_inventory() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let state = install_ansible(&mut deployment)?;
    // Only a cluster with an address gets node groups; those of an operator's own playbook have one.
    let playbook = deployment.folder.join("drivers/ansible/templates/create.yml");
    let text = fs::read_to_string(&playbook)?;
    let with_address = text.replace(
        "{'cluster': {",
        "{'cluster': {'api_address': 'https://192.0.2.1:6443', ",
    );
    ensure!(text != with_address, "{text}");
    fs::write(&playbook, with_address)?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let rest = &api.rest;
    let template = rest.create_template_for("t", "ansible").await?;
    let cluster = rest.create_cluster(&template, "c", json!({})).await?;
    rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
    let marker = deployment.folder.join("obeyed");
    let groups = format!("/clusters/{cluster}/nodegroups");
    // Where the name is a line of its own, this host is reached without ssh; elsewhere it is a variable, and run.
    let several_lines = json!({"name": "x]\nlocalhost ansible_connection=local\n[y", "node_count": 2});
    let refused = rest.post(&groups, &several_lines).await?;
    ensure!(
        refused.status.as_u16() == 400 && refused.detail().contains("field/attribute name"),
        "{refused:?}"
    );
    let name = format!("x] a={} [y", hostile(&marker));
    let group = json!({"name": name, "node_count": 2});
    let added = rest.post(&groups, &group).await?.expect(202)?;
    rest.wait_status(&cluster, "UPDATE_COMPLETE", PATIENCE).await?;
    let (groups, hosts) = inventory(&state, &cluster)?;
    ensure!(groups.len() == 3 && hosts.len() == 4, "{groups:?} {hosts:?}");
    let words = fs::read_to_string(state.join(&cluster).join("words.json"))?;
    let words: Value = serde_json::from_str(&words)?;
    let uuid = added["uuid"].as_str().context("no uuid")?;
    ensure!(words["node_groups"][uuid] == name.as_str(), "{words}");
    ensure!(!marker.exists(), "a name was run as a template");
    deployment.settled(PATIENCE).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_ansible_the_status_reason_names_the_package() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let missing = (
        "command = \"ansible-playbook\"",
        "command = \"no-such-playbook-runner\"".to_owned(),
    );
    install(&mut deployment, "ansible", &[missing])?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template_for("t", "ansible").await?;
    let cluster = api.rest.create_cluster(&template, "c", json!({})).await?;
    let failed = api.rest.wait_status(&cluster, "CREATE_FAILED", PATIENCE).await?;
    let reason = failed["status_reason"].as_str().unwrap_or_default();
    ensure!(
        reason.contains("no-such-playbook-runner") && reason.contains("install Ansible"),
        "{reason}"
    );
    deployment.settled(PATIENCE).await?;
    Ok(())
}

/// As its users see it: the API's answer, a whole interval at most after the cluster died.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_cluster_of_disk_is_unhealthy_within_an_interval() -> Result<()> {
    const INTERVAL: Duration = Duration::from_secs(4);
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let root = deployment.folder.join("built");
    deployment.set_environment("DISK_DRIVER_ROOT", &root.display().to_string());
    install(&mut deployment, "disk", &[])?;
    deployment.set("kubernetes", "health_polling_interval", INTERVAL.as_secs());
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let rest = &api.rest;
    let template = rest.create_template_for("t", "disk").await?;
    let cluster = rest.create_cluster(&template, "c", json!({})).await?;
    rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
    let becomes = async |health: &str| {
        wait::until(health, PATIENCE, async || {
            let shown = rest.get(&format!("/clusters/{cluster}")).await?.expect(200)?;
            ensure!(shown["health_status"] == health, "{}", shown["health_status"]);
            anyhow::Ok(shown)
        })
        .await
    };
    let healthy = becomes("HEALTHY").await?;
    ensure!(healthy["health_status_reason"]["api"] == "ok", "{healthy}");
    fs::remove_dir_all(root.join("clusters").join(&cluster))?;
    let died = Instant::now();
    let dead = becomes("UNHEALTHY").await?;
    // The program has to be started, too.
    ensure!(
        died.elapsed() < INTERVAL + Duration::from_secs(3),
        "{:?}",
        died.elapsed()
    );
    ensure!(dead["status"] == "CREATE_COMPLETE", "{dead}");
    ensure!(
        dead["health_status_reason"]["default-worker-0.Ready"] == "False",
        "{dead}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interval_of_zero_or_less_turns_health_checks_off_and_nothing_else() -> Result<()> {
    for interval in ["0", "-1"] {
        let mut deployment = Deployment::new(Backend::Sqlite).await?;
        let root = deployment.folder.join("built");
        deployment.set_environment("DISK_DRIVER_ROOT", &root.display().to_string());
        install(&mut deployment, "disk", &[])?;
        deployment.set("kubernetes", "health_polling_interval", interval);
        let _conductor = deployment.conductor("one").await?;
        let api = deployment.api().await?;
        let template = api.rest.create_template_for("t", "disk").await?;
        let cluster = api.rest.create_cluster(&template, "c", json!({})).await?;
        let built = api
            .rest
            .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
            .await?;
        ensure!(built["health_status"].is_null(), "{built}");
    }
    Ok(())
}
