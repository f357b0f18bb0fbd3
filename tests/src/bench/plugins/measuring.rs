//! What is done with each contestant, and what it took.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_common::ids::ClusterUuid;
use magnum_common::model::{Cluster, ClusterStatus, ClusterTemplate};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::super::Environment;
use super::super::journal::template;
use super::super::load::Load;
use super::super::report::say;
use super::super::site::Site;
use super::super::usage::{cpu, cpu_of_machine, cpu_of_tree, pss_mib_of_tree};
use super::Plugins;
use super::contestant::{self, Contestant, Running};
use crate::plugin_requests::{PROJECT, USER, from_person, new_object};
use crate::plugin_world::{PluginWorld, WorldProgress};
use crate::process::works;
use crate::raw_rpc::{self, RawRpc};
use crate::rest::Rest;

/// Keys of a cluster: three CAs and the conductor's own.
const KEYS: u64 = 4;

/// How long a conductor without work is left alone before its figures are read: its imports are over by then.
const IDLE: Duration = Duration::from_secs(10);

/// How long ended processes are waited for before it is said that they do not end.
const STOPS_WITHIN: Duration = Duration::from_secs(20);

/// One contestant's figures.
pub(super) struct Measured {
    pub(super) creates: f64,
    pub(super) create_cpu: Duration,
    pub(super) looks: f64,
    pub(super) look_cpu: Duration,
    pub(super) sweep: Duration,
    pub(super) sweep_cpu: Duration,
    pub(super) idle_cpu: Duration,
    pub(super) idle_mib: f64,
    pub(super) at_work_mib: f64,
    pub(super) kill: Option<Duration>,
    pub(super) stop: Option<Duration>,
}

/// One run.
pub(super) struct Bench<'a> {
    pub(super) plugins: &'a Plugins,
    pub(super) environment: &'a Environment<'a>,
    pub(super) world: PluginWorld,
}

