//! Ansible's collection openstack.cloud: the playbook of an author who keeps a template and a cluster in it.
//!
//! The collection cannot change a cluster, and its `wait` for a new one cannot end: it waits for the status `active`, which
//! no cluster of Magnum's has. So the playbook waits by asking again, which changes nothing.

use std::process::Command;

use anyhow::{Result, ensure};
use magnum_tests::openstack::PASSWORD;
use magnum_tests::oslo_peer::tool;
use magnum_tests::process::{Finished, Launch};
use magnum_tests::rest::IMAGE;
use magnum_tests::run_dir::{base, run_dir};
use serde_json::{Value, json};

use super::world::{ANNA, PATIENCE, RITA, Stack, Who};

/// Plays the playbook as somebody; how that ended, and what each task told.
async fn play(stack: &Stack, who: Who) -> Result<(Finished, Value)> {
    let folder = run_dir()?.folder("ansible")?;
    let told = folder.join("told.json");
    let python = base().join("ansible/bin/python");
    let collections = base().join("ansible-collections");
    for needed in [&python, &collections.join("made-from")] {
        ensure!(
            needed.exists(),
            "{} is missing: tests/run makes it",
            needed.display()
        );
    }
    let variables = json!({
        "ansible_python_interpreter": python, "image": IMAGE, "region": stack.region, "told": told,
        "login": {
            "auth_url": stack.cloud.openstack.keystone_url(), "username": who.0, "password": PASSWORD,
            "project_name": who.1, "user_domain_name": "Default", "project_domain_name": "Default"},
    });
    let playbook = base().with_file_name("peers/ansible/life.yml");
    let launch = Launch::command("ansible-playbook", Command::new(tool("ansible-playbook")?))
        .args([
            "--inventory",
            "localhost,",
            "--connection",
            "local",
            "--extra-vars",
        ])
        .args([variables.to_string()])
        .args([playbook]);
    // It keeps files at home.
    let finished = launch
        .env("HOME", &folder)
        .env("ANSIBLE_COLLECTIONS_PATH", &collections)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .finish()
        .await?;
    let told = match std::fs::read_to_string(&told) {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => Value::Null,
    };
    Ok((finished, told))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_playbook_makes_and_removes_a_cluster_and_changes_nothing_when_played_again() -> Result<()> {
    let stack = Stack::start().await?;
    let (finished, told) = play(&stack, ANNA).await?;
    ensure!(
        finished.status.success(),
        "{}{}",
        finished.stdout,
        finished.stderr
    );
    for (name, changed) in [
        ("template", true),
        ("template_again", false),
        ("cluster_in_check_mode", true),
        ("cluster", true),
        ("made_cluster", false),
        ("no_cluster", true),
        ("no_cluster_again", false),
        ("no_template", true),
    ] {
        ensure!(told[name]["changed"] == changed, "{name}: {told:#}");
    }
    let template = &told["template"]["cluster_template"];
    ensure!(
        template["network_driver"] == "calico" && template["labels"] == json!({"tier": "gold"}),
        "{template}"
    );
    let cluster = &told["made_cluster"]["cluster"];
    ensure!(
        cluster["status"] == "CREATE_COMPLETE" && cluster["node_count"] == 2 && cluster["keypair"] == "key",
        "{cluster}"
    );
    let operations = stack.deployment.settled(PATIENCE).await?;
    ensure!(
        operations.len() == 2,
        "a creation and a deletion: {operations:#?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_playbook_of_a_reader_fails_and_says_which_rule_forbids_it() -> Result<()> {
    let stack = Stack::start().await?;
    let (finished, _) = play(&stack, RITA).await?;
    ensure!(
        !finished.status.success() && finished.stdout.contains("clustertemplate:create"),
        "{}{}",
        finished.stdout,
        finished.stderr
    );
    ensure!(
        stack.deployment.operations().await?.is_empty(),
        "a reader has begun an operation"
    );
    Ok(())
}
