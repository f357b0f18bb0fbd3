//! The REST API: our `magnum-api` beside the real Magnum's under gunicorn, on one database, one cloud, one queue.
//!
//! Both read the same configuration file and the same rows, ask the same stand-in for Keystone, Glance and Nova (a part of
//! this process, see `cloud`), and publish to the same queue, which nobody consumes: what a conductor does is measured
//! elsewhere. For that ours is told not to wait until a conductor has accepted (`[api] accept_wait = 0`), as Magnum never
//! does. One after the other, with the same load.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use hyper::{Method, StatusCode};
use magnum_common::model::ClusterStatus;
use serde_json::{Value, json};

use super::cloud::{FLAVOR, KEY_PAIR, StandIn, TOKEN};
use super::http_load::{Shot, fire};
use super::journal::template;
use super::load::Load;
use super::report::{Goal, Report, Row, say};
use super::site::{Eye, Site};
use super::usage::{Meter, cpu_of_tree, percentile, pss_mib_of_tree};
use super::{Environment, seconds};
use crate::ports::free_port;
use crate::process::{Launch, Program, Ready};
use crate::python_magnum::{PythonMagnum, Served};

/// What `bench rest` measures.
#[derive(Debug, clap::Args)]
pub struct RestApi {
    /// How long each request is repeated, in seconds
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub time: Duration,
    /// Requests at once
    #[arg(long, default_value_t = 4)]
    pub connections: usize,
    /// Clusters of the project, at least 1000
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub clusters: u64,
}

const COLUMNS: [&str; 9] = [
    "requests",
    "requests/s",
    "p50 ms",
    "p99 ms",
    "cpu us",
    "database us",
    "queries",
    "cloud asked",
    "memory MiB",
];

/// How long a request is repeated before the clock runs.
const WARM_UP: Duration = Duration::from_secs(2);

/// Processes of Magnum's API.
const PROCESSES: u8 = 2;

/// One kind of request.
struct Scenario {
    ours: &'static str,
    magnums: &'static str,
    shot: Shot,
    /// Clusters in a list.
    items: Option<usize>,
    /// How many times Magnum's rate.
    wanted: Option<f64>,
}

struct Measured {
    rate: f64,
    p99_ms: f64,
    memory_mib: f64,
    queries: f64,
}

/// Who answers.
struct Contestant {
    program: Program,
    address: SocketAddr,
    is_ours: bool,
}

/// What both stand on.
struct Stage<'a> {
    environment: &'a Environment<'a>,
    site: Site,
    cloud: StandIn,
    magnum: PythonMagnum,
}

impl RestApi {
    /// Measures both contestants.
    pub async fn run(&self, environment: &Environment<'_>) -> Result<Report> {
        let setup = json!({
            "seconds": self.time.as_secs(), "connections": self.connections, "clusters": self.clusters,
            "processes of Magnum": PROCESSES,
        });
        let mut report = Report::new("rest", &COLUMNS, setup);
        let mut stage = Stage::set(environment, self.clusters).await?;
        let scenarios = scenarios(&stage.site).await?;
        let ours = stage.ours().await?;
        let ours = self.measure(ours, &stage, &scenarios, &mut report).await?;
        let magnums = stage.magnums().await?;
        let magnums = self.measure(magnums, &stage, &scenarios, &mut report).await?;
        for ((scenario, ours), magnums) in scenarios.iter().zip(&ours).zip(&magnums) {
            let name = scenario.ours;
            if let Some(wanted) = scenario.wanted {
                let what = format!("{name}: requests per second, times Magnum's");
                report.goal(Goal::at_least(&what, ours.rate / magnums.rate, wanted));
            }
            let share = |what: &str| format!("{name}: {what}, share of Magnum's");
            report.goal(Goal::at_most(&share("p99"), ours.p99_ms / magnums.p99_ms, 0.05));
            report.goal(Goal::at_most(
                &share("memory"),
                ours.memory_mib / magnums.memory_mib,
                0.1,
            ));
        }
        report.goal(Goal::at_most(
            "queries for a list of 1000, times those for one of 100",
            ours[2].queries / ours[1].queries,
            1.0,
        ));
        Ok(report)
    }

    async fn measure(
        &self,
        mut contestant: Contestant,
        stage: &Stage<'_>,
        scenarios: &[Scenario],
        report: &mut Report,
    ) -> Result<Vec<Measured>> {
        let mut eye = stage.site.eye().await?;
        let mut all = Vec::new();
        for scenario in scenarios {
            let name = if contestant.is_ours {
                scenario.ours
            } else {
                scenario.magnums
            };
            say(&format!("rest, {name}: {:?}", self.time));
            all.push(
                self.repeat(&contestant, stage, scenario, name, &mut eye, report)
                    .await?,
            );
        }
        contestant.program.kill_group().await?;
        Ok(all)
    }

