//! Whatever the API stands on goes away and comes back while many ask: Keystone, Glance, the broker, the database.
//!
//! All four are real, behind lines that are cut one after the other. Meanwhile the answers are 202 and 503 and nothing
//! else, the 503 says what is the matter and nothing of the inside, the other servers' outage does not outlast them, and
//! no process is started again. In the end every cluster that was promised has been made.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::cloud_services::{CloudServices, Service};
use magnum_tests::deployment::Deployment;
use magnum_tests::openstack::PASSWORD;
use magnum_tests::rest::Rest;
use magnum_tests::{Backend, wait};
use serde_json::json;
use tokio::time::MissedTickBehavior;

const PATIENCE: Duration = Duration::from_secs(120);

/// Who ask at the same time, each at most once in a `PACE`: the driver of every cluster is a program of its own.
const CLIENTS: usize = 3;
const PACE: Duration = Duration::from_millis(400);

/// What those who ask have in common.
struct Load {
    rest: Rest,
    template: String,
    promised: Mutex<BTreeSet<String>>,
    is_over: AtomicBool,
}

impl Load {
    /// Asks for a cluster, and for the list. The status of the first.
    async fn ask(&self) -> Result<u16> {
        let answer = self.rest.ask_for_cluster(&self.template, "c", json!({})).await?;
        let status = answer.status.as_u16();
        if status == 202 {
            let uuid = answer.body["uuid"].as_str().context("a uuid")?.to_owned();
            self.promised
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(uuid);
        } else {
            ensure!(status == 503, "{answer:?}");
            ensure!(!answer.body.to_string().contains("127.0.0.1"), "{answer:?}");
        }
        let list = self.rest.get("/clusters?limit=1").await?;
        ensure!(matches!(list.status.as_u16(), 200 | 503), "{list:?}");
        Ok(status)
    }

    /// Asks until it is over; how often it was promised, and how often not.
    async fn go_on(&self) -> Result<(usize, usize)> {
        let mut pace = tokio::time::interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut promised, mut refused) = (0, 0);
        while !self.is_over.load(Ordering::Relaxed) {
            pace.tick().await;
            match self.ask().await? {
                202 => promised += 1,
                _ => refused += 1,
            }
        }
        Ok((promised, refused))
    }

    async fn answers(&self, what: &str, status: u16) -> Result<()> {
        wait::until(what, PATIENCE, async || {
            let seen = self.ask().await?;
            ensure!(seen == status, "{seen}");
            Ok(())
        })
        .await
    }

    async fn lose_each(&self, lines: &[(&str, &ChaosProxy)]) -> Result<()> {
        self.answers("the first promise", 202).await?;
        for (name, line) in lines {
            line.cut();
            self.answers(&format!("{name} to be missed"), 503).await?;
            line.restore();
            self.answers(&format!("{name} to be found again"), 202).await?;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_server_is_lost_under_load_and_no_promise_with_it() -> Result<()> {
    let cloud = CloudServices::shared().await?;
    cloud.usual().await?;
    let keystone = ChaosProxy::start(cloud.openstack.keystone_address()).await?;
    let glance = ChaosProxy::start(cloud.address(Service::Glance)).await?;
    let behind = |line: &ChaosProxy, path: &str| format!("http://{}{path}", line.address());
    let identity = cloud
        .openstack
        .region_of("identity", "internal", &behind(&keystone, "/v3"))
        .await?;
    let image = cloud
        .openstack
        .region_of(
            Service::Glance.kind(),
            "public",
            &behind(&glance, Service::Glance.listed()),
        )
        .await?;

    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    deployment.set("quotas", "max_clusters_per_project", 100_000);
    let _conductor = deployment.conductor("one").await?;
    let broker = ChaosProxy::start(deployment.vhost.address).await?;
    let database = ChaosProxy::start(deployment.database.address()?).await?;
    deployment.connect_via(Some(broker.address()), Some(database.address()));
    let url = behind(&keystone, "/v3");
    for (section, option, value) in [
        ("api", "auth_strategy", "keystone"),
        ("api", "publish_timeout", "3"),
        ("api", "lookup_timeout", "5"),
        ("keystone_authtoken", "www_authenticate_uri", &url),
        ("keystone_authtoken", "auth_url", &url),
        ("keystone_authtoken", "username", "magnum"),
        ("keystone_authtoken", "password", PASSWORD),
        ("keystone_authtoken", "project_name", "service"),
        ("keystone_authtoken", "user_domain_name", "Default"),
        ("keystone_authtoken", "project_domain_name", "Default"),
        ("keystone_authtoken", "region_name", &identity),
        ("keystone_authtoken", "http_connect_timeout", "5"),
        // Else an outage of Keystone would hardly be noticed.
        ("keystone_authtoken", "token_cache_time", "-1"),
        ("glance_client", "region_name", &image),
        ("nova_client", "region_name", "RegionOne"),
        ("neutron_client", "region_name", "RegionOne"),
    ] {
        deployment.set(section, option, value);
    }
    let api = deployment.api().await?;
    let anna = cloud.openstack.log_in("anna", "north").await?;
    let rest = api.rest.clone().with_token(anna.token());
    let load = Load {
        template: rest.create_template("small").await?,
        rest,
        promised: Mutex::default(),
        is_over: AtomicBool::new(false),
    };

    let asking = try_join_all((0..CLIENTS).map(|_| load.go_on()));
    let losing = async {
        let lines = [
            ("Keystone", &keystone),
            ("Glance", &glance),
            ("the broker", &broker),
            ("the database", &database),
        ];
        let lost = load.lose_each(&lines).await;
        load.is_over.store(true, Ordering::Relaxed);
        lost
    };
    let (asked, lost) = tokio::join!(asking, losing);
    lost?;
    for (promised, refused) in asked? {
        ensure!(
            promised > 0 && refused > 0,
            "{promised} promised, {refused} refused"
        );
    }

    let promised = load.promised.into_inner().unwrap_or_else(PoisonError::into_inner);
    wait::until("every promised cluster to be made", PATIENCE, async || {
        let operations = deployment.operations().await?;
        let made: BTreeSet<&str> = operations
            .iter()
            .filter(|one| one["kind"] == "cluster_create" && one["state"] == "succeeded")
            .filter_map(|one| one["cluster"].as_str())
            .collect();
        let missing = promised.iter().filter(|one| !made.contains(one.as_str()));
        let missing: Vec<_> = missing.collect();
        ensure!(
            missing.is_empty(),
            "{} of {} are not: {:?}",
            missing.len(),
            promised.len(),
            missing[0]
        );
        Ok(())
    })
    .await?;
    deployment.record.assert_sound()
}
