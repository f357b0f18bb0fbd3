//! Clients that make, change and delete clusters until they are stopped, and write down what they are told: one half of what
//! [`crate::checker`] decides from. The other half is read from the driver's record and the rows.
//!
//! Each client has one cluster at a time and takes it through its life. A request that was not promised, or whose answer did
//! not come, is not asked again: its client goes on as the rows allow, or begins with another cluster; so it does when its
//! cluster takes long. How far they are is counted, so that a test lets things happen when so many more requests were confirmed,
//! and not when some time has passed.

mod verdict;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde_json::json;

use crate::checker::history::{Heard, Millis, RequestId, Told};
use crate::deployment::Deployment;
use crate::rest::{Answer, Rest};
use crate::wait;

pub use verdict::Summary;

/// How long a run may take to get further, or to settle.
const PATIENCE: Duration = Duration::from_secs(180);
/// The time limit that each request asks for, or has by configuration.
const LIMIT: Duration = Duration::from_secs(3600);
/// How long a client waits for its cluster, or for an API that answers. Then it begins with another one: a conductor whose node of
/// the database is away keeps what it has in hand until that is back.
const TIRED: Duration = Duration::from_secs(10);
/// How long a client thinks about each answer. Without a pause a few clients take all of the processors, and a server that is started
/// again meanwhile gets so little of them that it takes minutes.
const THINKS: Duration = Duration::from_millis(200);
/// As many projects share the work.
const TENANTS: usize = 3;

/// What clients were told so far.
#[derive(Debug, Default)]
pub struct ClientStream {
    told: Mutex<Vec<Told>>,
    confirmed: AtomicUsize,
    clusters: AtomicUsize,
    is_over: AtomicBool,
}

impl ClientStream {
    /// So many clients ask while `round` is made: once, or for as long as `MAGNUM_TESTS_CLUSTER_MINUTES` says, and a little more.
    /// Returns how many rounds were made.
    pub async fn during(
        &self,
        apis: &[Rest],
        clients: usize,
        mut round: impl AsyncFnMut() -> Result<()>,
    ) -> Result<usize> {
        let rounds = async {
            let (begun, mut rounds) = (Instant::now(), 0);
            while rounds == 0 || begun.elapsed() < rounds_take()? {
                round().await?;
                rounds += 1;
            }
            self.goes_on(8).await?;
            self.stop();
            Ok::<_, anyhow::Error>(rounds)
        };
        let (rounds, ()) = futures::try_join!(rounds, self.run(apis, clients))?;
        Ok(rounds)
    }

    /// Asks at these APIs by turns, as so many clients, until [`Self::stop`].
    pub async fn run(&self, apis: &[Rest], clients: usize) -> Result<()> {
        let templates = (0..TENANTS).map(async |number| {
            let rest = apis[0].as_somebody(&tenant(number), "somebody");
            wait::until("the template", PATIENCE, async || {
                rest.create_template("small").await
            })
            .await
        });
        let templates = futures::future::try_join_all(templates).await?;
        let clients = (0..clients).map(async |client| {
            while !self.is_over.load(Ordering::Relaxed) {
                let number = self.clusters.fetch_add(1, Ordering::Relaxed);
                let (tenant, template) = (tenant(client % TENANTS), &templates[client % TENANTS]);
                let rest = apis[number % apis.len()].as_somebody(&tenant, "somebody");
                let elsewhere = apis[(number + 1) % apis.len()].as_somebody(&tenant, "somebody");
                self.life(&tenant, [&rest, &elsewhere], template, number).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
        futures::future::try_join_all(clients).await.map(drop)
    }

    /// Lets the clients end, each with the request that it is at.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Requests that were confirmed so far.
    pub fn confirmed(&self) -> usize {
        self.confirmed.load(Ordering::Relaxed)
    }

    /// Waits until so many more requests were confirmed.
    pub async fn goes_on(&self, more: usize) -> Result<()> {
        let wanted = self.confirmed() + more;
        wait::until(
            &format!("{more} more requests to be confirmed"),
            PATIENCE,
            async || {
                let now = self.confirmed();
                ensure!(now >= wanted, "{now} of {wanted}");
                Ok(())
            },
        )
        .await
    }

    /// One cluster from its creation to its end, as far as it comes. Changes are asked of another API than the creation,
    /// if that answers.
    async fn life(&self, tenant: &str, apis: [&Rest; 2], template: &str, number: usize) -> Result<()> {
        let [here, there] = apis;
        let asked = now();
        let answer = here
            .ask_for_cluster(template, &format!("c{number}"), json!({}))
            .await;
        let made = answer
            .as_ref()
            .ok()
            .and_then(|answer| answer.body["uuid"].as_str());
        let Some(cluster) = made.map(str::to_owned) else {
            self.note(tenant, "cluster_create", None, asked, answer)?;
            tokio::time::sleep(THINKS).await;
            return Ok(());
        };
        self.note(tenant, "cluster_create", Some(&cluster), asked, answer)?;
        let more = json!([{"op": "replace", "path": "/node_count", "value": 2}]);
        let most = json!({"node_count": 3});
        let path = format!("/clusters/{cluster}");
        let resize = format!("{path}/actions/resize");
        for (kind, method, path, body) in [
            ("cluster_update", Method::PATCH, &path, Some(&more)),
            ("cluster_resize", Method::POST, &resize, Some(&most)),
            ("cluster_delete", Method::DELETE, &path, None),
        ] {
            let Some(api) = self.is_ready([there, here], &cluster).await else {
                return Ok(());
            };
            let asked = now();
            let answer = api.send(method, path, body).await;
            self.note(tenant, kind, Some(&cluster), asked, answer)?;
        }
        Ok(())
    }

    /// Waits until a cluster can be seen and nothing is at work on it. Returns the first API that says so; none when the run is
    /// over, or the client is [`TIRED`].
    async fn is_ready<'a>(&self, apis: [&'a Rest; 2], cluster: &str) -> Option<&'a Rest> {
        let begun = Instant::now();
        while !self.is_over.load(Ordering::Relaxed) && begun.elapsed() < TIRED {
            tokio::time::sleep(THINKS).await;
            for api in apis {
                // Reads fail while servers are away.
                if let Ok(Some(status)) = api.status(cluster).await
                    && !status.ends_with("_IN_PROGRESS")
                {
                    return Some(api);
                }
            }
        }
        None
    }

