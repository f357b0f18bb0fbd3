//! A tenant's cluster of Magnum 22's Heat driver under our API and conductor, by the commands of `openstack coe`: after
//! each what the client shows agrees with what Heat has, and in the end nothing is left of it anywhere.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_db::Database;
use magnum_tests::heat::Heat;
use magnum_tests::heat_deployment::HeatDeployment;
use magnum_tests::heat_stacks::{Stack, Stacks};
use magnum_tests::keystone_people::Person;
use magnum_tests::openstack_command::OpenstackCommand;
use magnum_tests::{probe, wait};
use serde_json::{Value, json};

/// A cluster of two nodes has some 80 resources in nested stacks.
const PATIENCE: Duration = Duration::from_secs(240);

/// A tenant with the command `openstack`, and with an eye on Heat.
struct Tenant {
    heated: HeatDeployment,
    person: Person,
    openstack: OpenstackCommand,
    stacks: Stacks,
}

impl Tenant {
    async fn new() -> Result<Self> {
        let heated = HeatDeployment::start().await?;
        let person = heated.cloud.person().await?;
        let url = heated.cloud.heat.openstack.keystone_url();
        Ok(Self {
            openstack: OpenstackCommand::start(
                &url,
                &heated.region,
                &person.name,
                &person.project,
                &heated.deployment,
            )
            .await?,
            stacks: heated.cloud.heat.stacks(&person).await?,
            heated,
            person,
        })
    }

    /// Runs `openstack coe LINE`, which must succeed; what it printed.
    async fn run(&mut self, line: &str) -> Result<Value> {
        self.openstack.coe(line).await
    }

    /// The same for a command that begins an operation. When it has ended well, the cluster has this status.
    async fn change(&mut self, line: &str, status: &str) -> Result<Value> {
        self.run(line).await?;
        let operations = match self.heated.deployment.settled(PATIENCE).await {
            Ok(operations) => operations,
            Err(error) => {
                // Where Heat does not tell either, that is not why the test fails.
                let unfinished = self.stacks.unfinished().await;
                let unfinished = unfinished.unwrap_or_else(|error| format!("{error:#}"));
                return Err(error.context(format!("{line}; in Heat: {unfinished}")));
            }
        };
        let failed: Vec<&Value> = operations
            .iter()
            .filter(|one| one["state"] != "succeeded")
            .collect();
        ensure!(failed.is_empty(), "{line}: {failed:#?}");
        let shown = self.run("cluster show heated -f json").await?;
        ensure!(shown["status"] == status, "{line}: {shown}");
        ensure!(shown["status_reason"].is_null(), "{line}: {shown}");
        Ok(shown)
    }

    /// A node group, which has the status of its stack, and addresses of so many nodes.
    async fn node_group(&mut self, name: &str, status: &str, nodes: usize) -> Result<(Value, Stack)> {
        let shown = self.run(&format!("nodegroup show heated {name} -f json")).await?;
        let addresses = shown["node_addresses"].as_array().map_or(0, Vec::len);
        ensure!(
            shown["status"] == status && shown["node_count"] == nodes && addresses == nodes,
            "{shown}"
        );
        let stack = self
            .stacks
            .show(shown["stack_id"].as_str().context("a stack")?)
            .await?;
        ensure!(stack.status == status, "{stack:?}");
        Ok((shown, stack))
    }

