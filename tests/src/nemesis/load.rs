//! Tenants that ask for everything that can be asked, by REST and by RPC, and remember what they were told.
//!
//! Each client has a cluster at a time, and takes it through a life: made, changed some times, sometimes without waiting for the
//! end of the change before, deleted. That a request is refused or not answered is no failure, only what was promised counts.

mod messages;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use magnum_common::clock::utc_now;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use serde_json::{Value, json};

use self::messages::Messages;
use super::world::World;
use crate::checker::history::{Heard, Millis, RequestId, Told};
use crate::rest::{Answer, Rest};
use crate::wait;

/// Clients at a time.
pub const CLIENTS: usize = 9;
const TENANTS: [&str; 3] = ["north", "south", "west"];
/// An hour: `create_timeout` of the requests, and what the other kinds have by default.
const LIMIT: Millis = 3_600_000;
/// How long a client waits for its cluster before it goes on all the same.
const PATIENCE: Duration = Duration::from_secs(8);
const START_WITHIN: Duration = Duration::from_secs(60);

/// What a cluster's driver does at a call, and how often of ten that is. The rest is done at once.
const BEHAVIOURS: [(&str, u32); 4] = [
    ("in_progress", 2),
    ("transient:1", 1),
    ("exit75:2", 1),
    ("permanent", 1),
];
const CALLS: [&str; 5] = ["create", "update", "resize", "create_nodegroup", "delete"];

/// All clients.
pub struct Load {
    seed: u64,
    template: String,
    newer_template: String,
    told: Mutex<Vec<Told>>,
    asked: AtomicUsize,
    is_over: AtomicBool,
}

impl Load {
    /// Prepares what clients need.
    pub async fn new(world: &World, seed: u64) -> Result<Self> {
        let rest = world.rest(0).context("no API")?;
        let template = async |name: &str| -> Result<String> {
            let body = json!({
                "name": name, "image_id": crate::rest::IMAGE, "coe": "kubernetes", "external_network_id": "public",
                "keypair_id": "key", "flavor_id": "m1.small", "master_flavor_id": "m1.small", "driver": "scripted",
                "public": true,
            });
            let made = rest.post("/clustertemplates", &body).await?.expect(201)?;
            Ok(made["uuid"].as_str().context("no uuid")?.to_owned())
        };
        wait::until("the drivers to be announced", START_WITHIN, async || {
            template("first").await
        })
        .await?;
        Ok(Self {
            seed,
            template: template("small").await?,
            newer_template: template("newer").await?,
            told: Mutex::default(),
            asked: AtomicUsize::default(),
            is_over: AtomicBool::default(),
        })
    }

    /// Has clients go home when they have done what they are at.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// What clients were told.
    pub fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One client, until [`Self::end`].
    pub async fn client(&self, world: &World, number: usize) -> Result<()> {
        let mut client = Client {
            load: self,
            world,
            rng: StdRng::seed_from_u64(self.seed.wrapping_add(number as u64 + 1)),
            tenant: TENANTS[number % TENANTS.len()],
            messages: Messages::new(&world.deployment.vhost),
        };
        while !self.is_over.load(Ordering::Relaxed) {
            client.live(number).await?;
        }
        Ok(())
    }

    fn remember(&self, told: Told) {
        self.told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(told);
    }
}

struct Client<'a> {
    load: &'a Load,
    world: &'a World,
    rng: StdRng,
    tenant: &'static str,
    messages: Messages<'a>,
}

/// What is asked of a cluster that is there.
#[derive(Debug, Clone, Copy)]
enum Change {
    Update,
    Resize,
    Upgrade,
    RotateCa,
    RotateCredential,
    CreateGroup,
    UpdateGroup,
    DeleteGroup,
    CallCreateGroup,
    CallUpdate,
    CastRotation,
    Nonsense,
}

