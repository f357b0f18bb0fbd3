//! Both APIs, each with the sample rows in a database of its own, and one stand-in for the cloud.
//!
//! No conductor acts: what the APIs publish is taken from the queues and forgotten. So nothing changes but what the APIs
//! write themselves, and that is undone by [`Stage::reset`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use magnum_common::secret::Secret;
use magnum_config::Settings;
use magnum_rpc::{self as rpc};
use magnum_rpc_server::RpcServer;
use serde_json::Value;
use tokio::task::JoinHandle;

use super::request::{Body, Request};
use super::saved::{Saved, Side};
use crate::Backend;
use crate::builders::ConfigFile;
use crate::deployment::{Deployment, drivers};
use crate::ports::free_port;
use crate::process::{Launch, Program, Ready};
use crate::python_magnum::{ANNA, NORTH, PythonApi, PythonMagnum, Served, UBUNTU};

/// The other project, and its member, in the stand-in Keystone.
const SOUTH: &str = "22222222222222222222222222222222";
const BERT: &str = "62657274000000000000000000000000";
/// Both are asked one request at a time, so this is for a machine that has other things to do.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// The tables that an API writes.
const WRITTEN: [&str; 6] = [
    "cluster_template",
    "quotas",
    "cluster",
    "nodegroup",
    "federation",
    "x509keypair",
];

/// An answer as it came.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    /// A text when it is no JSON, null when there is none.
    pub body: Value,
    /// URL of the API.
    pub base: String,
}

#[derive(Debug)]
struct One {
    side: Side,
    base: String,
    deployment: Deployment,
    queue: JoinHandle<()>,
}

/// Both.
#[derive(Debug)]
pub struct Stage {
    theirs: One,
    ours: One,
    client: reqwest::Client,
    _magnum: PythonMagnum,
    _their_api: PythonApi,
    _our_api: Program,
}

impl Drop for One {
    fn drop(&mut self) {
        self.queue.abort();
    }
}

/// Rows that both begin with: those of the recordings, with the people and images of this stand-in.
fn rows() -> Result<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/db/sample-rows.mysql.sql");
    let mut rows = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    for (recorded, here) in [
        ("'11111111111111111111111111111111'", ANNA),
        ("'44444444444444444444444444444444'", BERT),
        ("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", NORTH),
        ("'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'", SOUTH),
        ("'00000001-1111-4111-8111-111111111111'", UBUNTU),
        ("'fake_alpha'", "scripted"),
        ("'fake_zeta'", "scripted"),
    ] {
        rows = rows.replace(recorded, &format!("'{here}'"));
    }
    Ok(rows)
}

async fn deployment() -> Result<Deployment> {
    let deployment = Deployment::new(Backend::Mariadb).await?;
    let mut sql = rows()?;
    for table in WRITTEN {
        sql.push_str(&format!("\nCREATE TABLE kept_{table} AS SELECT * FROM {table};"));
    }
    deployment.database.execute(&sql).await?;
    Ok(deployment)
}

/// Takes what comes for conductors, and does nothing.
async fn empty_queue(deployment: &Deployment) -> Result<JoinHandle<()>> {
    let mut settings = Settings::default();
    settings.default.transport_url = Secret::new(deployment.vhost.transport_url());
    let transport = rpc::connect(&settings, "nobody").await?;
    let mut server = RpcServer::start(Arc::clone(&transport), &settings, "nobody").await?;
    Ok(tokio::spawn(async move {
        while let Some(incoming) = server.recv().await {
            incoming.delivery.ack().await;
        }
        drop(transport);
    }))
}

