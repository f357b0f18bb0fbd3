//! Drivers that need the library of Magnum 22, which has trusts, alone and beside those of a newer one.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::keystone_people::{People, Person};
use magnum_tests::openstack::OpenStack;
use magnum_tests::process::Program;
use magnum_tests::python_plugin::{DRIVER, Library, PythonPlugin};
use magnum_tests::rest::Rest;
use magnum_tests::trustee_domain::TrusteeDomain;
use magnum_tests::{probe, wait};
use nix::sys::signal::Signal;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(120);

/// A conductor whose driver has the library of Magnum 22, and somebody who may have clusters.
struct World {
    deployment: Deployment,
    plugin: PythonPlugin,
    conductor: Program,
    _api: Api,
    rest: Rest,
    owner: Person,
    domain: TrusteeDomain,
}

impl World {
    async fn new() -> Result<Self> {
        let openstack = OpenStack::shared().await?;
        let people = People::of(openstack).await?;
        let owner = people.person(&["member"]).await?;
        let domain = TrusteeDomain::new(&people).await?;
        let mut deployment = Deployment::new(Backend::Mariadb).await?;
        let plugin = PythonPlugin::in_deployment(&mut deployment, Library::Magnum22).await?;
        for (section, option, value) in domain.options() {
            deployment.set(section, option, value);
        }
        for (option, value) in openstack.service_user() {
            deployment.set("keystone_auth", option, value);
        }
        deployment.set("trust", "roles", "member");
        deployment.set("conductor", "status_poll_interval", 0.5);
        let conductor = deployment.conductor("one").await?;
        let api = deployment.api().await?;
        let rest = api.rest.as_somebody(&owner.project_id, &owner.id);
        let rest = rest.with_token(&people.token(&owner).await?);
        Ok(Self {
            deployment,
            plugin,
            conductor,
            _api: api,
            rest,
            owner,
            domain,
        })
    }

    /// A cluster that is built.
    async fn cluster(&self, name: &str) -> Result<String> {
        let template = self.rest.create_template_for(name, DRIVER).await?;
        let cluster = self.rest.create_cluster(&template, name, json!({})).await?;
        let rest = &self.rest;
        rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
        Ok(cluster)
    }

    /// Deletes a cluster. Its user in Keystone goes soon after it.
    async fn delete(&self, cluster: &str) -> Result<()> {
        let path = format!("/clusters/{cluster}");
        self.rest.delete(&path).await?.expect(204)?;
        self.rest.wait_gone(cluster, PATIENCE).await?;
        wait::until("the user of the cluster to be removed", PATIENCE, async || {
            let users = self.domain.users_of(cluster).await?;
            ensure!(users.is_empty(), "{users:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// The version of the driver that a cluster has.
    async fn version(&self, cluster: &str) -> Result<String> {
        let db = probe::open(&self.deployment.database).await?;
        let query =
            format!("SELECT version AS line FROM conductor_cluster_driver WHERE cluster_uuid = '{cluster}'");
        let found = db.run(move |conn| probe::lines(conn, &query)).await?;
        found.into_iter().next().context("no driver")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_of_a_driver_of_magnum_22_have_a_trust_for_as_long_as_they_live() -> Result<()> {
    let world = World::new().await?;
    let cluster = world.cluster("trusted").await?;

    let (domain, owner) = (&world.domain, &world.owner);
    let users = domain.users().await?;
    let name = format!("{cluster}_{}", owner.project_id);
    ensure!(users.len() == 1 && users[0].0 == name, "{users:?}");
    let trusts = domain.trusts_in(&users[0].1).await?;
    ensure!(
        trusts.len() == 1 && trusts[0]["trustor_user_id"] == owner.id,
        "{trusts:?}"
    );
    let effects = world.plugin.effects(&cluster)?;
    let told: Vec<&str> = effects["/trust-create"].lines().collect();
    ensure!(
        told[..3] == [trusts[0]["id"].as_str().unwrap_or_default(), &users[0].1, &name],
        "{told:?}"
    );
    ensure!(
        effects["/trust-look"] == effects["/trust-create"],
        "a look has the same trust"
    );
    ensure!(
        !world.conductor.log().contains(told[3]),
        "the password is in the log"
    );
    world.delete(&cluster).await
}

/// As after an upgrade of Magnum, when clusters of the former package still live: both versions of the driver are loaded, in
/// interpreters of their own, each with the library that it was written for.
#[tokio::test(flavor = "multi_thread")]
async fn a_conductor_runs_a_driver_with_magnum_22_beside_its_next_version_with_magnum_23() -> Result<()> {
    let world = World::new().await?;
    let old = world.cluster("old").await?;

    let newer = world.plugin.environment_of_version("2.0.0")?;
    let drivers = world.plugin.drivers.to_str().context("a path that is no text")?;
    let adopt = [
        "adopt",
        "--python",
        newer.to_str().unwrap_or_default(),
        "--into",
        drivers,
    ];
    let said = world.plugin.manage(&adopt)?.output().await?;
    ensure!(
        said.contains("test_folders_v1-2.0.0 (magnum-test-drivers, Magnum 23."),
        "{said}"
    );
    world.conductor.signal(Signal::SIGHUP)?;
    let loaded = r#"drivers are loaded new="[\"test_folders_v1 2.0.0\"]" gone=[]"#;
    world.conductor.wait_log(loaded, PATIENCE).await?;

    let new = world.cluster("new").await?;
    ensure!(world.version(&new).await? == "2.0.0");
    ensure!(world.version(&old).await? == "1.0.0");
    let has_trust = |cluster: &str| -> Result<bool> {
        let effects = world.plugin.effects(cluster)?;
        Ok(effects.contains_key("/trust-create"))
    };
    ensure!(has_trust(&old)? && !has_trust(&new)?);
    for cluster in [&old, &new] {
        world.rest.resize(cluster, 3).await?.expect(202)?;
        let rest = &world.rest;
        rest.wait_status(cluster, "UPDATE_COMPLETE", PATIENCE).await?;
        ensure!(world.plugin.nodes(cluster)? == 4, "one master, three workers");
    }
    for cluster in [&old, &new] {
        world.delete(cluster).await?;
        ensure!(world.plugin.effects(cluster)?.is_empty());
    }
    Ok(())
}
