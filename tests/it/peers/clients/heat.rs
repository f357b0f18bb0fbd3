//! Heat's resources `OS::Magnum::ClusterTemplate` and `OS::Magnum::Cluster`: a real Heat makes, changes and deletes a cluster
//! of ours as part of a tenant's stack. Heat waits for the cluster by looking at it; the tenant waits for the stack, with
//! `openstack stack … --wait`.
//!
//! Nothing in this stack is a stand-in: of the doubles in `tests/testbed/heat` it has none. A cluster that cannot be made is
//! not asked for: Heat would delete it and ask again, five times, for more than a minute.

use anyhow::{Context as _, Result, ensure};
use magnum_tests::heat::Heat;
use magnum_tests::keystone_people::Person;
use magnum_tests::openstack::PASSWORD;
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::rest::IMAGE;
use magnum_tests::run_dir::base;
use serde_json::{Value, json};

use super::world::{PATIENCE, Stack};

/// A tenant with the command `openstack stack`.
struct Tenant {
    stack: Stack,
    client: OsloPeer,
    person: Person,
    file: String,
}

impl Tenant {
    async fn new() -> Result<Self> {
        let (heat, stack) = tokio::try_join!(Heat::shared(), Stack::start())?;
        stack.list_the_cloud().await?;
        // Heat asks the services of the region that its client names.
        let url = format!("http://{}/v1/%(project_id)s", heat.address());
        let openstack = stack.cloud.openstack;
        openstack
            .list(&stack.region, "orchestration", "public", &url)
            .await?;
        let person = heat.person().await?;
        stack.cloud.key_pair(&person, "key").await?;
        let keystone = openstack.keystone_url();
        let client = OsloPeer::start("openstack_clients.py", &[&keystone, &stack.region, PASSWORD]).await?;
        let file = base().with_file_name("peers/heat/cluster.yaml");
        Ok(Self {
            stack,
            client,
            person,
            file: file.to_str().context("a path")?.to_owned(),
        })
    }

    /// Runs `openstack LINE`, in which FILE is the template; whether it succeeded, and all that it told.
    async fn run(&mut self, line: &str) -> Result<(bool, Value)> {
        let words = line.split_whitespace();
        let args: Vec<&str> = words
            .map(|word| if word == "FILE" { &self.file } else { word })
            .collect();
        let folder = &self.stack.deployment.folder;
        let (user, project) = (&self.person.name, &self.person.project);
        let request = json!({"do": "cli", "user": user, "project": project, "args": args, "folder": folder});
        let told = self.client.ask(request).await??;
        Ok((told["status"] == 0, told))
    }

    async fn done(&mut self, line: &str) -> Result<Value> {
        let (succeeded, told) = self.run(line).await?;
        ensure!(succeeded, "{line}: {told:#}");
        Ok(told["out"].clone())
    }

    /// The value of an output of the stack.
    async fn output(&mut self, name: &str) -> Result<Value> {
        let line = format!("stack output show one {name} -f json");
        Ok(self.done(&line).await?["output_value"].clone())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stack_of_heat_makes_changes_and_deletes_a_cluster() -> Result<()> {
    let mut tenant = Tenant::new().await?;
    let create =
        format!("stack create -t FILE --parameter image={IMAGE} --parameter nodes=2 --wait --poll 1 one");
    tenant.done(&create).await?;
    let api = tenant.output("api").await?;
    ensure!(api == "https://192.0.2.1:6443", "{api}");
    let status = tenant.output("status").await?;
    ensure!(status == "CREATE_COMPLETE", "{status}");
    let id = tenant.output("cluster").await?;
    let shown = tenant.done("coe cluster show stacked -f json").await?;
    ensure!(
        shown["uuid"] == id
            && shown["node_count"] == 2
            && shown["create_timeout"] == 30
            && shown["keypair"] == "key",
        "{shown}"
    );
    let shown = tenant.done("coe cluster template show stacked -f json").await?;
    ensure!(
        shown["dns_nameserver"] == "9.9.9.9" && shown["docker_volume_size"] == 5,
        "{shown}"
    );

    tenant
        .done("stack update --existing --parameter nodes=3 --wait one")
        .await?;
    // Heat may show an output as it was before: the cluster itself tells.
    let shown = tenant.done("coe cluster show stacked -f json").await?;
    ensure!(shown["node_count"] == 3, "{shown}");

    tenant.done("stack delete --yes --wait one").await?;
    for kind in ["cluster", "cluster template"] {
        let left = tenant.done(&format!("coe {kind} list -f json")).await?;
        ensure!(left == json!([]), "{left}");
    }
    let operations = tenant.stack.deployment.settled(PATIENCE).await?;
    let kinds: Vec<_> = operations
        .iter()
        .map(|one| (&one["kind"], &one["state"]))
        .collect();
    ensure!(operations.len() == 3, "{kinds:?}");
    Ok(())
}
