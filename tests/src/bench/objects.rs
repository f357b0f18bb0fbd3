//! Questions of the objects RPC: `Cluster.get_by_uuid`, asked of our whole conductor and of the real Magnum's.
//!
//! Both stand on the same database and read the same row; they run one after the other, each on a virtual host of its
//! own. The request is the recorded one, with its context, and the caller is our client for both, so that what
//! differs is the conductor alone. Each answer is checked.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_common::model::Cluster;
use magnum_common::secret::Secret;
use magnum_conductor::store;
use magnum_config::DatabaseSection;
use magnum_db::{self as db, Database, DbError};
use magnum_objects::Received;
use magnum_rpc::{Request, RpcOptions, WireFormat, WireRequest, connect_with};
use magnum_rpc_client::RpcClient;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{Instant, timeout};

use super::measure::Server;
use super::report::{Goal, Report, Row, say};
use super::usage::{Meter, percentile, rss_mib};
use super::{Environment, seconds};
use crate::TestDatabase;
use crate::builders::ConfigFile;
use crate::driver_record::DriverRecord;
use crate::python_magnum::{PythonMagnum, Release};
use crate::rabbitmq::Vhost;
use crate::run_dir::run_dir;

/// Numbers of callers at once.
const CALLERS: [u64; 2] = [1, 16];

/// Calls of each caller before the clock runs: they open connections, channels and sessions of the database.
const WARM_UP: u64 = 20;

/// What `bench objects` measures.
#[derive(Debug, clap::Args)]
pub struct Objects {
    /// Calls for ours, with each number of callers
    #[arg(long, default_value_t = 20_000)]
    pub messages: u64,
    /// Calls for the real Magnum
    #[arg(long, default_value_t = 2_000)]
    pub peer_messages: u64,
    /// Longest time in seconds for one contestant's calls; what was made until then is measured
    #[arg(long, default_value = "60", value_parser = seconds)]
    pub limit: Duration,
}

const COLUMNS: [&str; 9] = [
    "callers",
    "calls",
    "calls/s",
    "p50 ms",
    "p99 ms",
    "cpu us/call",
    "broker us/call",
    "database us/call",
    "RSS MiB",
];

/// What one contestant did with one number of callers.
struct Measured {
    rate: f64,
    p50_ms: f64,
    cpu_us: f64,
    rss_mib: f64,
}

impl Objects {
    /// Measures both contestants with each number of callers.
    pub async fn run(&self, environment: &Environment<'_>) -> Result<Report> {
        let setup = json!({"messages": self.messages, "peer_messages": self.peer_messages});
        let mut report = Report::new("objects", &COLUMNS, setup);
        let site = Site::prepare(environment).await?;
        let ours = self.ours(environment, &site, &mut report).await?;
        let peer = self.magnums(environment, &site, &mut report).await?;
        for ((callers, ours), peer) in CALLERS.iter().zip(ours).zip(peer) {
            let of = |what: &str| format!("{what} with {callers} callers");
            let rate = Goal::at_least(
                &of("calls per second, times Magnum's"),
                ours.rate / peer.rate,
                20.0,
            );
            if *callers > 1 {
                report.goal(rate);
            }
            let share = |what: &str| of(&format!("{what}, share of Magnum's"));
            report.goal(Goal::at_most(&share("p50"), ours.p50_ms / peer.p50_ms, 0.2));
            report.goal(Goal::at_most(
                &share("cpu per call"),
                ours.cpu_us / peer.cpu_us,
                0.1,
            ));
            report.goal(Goal::at_most(&share("RSS"), ours.rss_mib / peer.rss_mib, 0.25));
        }
        Ok(report)
    }

    async fn ours(
        &self,
        environment: &Environment<'_>,
        site: &Site,
        report: &mut Report,
    ) -> Result<Vec<Measured>> {
        let vhost = environment.broker.vhost().await?;
        let server = Server::start(site.conductor(environment, &vhost)?, &vhost).await?;
        let measured = self
            .with_each(environment, &vhost, "ours", server.pid, self.messages, report)
            .await?;
        server.stop().await?;
        Ok(measured)
    }

    async fn magnums(
        &self,
        environment: &Environment<'_>,
        site: &Site,
        report: &mut Report,
    ) -> Result<Vec<Measured>> {
        let vhost = environment.broker.vhost().await?;
        let record = DriverRecord::new(site.folder.join("record"));
        std::fs::create_dir_all(record.folder())?;
        let mut magnum = PythonMagnum::on(Release::Magnum23, &site.config(&vhost), record).await?;
        // Its sweep over the clusters would be measured too.
        magnum.set("DEFAULT", "periodic_enable", false);
        let mut conductor = magnum.conductor(&vhost).await?;
        let measured = self
            .with_each(
                environment,
                &vhost,
                "Magnum",
                conductor.pid(),
                self.peer_messages,
                report,
            )
            .await?;
        // It does not end on SIGTERM.
        conductor.kill_group().await?;
        Ok(measured)
    }

