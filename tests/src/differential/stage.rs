//! Both APIs, each with the sample rows in a database of its own, and one stand-in for the cloud.
//!
//! Either no conductor acts: what the APIs publish is taken from the queues and forgotten, and nothing changes but what the
//! APIs write themselves. Or each has its own, with drivers that do the same, and [`Stage::settle`] waits for both. What a
//! sequence has changed is undone by [`Stage::reset`].

mod behind;
mod rows;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

pub use self::behind::Behind;
use self::behind::Taker;

use super::request::{Body, Request};
use super::saved::{Saved, Side};
use crate::builders::ConfigFile;
use crate::deployment::{Deployment, drivers};
use crate::ports::free_port;
use crate::process::{Launch, Program, Ready};
use crate::python_magnum::{PythonApi, PythonMagnum, Served, service_user};

/// Both are asked one request at a time, so this is for a machine that has other things to do.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

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
    taker: Taker,
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

impl Stage {
    /// Starts both.
    pub async fn start(behind: Behind) -> Result<Self> {
        let (theirs, mut ours) = (rows::deployment().await?, rows::deployment().await?);
        let mut magnum = PythonMagnum::beside(&theirs).await?;
        // Magnum adds tracebacks to its answers otherwise.
        magnum.set("DEFAULT", "debug", false);
        // How long ours waits until a conductor has recorded what it was sent.
        let accept_wait = match behind {
            Behind::Nobody => "0",
            Behind::Conductors => "60",
        };
        let takers = match behind {
            Behind::Nobody => (Taker::queue(&theirs).await?, Taker::queue(&ours).await?),
            Behind::Conductors => {
                // Nothing is there whose health could be asked.
                magnum.set("kubernetes", "health_polling_interval", -1);
                ours.set("kubernetes", "health_polling_interval", -1);
                rows::end_what_is_in_progress(&theirs).await?;
                rows::end_what_is_in_progress(&ours).await?;
                (Taker::magnum(&magnum, &theirs).await?, Taker::ours(&ours).await?)
            }
        };
        let their_api = magnum.api(Served::Wsgi).await?;
        let port = free_port()?;
        let identity = magnum.identity();
        let mut config =
            ConfigFile::for_test(&ours.database.url(), &ours.vhost.transport_url(), &ours.folder);
        for (option, value) in service_user(identity) {
            config = config.set("keystone_authtoken", option, value);
        }
        let config = config
            .set("keystone_authtoken", "www_authenticate_uri", identity)
            .set("certificates", "cert_manager_type", "x509keypair")
            .set("api", "host", "127.0.0.1")
            .set("api", "auth_strategy", "keystone")
            .set("api", "accept_wait", accept_wait)
            .set("api", "port", port)
            .set("drivers", "driver_path", drivers().display());
        let config = config.write(&ours.folder.join("differential-api.conf"))?;
        let our_api = Launch::program("magnum-api")?
            .config(&config)
            .ready_when(Ready::Http(format!("http://127.0.0.1:{port}/healthcheck")))
            .start()
            .await?;
        let their_base = their_api.rest.base().trim_end_matches("/v1").to_owned();
        let stage = Self {
            theirs: One {
                side: Side::Magnum,
                base: their_base,
                deployment: theirs,
                taker: takers.0,
            },
            ours: One {
                side: Side::Ours,
                base: format!("http://127.0.0.1:{port}"),
                deployment: ours,
                taker: takers.1,
            },
            client: reqwest::Client::builder().timeout(ANSWER_WITHIN).build()?,
            _magnum: magnum,
            _their_api: their_api,
            _our_api: our_api,
        };
        rows::keep(&stage.theirs.deployment).await?;
        rows::keep(&stage.ours.deployment).await?;
        if behind == Behind::Conductors {
            stage.make_keys().await?;
            rows::keep_certificates(&stage.theirs.deployment).await?;
            rows::keep_certificates(&stage.ours.deployment).await?;
            stage.reset().await?;
        }
        Ok(stage)
    }

    /// Gives the cluster of the sample rows certificates with keys, which those have not.
    async fn make_keys(&self) -> Result<()> {
        let request = Request::new(
            "anna",
            "PATCH",
            "/v1/certificates/000000c1-0000-4000-8000-000000000001",
        );
        let (theirs, ours) = self.send(&request, &Saved::default()).await?;
        ensure!((theirs.status, ours.status) == (202, 202), "{theirs:?} {ours:?}");
        self.settle(&request, &theirs, &ours).await.map(drop)
    }

    /// Waits until all is done that both have accepted; these are the answers to the last request. Returns how clusters of
    /// Magnum's are that will be in progress for ever.
    pub async fn settle(&self, request: &Request, theirs: &Answer, ours: &Answer) -> Result<Vec<String>> {
        if ours.status < 300 {
            self.ours.taker.settle(request).await?;
        }
        if theirs.status < 300 {
            return self.theirs.taker.settle(request).await;
        }
        Ok(Vec::new())
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
        let sql = rows::back();
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