    /// Names of the project's stacks, the oldest first.
    async fn stack_names(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = self
            .stacks
            .list()
            .await?
            .into_iter()
            .map(|one| one.name)
            .collect();
        names.sort();
        Ok(names)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_makes_changes_and_deletes_a_cluster_of_magnum_22s_heat_driver() -> Result<()> {
    let _turn = Heat::turn().await?;
    let mut tenant = Tenant::new().await?;
    let uuid = create(&mut tenant).await?;
    let ca = tenant.run(&format!("ca show {uuid}")).await?;

    tenant
        .change("nodegroup create heated pool --node-count 1", "UPDATE_COMPLETE")
        .await?;
    let (_, of_pool) = tenant.node_group("pool", "CREATE_COMPLETE", 1).await?;
    ensure!(of_pool.name.starts_with("heated-pool-"), "{of_pool:?}");
    ensure!(of_pool.parameters["is_cluster_stack"] == "False", "{of_pool:?}");
    ensure!(
        tenant.stack_names().await?.len() == 2,
        "one for the cluster, one for the group"
    );

    // With one worker: the driver's template changes workers one by one, with 30 s between two, and Heat visits the others again
    // for each.
    let (_, stack) = tenant.node_group("default-worker", "CREATE_COMPLETE", 1).await?;
    tenant.change("ca rotate heated", "UPDATE_COMPLETE").await?;
    ensure!(tenant.run("ca show heated").await? != ca, "the same CA");
    let (_, rotated) = tenant.node_group("default-worker", "UPDATE_COMPLETE", 1).await?;
    // The new keys of the stack are among the parameters that Heat hides.
    ensure!(rotated.updated > stack.updated, "{stack:?} {rotated:?}");

    let resized = tenant
        .change("cluster resize heated 2", "UPDATE_COMPLETE")
        .await?;
    let (group, stack) = tenant.node_group("default-worker", "UPDATE_COMPLETE", 2).await?;
    ensure!(stack.parameters["number_of_minions"] == "2", "{stack:?}");
    ensure!(
        group["node_addresses"] == *stack.output("kube_minions")?,
        "{group}"
    );
    ensure!(resized["node_count"] == 3, "those of both groups: {resized}");

    tenant
        .change("nodegroup delete heated pool", "UPDATE_COMPLETE")
        .await?;
    let gone = tenant.stacks.show(&of_pool.id).await?;
    ensure!(gone.status == "DELETE_COMPLETE", "{gone:?}");
    let groups = tenant.run("nodegroup list heated -f json").await?;
    ensure!(groups.as_array().is_some_and(|all| all.len() == 2), "{groups}");

    tenant.run("cluster delete heated").await?;
    tenant.heated.deployment.settled(PATIENCE).await?;
    let gone = tenant.stacks.show(&stack.id).await?;
    ensure!(gone.status == "DELETE_COMPLETE", "{gone:?}");
    nothing_is_left(&mut tenant, &uuid).await
}

/// The cluster, with its stack, its trustee and its trust. Its uuid.
async fn create(tenant: &mut Tenant) -> Result<String> {
    tenant
        .run(
            "cluster template create coreos --coe kubernetes --image fedora-coreos-42 --external-network public \
             --keypair key --flavor m1.small --master-flavor m1.medium",
        )
        .await?;
    let line = "cluster create heated --cluster-template coreos --node-count 1 --timeout 30";
    let made = tenant.change(line, "CREATE_COMPLETE").await?;
    let uuid = made["uuid"].as_str().context("a uuid")?.to_owned();
    let (workers, stack) = tenant.node_group("default-worker", "CREATE_COMPLETE", 1).await?;
    let (masters, _) = tenant.node_group("default-master", "CREATE_COMPLETE", 1).await?;
    ensure!(
        made["cluster_id"] == stack.id && masters["stack_id"] == stack.id,
        "{made} {masters}"
    );
    ensure!(
        workers["node_addresses"] == *stack.output("kube_minions")?,
        "{workers}"
    );
    ensure!(
        masters["node_addresses"] == *stack.output("kube_masters")?,
        "{masters}"
    );
    ensure!(made["node_addresses"] == workers["node_addresses"], "{made}");
    ensure!(made["master_addresses"] == masters["node_addresses"], "{made}");
    let address = stack.output("api_address")?.as_str().context("an address")?;
    ensure!(made["api_address"] == format!("https://{address}:6443"), "{made}");
    ensure!(made["coe_version"] == stack.parameters["kube_version"], "{made}");
    let names = tenant.stack_names().await?;
    ensure!(names.len() == 1 && names[0].starts_with("heated-"), "{names:?}");

    let domain = tenant.heated.cloud.trustee_domain();
    let users = domain.users_of(&uuid).await?;
    ensure!(users.len() == 1, "{users:?}");
    let trusts = domain.trusts_in(&users[0].1).await?;
    ensure!(
        trusts.len() == 1 && trusts[0]["trustor_user_id"] == tenant.person.id,
        "{trusts:?}"
    );
    for (parameter, value) in [
        ("cluster_uuid", uuid.as_str()),
        ("magnum_url", tenant.heated.api.rest.base()),
        ("trustee_domain_id", &domain.id),
        ("trustee_user_id", &users[0].1),
        ("trustee_username", &users[0].0),
    ] {
        ensure!(stack.parameters[parameter] == value, "{parameter}: {stack:?}");
    }
    Ok(uuid)
}

async fn nothing_is_left(tenant: &mut Tenant, uuid: &str) -> Result<()> {
    let listed = tenant.run("cluster list -f json").await?;
    ensure!(listed == json!([]), "{listed}");
    let names = tenant.stack_names().await?;
    ensure!(names.is_empty(), "{names:?}");
    let domain = tenant.heated.cloud.trustee_domain();
    let db = probe::open(&tenant.heated.deployment.database).await?;
    // Removed after the cluster, which need not wait for Keystone.
    wait::until("the user and the trust to be removed", PATIENCE, async || {
        let (users, trusts) = (
            domain.users_of(uuid).await?,
            domain.trusts_of(&tenant.person).await?,
        );
        ensure!(users.is_empty() && trusts.is_empty(), "{users:?} {trusts:?}");
        no_row(&db, "conductor_cluster_trust").await
    })
    .await?;
    for table in ["x509keypair", "nodegroup"] {
        no_row(&db, table).await?;
    }
    Ok(())
}

async fn no_row(db: &Database, table: &str) -> Result<()> {
    let query = format!("SELECT CAST(COUNT(*) AS CHAR) AS line FROM {table}");
    let count = db.run(move |conn| probe::lines(conn, &query)).await?;
    ensure!(count == ["0"], "{count:?} in {table}");
    Ok(())
}
