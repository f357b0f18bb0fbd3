//! rally, with which deployments are measured: its scenarios of Magnum pass, and leave nothing behind.
//!
//! All of them are run but those of pods and replication controllers, which ask the Kubernetes API of the cluster that they
//! made; no machine comes of a cluster here. How long a request takes is not judged.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::openstack::PASSWORD;
use magnum_tests::process::{Finished, Launch};
use magnum_tests::rest::IMAGE;
use magnum_tests::run_dir::{base, run_dir};
use reqwest::Method;
use serde_json::{Value, json};

use super::world::{ANNA, PATIENCE, Stack, Who};

/// A folder that rally works in, and its database.
struct Rally {
    folder: PathBuf,
}

impl Rally {
    /// For a deployment of which one user is known.
    async fn new(stack: &Stack, who: Who) -> Result<Self> {
        let folder = run_dir()?.folder("rally")?;
        let rally = Self { folder };
        let database = rally.folder.join("rally.sqlite");
        // How often it looks at a new cluster, the first time after 5 s without this.
        let config = format!(
            "[database]\nconnection = sqlite:///{}\n\
             [openstack]\nmagnum_cluster_create_prepoll_delay = 0\nmagnum_cluster_create_poll_interval = 0.5\n",
            database.display()
        );
        std::fs::write(rally.folder.join("rally.conf"), config)?;
        let login = |user: &str, project: &str| {
            json!({
                "username": user, "password": PASSWORD, "project_name": project,
                "user_domain_name": "Default", "project_domain_name": "Default"})
        };
        let deployment = json!({"existing@openstack": {
            "auth_url": stack.cloud.openstack.keystone_url(), "region_name": stack.region, "endpoint_type": "public",
            "admin": login("admin", "admin"), "users": [login(who.0, who.1)]}});
        std::fs::write(rally.folder.join("deployment.json"), deployment.to_string())?;
        rally
            .run(&["db", "create"])
            .await
            .and_then(|ended| succeeded(&ended))?;
        let create = ["env", "create", "--name", "ours", "--spec", "deployment.json"];
        rally.run(&create).await.and_then(|ended| succeeded(&ended))?;
        Ok(rally)
    }

    async fn run(&self, args: &[&str]) -> Result<Finished> {
        let program = base().join("rally/bin/rally");
        ensure!(
            program.exists(),
            "{} is missing: tests/run makes it",
            program.display()
        );
        let mut command = Command::new(program);
        command.current_dir(&self.folder);
        Launch::command("rally", command)
            .args(["--config-file", "rally.conf"])
            .args(args)
            .env("HOME", &self.folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .finish()
            .await
    }

    /// Runs the task; what its report has of each scenario.
    async fn task(&self) -> Result<Vec<Value>> {
        let task = base().with_file_name("peers/rally/task.json");
        let task = task.to_str().context("a path")?;
        let image = json!({ "image": IMAGE }).to_string();
        let start = ["task", "start", "--task", task, "--task-args", &image];
        let started = self.run(&start).await?;
        let report = ["task", "report", "--json", "--out", "report.json"];
        let report = self.run(&report).await?;
        succeeded(&report).with_context(|| started.stdout.clone())?;
        let report: Value = serde_json::from_str(&std::fs::read_to_string(self.folder.join("report.json"))?)?;
        let subtasks = report["tasks"][0]["subtasks"].as_array().context("subtasks")?;
        let workloads = subtasks.iter().map(|one| one["workloads"][0].clone());
        Ok(workloads.collect())
    }
}

/// How a scenario ended.
#[derive(Debug, PartialEq, Eq)]
struct Ended {
    scenario: String,
    iterations: u64,
    failed: u64,
    /// What else may go wrong: what it needs was not there, or could not be removed.
    errors: Vec<String>,
}

impl Ended {
    fn well(scenario: &str, iterations: u64) -> Self {
        let scenario = scenario.to_owned();
        Self {
            scenario,
            iterations,
            failed: 0,
            errors: Vec::new(),
        }
    }

    fn of(workload: &Value) -> Self {
        let names = workload["scenario"].as_object().into_iter().flatten();
        let criteria = workload["sla_results"]["sla"].as_array().into_iter().flatten();
        let missed = criteria.filter(|one| one["success"] != true);
        let contexts = workload["contexts_results"].as_array().into_iter().flatten();
        let ended = contexts.flat_map(|one| [&one["setup"]["error"], &one["cleanup"]["error"]]);
        Self {
            scenario: names.map(|(name, _)| name.as_str()).collect(),
            iterations: workload["total_iteration_count"].as_u64().unwrap_or_default(),
            failed: workload["failed_iteration_count"].as_u64().unwrap_or_default(),
            errors: missed
                .map(|one| &one["detail"])
                .chain(ended.filter(|error| !error.is_null()))
                .map(Value::to_string)
                .collect(),
        }
    }
}

fn succeeded(finished: &Finished) -> Result<()> {
    ensure!(
        finished.status.success(),
        "{}{}",
        finished.stdout,
        finished.stderr
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scenarios_of_rally_pass_and_leave_nothing() -> Result<()> {
    let stack = Stack::start().await?;
    stack.list_the_cloud().await?;
    let rally = Rally::new(&stack, ANNA).await?;
    let told = rally.task().await?;
    let ended: Vec<_> = told.iter().map(Ended::of).collect();
    let expected = [
        ("MagnumClusters.create_and_list_clusters", 4),
        ("MagnumClusters.list_clusters", 20),
        ("MagnumClusterTemplates.list_cluster_templates", 20),
    ];
    let expected: Vec<_> = expected
        .map(|(scenario, iterations)| Ended::well(scenario, iterations))
        .into();
    ensure!(ended == expected, "{ended:#?}\n{told:#?}");

    // Four clusters are the first scenario's own, one is made for the second.
    let operations = stack.deployment.settled(PATIENCE).await?;
    for kind in ["cluster_create", "cluster_delete"] {
        let of_kind = operations
            .iter()
            .filter(|one| one["kind"] == kind && one["state"] == "succeeded");
        ensure!(of_kind.count() == 5, "{kind}: {operations:#?}");
    }
    let session = stack.cloud.openstack.log_in(ANNA.0, ANNA.1).await?;
    let rest = stack.rest().with_token(session.token());
    for kind in ["clusters", "clustertemplates"] {
        let left = rest
            .send(Method::GET, &format!("/{kind}"), None)
            .await?
            .expect(200)?;
        ensure!(left[kind] == json!([]), "{left}");
    }
    Ok(())
}