impl Bench<'_> {
    pub(super) async fn all(&mut self, contestant: Contestant) -> Result<Measured> {
        let pool = contestant.default_pool();
        let (creates, create_cpu) = self.creates(contestant, pool).await?;
        let (idle_mib, idle_cpu) = self.idle(contestant).await?;
        let (look_took, look_cpu) = self.sweep(contestant, 1, idle_cpu).await?;
        let (sweep, sweep_cpu) = self.sweep(contestant, self.plugins.conductors, idle_cpu).await?;
        let (at_work_mib, kill) = self.hanging(contestant, Signal::SIGKILL).await?;
        let (_, stop) = self.hanging(contestant, Signal::SIGTERM).await?;
        Ok(Measured {
            creates,
            create_cpu: create_cpu.saturating_sub(idle_cpu),
            looks: self.plugins.looks as f64 / look_took.as_secs_f64(),
            look_cpu,
            sweep,
            sweep_cpu,
            idle_cpu,
            idle_mib,
            at_work_mib,
            kill,
            stop,
        })
    }

    /// Tables and a template, in a world where nothing was asked yet.
    async fn site(&mut self) -> Result<Site> {
        self.world.reset().await?;
        let mut site = Site::with_template(self.environment, plugin_template()?).await?;
        for (section, option, value) in self.world.options() {
            site = site.with(section, option, value);
        }
        Ok(site.with("drivers", "driver_path", contestant::adopted()?.display()))
    }

    async fn start(&self, contestant: Contestant, site: &Site, pool: u64) -> Result<Running> {
        Running::start(contestant, self.environment, site, &self.world, pool).await
    }

    /// Creates per second, and the processor time of all of them.
    pub(super) async fn creates(&mut self, contestant: Contestant, pool: u64) -> Result<(f64, Duration)> {
        let count = self.plugins.creates;
        say(&format!("plugins, {contestant}: {count} creates"));
        ensure!(
            pool == 0 || count * KEYS <= pool,
            "{count} clusters need more than the {pool} keys of the pool"
        );
        let site = self.site().await?;
        if pool > 0 {
            let idle = self.start(contestant, &site, pool).await?;
            let pooled = "SELECT COUNT(*) AS n FROM conductor_key_pool";
            site.wait_for(pooled, count * KEYS, self.plugins.limit).await?;
            idle.kill().await?;
        }
        self.publish(&site, count).await?;
        let before = self.spent().await?;
        let running = self.start(contestant, &site, pool).await?;
        let done = self.until(|world| world.helm_calls >= count).await?;
        let cpu = self.spent().await?.saturating_sub(before);
        let rate = count as f64 / done.create_seconds;
        running.kill().await?;
        let built = site
            .number("SELECT COUNT(*) AS n FROM cluster WHERE stack_id IS NOT NULL")
            .await?;
        ensure!(built == count, "{built} of {count} clusters have a stack");
        Ok((rate, cpu))
    }

    /// What the conductor uses without anything to do: MiB, and the processor time of its start.
    async fn idle(&mut self, contestant: Contestant) -> Result<(f64, Duration)> {
        say(&format!("plugins, {contestant}: idle"));
        let site = self.site().await?;
        let before = self.spent().await?;
        let running = self.start(contestant, &site, 0).await?;
        sleep(IDLE).await;
        let cpu = self.spent().await?.saturating_sub(before);
        let mib = pss_mib_of_tree(running.pid())?;
        running.kill().await?;
        Ok((mib, cpu))
    }

    /// How long these conductors look until none has a cluster left, and the processor time of their looks.
    async fn sweep(
        &mut self,
        contestant: Contestant,
        conductors: u64,
        idle: Duration,
    ) -> Result<(Duration, Duration)> {
        let count = self.plugins.looks;
        say(&format!(
            "plugins, {contestant}: {count} clusters in progress, conductors: {conductors}"
        ));
        let site = self.site().await?;
        site.fill(count, ClusterStatus::CreateInProgress).await?;
        self.world.build(count, PROJECT).await?;
        let before = self.spent().await?;
        let mut running = Vec::new();
        for _ in 0..conductors {
            running.push(self.start(contestant, &site, 0).await?);
        }
        let looks = contestant.looks(count, conductors);
        let done = self.until(|world| world.looks >= looks).await?;
        let cpu = self.spent().await?.saturating_sub(before);
        for one in running {
            one.kill().await?;
        }
        let of_starts = idle * u32::try_from(conductors)?;
        Ok((
            Duration::from_secs_f64(done.look_seconds),
            cpu.saturating_sub(of_starts),
        ))
    }

    /// The memory of a conductor whose calls wait for a helm that hangs, and how long after `signal` all of them have ended;
    /// none if they do not.
    async fn hanging(&mut self, contestant: Contestant, signal: Signal) -> Result<(f64, Option<Duration>)> {
        let calls = self.plugins.calls;
        say(&format!(
            "plugins, {contestant}: {calls} calls that hang, {signal}"
        ));
        let site = self.site().await?;
        self.world.set_helm("hang").await?;
        self.publish(&site, calls).await?;
        let running = self.start(contestant, &site, 0).await?;
        self.until(|world| world.helm_calls >= calls).await?;
        let (mib, helms) = running.at_work()?;
        ensure!(
            helms.len() as u64 == calls,
            "{} helms for {calls} calls",
            helms.len()
        );
        let signalled = Instant::now();
        running.signal(signal)?;
        let is_over = || helms.iter().all(|pid| !works(*pid)) && !works(running.pid());
        while !is_over() && signalled.elapsed() < STOPS_WITHIN {
            sleep(Duration::from_millis(1)).await;
        }
        let took = is_over().then(|| signalled.elapsed());
        running.kill().await?;
        for helm in helms {
            // Whoever does not end them leaves them to us.
            let _gone = kill(Pid::from_raw(i32::try_from(helm)?), Signal::SIGKILL);
        }
        Ok((mib, took))
    }

    /// Publishes creates, which wait for the conductor.
    async fn publish(&self, site: &Site, count: u64) -> Result<()> {
        let load = Load::open(&site.vhost).await?;
        let rpc = RawRpc::connect(&site.vhost).await?;
        // What an API has validated the token with: without it, Magnum's conductor has to know where Keystone is from
        // options of which it registers some only when it logs in for the first time.
        let identity = Rest::new(&format!("{}/identity/v3", self.world.urls.cloud));
        let login = json!({"auth": {"identity": {"methods": ["token"], "token": {"id": "tok-alice"}}}});
        let token = identity.post("/auth/tokens", &login).await?.expect(201)?;
        for number in 0..count {
            let mut cluster = Cluster::new(ClusterUuid::random(), template()?.uuid);
            cluster.name = Some(format!("bench-{number}"));
            cluster.project_id = Some(PROJECT.to_owned());
            cluster.user_id = Some(USER.to_owned());
            cluster.keypair = Some("key".to_owned());
            cluster.flavor_id = Some("m1.medium".to_owned());
            cluster.master_flavor_id = Some("m1.medium".to_owned());
            cluster.master_lb_enabled = true;
            cluster.floating_ip_enabled = true;
            cluster.create_timeout = Some(60);
            let args = json!({
                "cluster": new_object(&cluster), "master_count": 1, "node_count": 1, "create_timeout": 60,
            });
            let request = raw_rpc::request("cluster_create", args);
            let mut request = from_person(request, &self.world.urls.cloud, "alice");
            request["_context_auth_token_info"] = token.clone();
            rpc.cast(&request).await?;
        }
        load.close().await;
        Ok(())
    }

    async fn until(&mut self, is_done: impl Fn(&WorldProgress) -> bool) -> Result<WorldProgress> {
        let deadline = Instant::now() + self.plugins.limit;
        loop {
            let progress = self.world.progress().await?;
            if is_done(&progress) {
                return Ok(progress);
            }
            ensure!(Instant::now() < deadline, "{progress:?} (see --limit)");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Processor time that the machine has used for anything but the servers, the doubles and this program.
    async fn spent(&self) -> Result<Duration> {
        let bystanders = [
            self.environment.broker.pid().await?,
            self.environment.database.pid().await?,
            self.world.pid(),
        ];
        let mut spent = cpu_of_machine()?.saturating_sub(cpu(std::process::id())?);
        for pid in bystanders {
            spent = spent.saturating_sub(cpu_of_tree(pid)?);
        }
        Ok(spent)
    }
}

/// One that the driver accepts, in a cloud of the doubles.
fn plugin_template() -> Result<ClusterTemplate> {
    let mut template = template()?;
    template.project_id = Some(PROJECT.to_owned());
    template.user_id = Some(USER.to_owned());
    template.driver = Some(contestant::DRIVER.to_owned());
    template.image_id = Some("00000001-1111-4111-8111-111111111111".to_owned());
    template.flavor_id = Some("m1.medium".to_owned());
    template.master_flavor_id = Some("m1.medium".to_owned());
    template.keypair_id = Some("key".to_owned());
    template.dns_nameserver = Some("8.8.8.8".to_owned());
    template.external_network_id = Some("public".to_owned());
    template.network_driver = Some("calico".to_owned());
    Ok(template)
}