    async fn repeat(
        &self,
        contestant: &Contestant,
        stage: &Stage<'_>,
        scenario: &Scenario,
        name: &'static str,
        eye: &mut Eye,
        report: &mut Report,
    ) -> Result<Measured> {
        let shot = &scenario.shot;
        if let Some(items) = scenario.items {
            contestant.check_list(shot, items).await?;
        }
        fire(contestant.address, shot, self.connections, WARM_UP).await?;
        let pid = contestant.program.pid();
        let asked_before = stage.cloud.asked();
        let queries_before = contestant.queries(eye).await?;
        let cpu_before = cpu_of_tree(pid)?;
        let meter = Meter::start([stage.environment.database.pid().await?])?;
        let volley = fire(contestant.address, shot, self.connections, self.time).await?;
        let requests = volley.latencies_ms.len();
        ensure!(requests > 0, "no request was answered");
        let cpu = cpu_of_tree(pid)?.saturating_sub(cpu_before);
        let database_us = meter.per_message(requests as u64)?[0];
        let queries = contestant.queries(eye).await?.saturating_sub(queries_before);
        let per_request = |count: f64| count / requests as f64;
        let at = |share| percentile(&volley.latencies_ms, share).context("no latency");
        let measured = Measured {
            rate: requests as f64 / volley.took.as_secs_f64(),
            p99_ms: at(0.99)?,
            memory_mib: pss_mib_of_tree(pid)?,
            queries: per_request(queries as f64),
        };
        report.row(Row {
            name,
            figures: vec![
                Some(requests as f64),
                Some(measured.rate),
                Some(at(0.5)?),
                Some(measured.p99_ms),
                Some(per_request(cpu.as_secs_f64() * 1e6)),
                Some(database_us),
                Some(measured.queries),
                Some(per_request((stage.cloud.asked() - asked_before) as f64)),
                Some(measured.memory_mib),
            ],
        });
        Ok(measured)
    }
}

impl Contestant {
    /// An error unless the list has so many clusters.
    async fn check_list(&self, shot: &Shot, items: usize) -> Result<()> {
        let answer = reqwest::Client::new()
            .get(format!("http://{}{}", self.address, shot.path))
            .header("X-Auth-Token", shot.token);
        let list: Value = answer.send().await?.json().await?;
        let found = list["clusters"].as_array().map(Vec::len);
        ensure!(found == Some(items), "{found:?} clusters in {}", shot.path);
        Ok(())
    }

    /// Statements so far, counted as each of the two sends them.
    async fn queries(&self, eye: &mut Eye) -> Result<u64> {
        if self.is_ours {
            eye.statements_of_ours().await
        } else {
            eye.questions_of_magnum().await
        }
    }
}

impl<'a> Stage<'a> {
    async fn set(environment: &'a Environment<'a>, clusters: u64) -> Result<Self> {
        let site = Site::prepare(environment).await?;
        site.fill(clusters, ClusterStatus::CreateComplete).await?;
        // Makes the queue; there is no conductor.
        Load::open(&site.vhost).await?.close().await;
        let cloud = StandIn::start(&template()?.project_id.unwrap_or_default()).await?;
        let mut magnum = site.python().await?;
        for section in ["keystone_auth", "keystone_authtoken"] {
            magnum.set(section, "auth_url", cloud.identity());
        }
        magnum.set("keystone_authtoken", "www_authenticate_uri", cloud.identity());
        magnum.set("quotas", "max_clusters_per_project", 1_000_000);
        magnum.set("api", "accept_wait", 0);
        Ok(Self {
            environment,
            site,
            cloud,
            magnum,
        })
    }

    async fn ours(&mut self) -> Result<Contestant> {
        let port = free_port()?;
        self.magnum.set("api", "host", "127.0.0.1");
        self.magnum.set("api", "port", port);
        let program = Launch::command("bench-api", std::process::Command::new(&self.environment.program))
            .args(["api"])
            .config(&self.magnum.config_file()?)
            .ready_when(Ready::Http(format!("http://127.0.0.1:{port}/healthcheck")))
            .start()
            .await?;
        Ok(Contestant {
            program,
            address: local(port),
            is_ours: true,
        })
    }

    async fn magnums(&self) -> Result<Contestant> {
        let api = self.magnum.api(Served::Processes(PROCESSES)).await?;
        Ok(Contestant {
            address: local(api.port),
            program: api.program,
            is_ours: false,
        })
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

async fn scenarios(site: &Site) -> Result<Vec<Scenario>> {
    let one = site.cluster().await?;
    let get = |path: String| Shot {
        method: Method::GET,
        path,
        body: Bytes::new(),
        token: TOKEN,
        expected: StatusCode::OK,
    };
    let new: Value = json!({
        "name": "b", "cluster_template_id": template()?.uuid, "keypair": KEY_PAIR,
        "flavor_id": FLAVOR, "master_flavor_id": FLAVOR,
    });
    Ok(vec![
        Scenario {
            ours: "GET one",
            magnums: "  Magnum",
            shot: get(format!("/v1/clusters/{one}")),
            items: None,
            wanted: Some(50.0),
        },
        Scenario {
            ours: "GET 100",
            magnums: "  Magnum",
            shot: get("/v1/clusters?limit=100".to_owned()),
            items: Some(100),
            wanted: Some(200.0),
        },
        Scenario {
            ours: "GET 1000",
            magnums: "  Magnum",
            shot: get("/v1/clusters?limit=1000".to_owned()),
            items: Some(1_000),
            wanted: None,
        },
        Scenario {
            ours: "POST",
            magnums: "  Magnum",
            shot: Shot {
                method: Method::POST,
                path: "/v1/clusters".to_owned(),
                body: Bytes::from(new.to_string()),
                token: TOKEN,
                expected: StatusCode::ACCEPTED,
            },
            items: None,
            wanted: Some(20.0),
        },
    ])
}