    fn note(
        &self,
        tenant: &str,
        kind: &str,
        cluster: Option<&str>,
        asked: Millis,
        answer: Result<Answer>,
    ) -> Result<()> {
        let (id, heard) = match answer {
            Err(_) => (None, Heard::Nothing),
            Ok(answer) => {
                let id = answer.request_id.clone().map(RequestId::Rest);
                let status = answer.status.as_u16();
                let heard = match status {
                    200 | 202 | 204 => Heard::Confirmed,
                    _ => Heard::Refused {
                        status,
                        text: answer.body.to_string(),
                    },
                };
                // A mistake of the test would look like a quiet run.
                ensure!(
                    heard == Heard::Confirmed || matches!(status, 404 | 409 | 500..),
                    "{kind}: {status}: {}",
                    answer.body
                );
                (id, heard)
            }
        };
        if heard == Heard::Confirmed {
            self.confirmed.fetch_add(1, Ordering::Relaxed);
        }
        self.told
            .lock()
            .map_err(|_| anyhow::anyhow!("a client panicked"))?
            .push(Told {
                id,
                tenant: tenant.to_owned(),
                kind: kind.to_owned(),
                cluster: cluster.map(str::to_owned),
                asked,
                limit: Millis::try_from(LIMIT.as_millis())?,
                heard,
            });
        Ok(())
    }
}

/// How long rounds are made.
fn rounds_take() -> Result<Duration> {
    let minutes: u64 = match std::env::var("MAGNUM_TESTS_CLUSTER_MINUTES") {
        Ok(minutes) => minutes
            .parse()
            .with_context(|| format!("MAGNUM_TESTS_CLUSTER_MINUTES={minutes}"))?,
        Err(_) => 0,
    };
    Ok(Duration::from_secs(60 * minutes))
}

fn tenant(number: usize) -> String {
    format!("tenant-{number}")
}

/// What runs under kills have in common: programs that this machine can carry, room for all clusters, a lease that a failover
/// does not end.
pub fn prepare(deployment: &mut Deployment) {
    for (section, option, value) in [
        ("conductor", "operation_workers", 12),
        ("conductor", "operation_retry_max_attempts", 100),
        ("conductor", "operation_lease", 15),
        ("quotas", "max_clusters_per_project", 10_000),
        ("api", "accept_wait", 5),
    ] {
        deployment.set(section, option, value);
    }
    deployment.set_driver_delay(Duration::from_millis(200));
}

fn now() -> Millis {
    #[expect(
        clippy::disallowed_methods,
        reason = "what clients were told is compared with the journal's times"
    )]
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}