const CHANGES: [Change; 12] = [
    Change::Update,
    Change::Resize,
    Change::Upgrade,
    Change::RotateCa,
    Change::RotateCredential,
    Change::CreateGroup,
    Change::UpdateGroup,
    Change::DeleteGroup,
    Change::CallCreateGroup,
    Change::CallUpdate,
    Change::CastRotation,
    Change::Nonsense,
];

impl Client<'_> {
    /// One cluster's life.
    async fn live(&mut self, number: usize) -> Result<()> {
        let name = format!("c{number}-{}", self.load.asked.fetch_add(1, Ordering::Relaxed));
        let body = json!({
            "name": name, "cluster_template_id": self.load.template, "node_count": 1, "master_count": 1,
            "keypair": "key", "create_timeout": 60, "labels": self.labels(),
        });
        let answer = self
            .ask(Method::POST, "/clusters", Some(&body), "cluster_create", None)
            .await;
        self.pause().await;
        let Some(cluster) = answer.filter(|answer| answer.status.is_success()) else {
            return Ok(());
        };
        let cluster = cluster.body["uuid"].as_str().context("no uuid")?.to_owned();
        let changes = self.rng.random_range(0..6);
        for change in 0..changes {
            if self.rng.random_ratio(2, 3) {
                self.wait_for_rest(&cluster).await;
            }
            self.change(&cluster, change).await;
            self.pause().await;
            if self.load.is_over.load(Ordering::Relaxed) {
                break;
            }
        }
        if self.rng.random_ratio(4, 5) {
            let path = format!("/clusters/{cluster}");
            self.ask(Method::DELETE, &path, None, "cluster_delete", Some(&cluster))
                .await;
            self.pause().await;
        }
        Ok(())
    }

    /// What the cluster's driver does.
    fn labels(&mut self) -> Value {
        let mut labels = json!({"scripted_delay": format!("{:.1}", self.rng.random_range(0.0..4.0))});
        let mut dice = self.rng.random_range(0..10);
        for (behaviour, share) in BEHAVIOURS {
            if dice < share {
                let call = CALLS.choose(&mut self.rng).copied().unwrap_or("create");
                labels[format!("scripted_{call}")] = json!(behaviour);
                break;
            }
            dice -= share;
        }
        labels
    }

    async fn change(&mut self, cluster: &str, number: usize) {
        let change = CHANGES.choose(&mut self.rng).copied().unwrap_or(Change::Update);
        // Another number at each asking: a request that changes nothing need not be an operation.
        let nodes = number * 3 + self.rng.random_range(2..5);
        let pool = format!("pool-{}", self.rng.random_range(1..3));
        let cluster_path = format!("/clusters/{cluster}");
        let groups = format!("{cluster_path}/nodegroups");
        let replaced = |path: &str, value: Value| json!([{"op": "replace", "path": path, "value": value}]);
        let about = Some(cluster);
        match change {
            Change::Update => {
                let body = replaced("/node_count", json!(nodes));
                self.ask(Method::PATCH, &cluster_path, Some(&body), "cluster_update", about)
                    .await;
            }
            Change::Resize => {
                let path = format!("{cluster_path}/actions/resize");
                let body = json!({"node_count": nodes});
                self.ask(Method::POST, &path, Some(&body), "cluster_resize", about)
                    .await;
            }
            Change::Upgrade => {
                let path = format!("{cluster_path}/actions/upgrade");
                let body = json!({"cluster_template": self.load.newer_template, "max_batch_size": 1});
                self.ask(Method::POST, &path, Some(&body), "cluster_upgrade", about)
                    .await;
            }
            Change::RotateCa => {
                let path = format!("/certificates/{cluster}");
                self.ask(Method::PATCH, &path, None, "rotate_ca_certificate", about)
                    .await;
            }
            Change::RotateCredential => {
                let path = format!("/credentials/{cluster}");
                self.ask(Method::PATCH, &path, None, "credential_rotate", about)
                    .await;
            }
            Change::CreateGroup => {
                let body = json!({"name": pool, "node_count": 2});
                self.ask(Method::POST, &groups, Some(&body), "nodegroup_create", about)
                    .await;
            }
            Change::UpdateGroup => {
                let body = replaced("/max_node_count", json!(nodes + 20));
                let path = format!("{groups}/{pool}");
                self.ask(Method::PATCH, &path, Some(&body), "nodegroup_update", about)
                    .await;
            }
            Change::DeleteGroup => {
                let path = format!("{groups}/{pool}");
                self.ask(Method::DELETE, &path, None, "nodegroup_delete", about)
                    .await;
            }
            Change::CallCreateGroup => {
                let message = messages::create_group(self.tenant, cluster, &pool);
                self.call(&message, "nodegroup_create", about).await;
            }
            Change::CallUpdate => {
                let message = messages::update(self.tenant, cluster, nodes);
                self.call(&message, "cluster_update", about).await;
            }
            Change::CastRotation => {
                // Twice, as by a sender whose confirmation was lost.
                let message = messages::rotate_ca(self.tenant, cluster);
                let told = self.asked("rotate_ca_certificate", about);
                let heard = self.messages.cast_twice(&message).await;
                self.heard(told, &message, heard);
            }
            Change::Nonsense => {
                let message = messages::nonsense(self.tenant);
                let told = self.asked("no_such_method", None);
                let heard = self.messages.cast(&message).await;
                self.heard(told, &message, heard);
            }
        }
    }

    /// A request by REST; what it was answered, if it was.
    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        kind: &str,
        cluster: Option<&str>,
    ) -> Option<Answer> {
        let mut told = self.asked(kind, cluster);
        let rest = self.rest()?;
        let Ok(answer) = rest.send(method, path, body).await else {
            self.load.remember(told);
            return None;
        };
        told.id = answer.request_id.clone().map(RequestId::Rest);
        told.cluster = told
            .cluster
            .or_else(|| answer.body["uuid"].as_str().map(str::to_owned));
        told.heard = if answer.status.is_success() {
            Heard::Confirmed
        } else {
            let (status, text) = (answer.status.as_u16(), answer.body.to_string());
            Heard::Refused { status, text }
        };
        self.load.remember(told);
        Some(answer)
    }

    async fn call(&mut self, message: &Value, kind: &str, cluster: Option<&str>) {
        let told = self.asked(kind, cluster);
        let heard = self.messages.call(message).await;
        self.heard(told, message, heard);
    }

    fn heard(&self, told: Told, message: &Value, heard: Heard) {
        let id = message["_unique_id"]
            .as_str()
            .map(|id| RequestId::Message(id.to_owned()));
        self.load.remember(Told { id, heard, ..told });
    }

    fn asked(&self, kind: &str, cluster: Option<&str>) -> Told {
        Told {
            id: None,
            tenant: self.tenant.to_owned(),
            kind: kind.to_owned(),
            cluster: cluster.map(str::to_owned),
            asked: utc_now().timestamp_millis(),
            limit: LIMIT,
            heard: Heard::Nothing,
        }
    }

    fn rest(&mut self) -> Option<Rest> {
        let rest = self.world.rest(self.rng.random_range(0..self.world.apis.len()))?;
        Some(rest.as_somebody(self.tenant, self.tenant))
    }

    async fn wait_for_rest(&mut self, cluster: &str) {
        let Some(rest) = self.rest() else { return };
        let at_rest = async {
            loop {
                let status = rest.status(cluster).await;
                if matches!(&status, Ok(Some(status)) if !status.ends_with("_IN_PROGRESS"))
                    || matches!(status, Ok(None))
                {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        };
        tokio::time::timeout(PATIENCE, at_rest).await.ok();
    }

    async fn pause(&mut self) {
        let pause = self.rng.random_range(100..700);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}