impl Stage {
    /// Starts both.
    pub async fn start() -> Result<Self> {
        let (theirs, ours) = (deployment().await?, deployment().await?);
        let magnum = PythonMagnum::beside(&theirs).await?;
        let queues = (empty_queue(&theirs).await?, empty_queue(&ours).await?);
        let their_api = magnum.api(Served::Wsgi).await?;
        let port = free_port()?;
        let identity = magnum.identity();
        let mut config =
            ConfigFile::for_test(&ours.database.url(), &ours.vhost.transport_url(), &ours.folder);
        for (section, option, value) in [
            ("api", "host", "127.0.0.1"),
            ("api", "auth_strategy", "keystone"),
            ("api", "accept_wait", "0"),
            ("certificates", "cert_manager_type", "x509keypair"),
            ("keystone_authtoken", "www_authenticate_uri", identity),
            ("keystone_authtoken", "auth_url", identity),
            ("keystone_authtoken", "auth_type", "password"),
            ("keystone_authtoken", "username", "magnum"),
            ("keystone_authtoken", "password", "secret"),
            ("keystone_authtoken", "project_name", "service"),
            ("keystone_authtoken", "user_domain_name", "Default"),
            ("keystone_authtoken", "project_domain_name", "Default"),
        ] {
            config = config.set(section, option, value);
        }
        let config = config
            .set("api", "port", port)
            .set("drivers", "driver_path", drivers().display());
        let config = config.write(&ours.folder.join("differential-api.conf"))?;
        let our_api = Launch::program("magnum-api")?
            .config(&config)
            .ready_when(Ready::Http(format!("http://127.0.0.1:{port}/healthcheck")))
            .start()
            .await?;
        let their_base = their_api.rest.base().trim_end_matches("/v1").to_owned();
        Ok(Self {
            theirs: One {
                side: Side::Magnum,
                base: their_base,
                deployment: theirs,
                queue: queues.0,
            },
            ours: One {
                side: Side::Ours,
                base: format!("http://127.0.0.1:{port}"),
                deployment: ours,
                queue: queues.1,
            },
            client: reqwest::Client::builder().timeout(ANSWER_WITHIN).build()?,
            _magnum: magnum,
            _their_api: their_api,
            _our_api: our_api,
        })
    }

    /// Our description of the API, of the highest version.
    pub async fn description(&self) -> Result<Value> {
        let ask = self
            .client
            .get(format!("{}/v1/openapi.json", self.ours.base))
            .header("X-Auth-Token", "token-of-chief")
            .header("OpenStack-API-Version", "container-infra 1.16");
        Ok(ask.send().await?.error_for_status()?.json().await?)
    }

    /// Brings the rows back.
    pub async fn reset(&self) -> Result<()> {
        let mut sql = "SET FOREIGN_KEY_CHECKS = 0;".to_owned();
        for table in WRITTEN {
            sql.push_str(&format!(
                "DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept_{table};"
            ));
        }
        let ours = format!("{sql} DELETE FROM conductor_cluster_reservation;");
        tokio::try_join!(
            self.theirs.deployment.database.execute(&sql),
            self.ours.deployment.database.execute(&ours),
        )?;
        Ok(())
    }

    /// Sends it to both.
    pub async fn send(&self, request: &Request, saved: &Saved) -> Result<(Answer, Answer)> {
        tokio::try_join!(
            self.answer(&self.theirs, request, saved),
            self.answer(&self.ours, request, saved)
        )
    }

    async fn answer(&self, to: &One, request: &Request, saved: &Saved) -> Result<Answer> {
        let filled = |text: &str| saved.filled(text, to.side);
        let method: reqwest::Method = request.method.parse()?;
        let mut ask = self
            .client
            .request(method, format!("{}{}", to.base, filled(&request.target())));
        if request.user != "nobody" {
            ask = ask.header("X-Auth-Token", format!("token-of-{}", request.user));
        }
        if let Some(version) = &request.version {
            ask = ask.header("OpenStack-API-Version", format!("container-infra {version}"));
        }
        if let Some(accept) = request.accept {
            ask = ask.header("Accept", accept);
        }
        if let Some(kind) = request.content_type {
            ask = ask.header("Content-Type", kind);
        }
        if let Some(body) = request.body.as_ref().map(Body::text) {
            ask = ask.body(filled(&body));
        }
        let answer = ask
            .send()
            .await
            .with_context(|| format!("{:?}: {request}", to.side))?;
        let status = answer.status().as_u16();
        let headers = answer
            .headers()
            .iter()
            .map(|(name, value)| {
                (
                    name.to_string(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect();
        let text = answer.text().await?;
        let body = if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        };
        Ok(Answer {
            status,
            headers,
            body,
            base: to.base.clone(),
        })
    }
}