    async fn with_each(
        &self,
        environment: &Environment<'_>,
        vhost: &Vhost,
        name: &'static str,
        pid: u32,
        count: u64,
        report: &mut Report,
    ) -> Result<Vec<Measured>> {
        let mut all = Vec::new();
        for callers in CALLERS {
            say(&format!(
                "objects, {name}, {callers} callers: {count}, at most for {:?}",
                self.limit
            ));
            self.call(vhost, callers, callers * WARM_UP).await?;
            let meter = Meter::start([
                pid,
                environment.broker.pid().await?,
                environment.database.pid().await?,
            ])?;
            let (took, latencies_ms) = self.call(vhost, callers, count).await?;
            let made = latencies_ms.len();
            ensure!(made > 0, "no call was made within {:?} (see --limit)", self.limit);
            let cpu = meter.per_message(made as u64)?;
            let at = |share| percentile(&latencies_ms, share).context("no latency");
            let measured = Measured {
                rate: made as f64 / took.as_secs_f64(),
                p50_ms: at(0.5)?,
                cpu_us: cpu[0],
                rss_mib: rss_mib(pid)?,
            };
            report.row(Row {
                name,
                figures: vec![
                    Some(callers as f64),
                    Some(made as f64),
                    Some(measured.rate),
                    Some(measured.p50_ms),
                    Some(at(0.99)?),
                    Some(measured.cpu_us),
                    Some(cpu[1]),
                    Some(cpu[2]),
                    Some(measured.rss_mib),
                ],
            });
            all.push(measured);
        }
        Ok(all)
    }

    /// Makes `count` calls, or as many as the limit allows; says how long that took, and each call.
    async fn call(&self, vhost: &Vhost, callers: u64, count: u64) -> Result<(Duration, Vec<f64>)> {
        let options = RpcOptions::for_url(&vhost.transport_url())?;
        let transport = connect_with(options.clone(), "bench-client")?;
        let client = RpcClient::new(Arc::clone(&transport), &options);
        let request = recorded()?;
        // Opens both connections before the clock runs.
        ask(&client, &request).await?;
        let began = Instant::now();
        let ends = began + self.limit;
        let mut tasks = Vec::new();
        for _ in 0..callers {
            let (client, request) = (client.clone(), request.clone());
            tasks.push(tokio::spawn(async move {
                let mut latencies = Vec::new();
                for _ in 0..count / callers {
                    let sent = Instant::now();
                    if sent >= ends {
                        break;
                    }
                    ask(&client, &request).await?;
                    latencies.push(sent.elapsed().as_secs_f64() * 1e3);
                }
                anyhow::Ok(latencies)
            }));
        }
        let mut latencies_ms = Vec::new();
        for task in tasks {
            // Beyond the limit there is only the last call of each caller, which has its own timeout.
            let patience = self.limit + Duration::from_secs(130);
            latencies_ms.extend(timeout(patience, task).await.context("a caller hangs")???);
        }
        let took = began.elapsed();
        transport.close().await;
        Ok((took, latencies_ms))
    }
}

/// One call, and a look at its answer.
async fn ask(client: &RpcClient, request: &Request) -> Result<()> {
    let answer = client
        .call(&request.context, &request.method, request.args.clone())
        .await?;
    let asked = &request.args["args"][0];
    ensure!(
        answer["magnum_object.data"]["uuid"] == *asked,
        "answered with {answer}"
    );
    Ok(())
}

fn frame(name: &str) -> Result<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/rpc");
    let path = path.join(format!(
        "{name}-object_class_action_versions-Cluster.get_by_uuid.json"
    ));
    let frame: Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
    Ok(frame["inner"].clone())
}

/// The recorded question, without an address to answer to.
fn recorded() -> Result<Request> {
    let wire: WireRequest = serde_json::from_value(frame("request")?)?;
    let mut request = wire
        .check(WireFormat::Json)
        .map_err(|malformed| malformed.fault)?;
    request.reply = None;
    Ok(request)
}

/// A database with the recorded cluster, and how conductors find it.
struct Site {
    database: TestDatabase,
    folder: PathBuf,
}

impl Site {
    async fn prepare(environment: &Environment<'_>) -> Result<Self> {
        let folder = run_dir()?.folder("objects")?;
        let database = TestDatabase::on_mariadb(environment.database).await?;
        let section = DatabaseSection {
            connection: Secret::new(database.url()),
            ..DatabaseSection::default()
        };
        db::migrate::upgrade(&section).await?;
        let cluster = Received::<Cluster>::decode(&frame("reply")?["result"])?.model()?;
        Database::connect(&section)
            .await?
            .transaction::<_, DbError, _>(move |conn| {
                store::clusters::insert(conn, std::slice::from_ref(&cluster))
            })
            .await?;
        Ok(Self { database, folder })
    }

    /// The options of both.
    fn config(&self, vhost: &Vhost) -> ConfigFile {
        ConfigFile::new()
            .set("DEFAULT", "transport_url", vhost.transport_url())
            .set("DEFAULT", "state_path", self.folder.display())
            .set("database", "connection", self.database.url())
            .set("certificates", "cert_manager_type", "x509keypair")
    }

    /// Ours: everything at its default but the time that it takes to stop.
    fn conductor(&self, environment: &Environment<'_>, vhost: &Vhost) -> Result<Command> {
        let config = self
            .config(vhost)
            .set("drivers", "driver_path", self.folder.join("no-drivers").display())
            // The pool of keys is filled once after the first start, on what is left of the processors.
            .set("certificates", "key_pool_size", 0)
            .set("conductor", "shutdown_timeout", 1)
            .write(&self.folder.join("ours.conf"))?;
        let mut command = Command::new(&environment.program);
        command.args(["conductor", "--config-file"]).arg(config);
        Ok(command)
    }
}
