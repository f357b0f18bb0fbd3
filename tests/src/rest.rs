//! A small REST client for tests: the newest microversion, JSON in and out, and the requests that most tests
//! begin with.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::wait;

/// The image that a deployment's catalog knows.
pub const IMAGE: &str = "ubuntu-24.04";

/// A client of one API process.
#[derive(Debug, Clone)]
pub struct Rest {
    base: String,
    client: reqwest::Client,
    version: String,
    token: Option<String>,
    /// Project and user, for an API that believes its clients.
    identity: Option<(String, String)>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status code.
    pub status: StatusCode,
    /// Its JSON, null when there is none.
    pub body: Value,
    /// Its `x-openstack-request-id`.
    pub request_id: Option<String>,
}

impl Answer {
    /// The detail of a fault.
    pub fn detail(&self) -> &str {
        self.body["errors"][0]["detail"].as_str().unwrap_or_default()
    }

    /// The body, when the status is the expected one.
    pub fn expect(self, status: u16) -> Result<Value> {
        ensure!(
            self.status.as_u16() == status,
            "{} instead of {status}: {}",
            self.status,
            self.body
        );
        Ok(self.body)
    }
}

impl Rest {
    /// A client of the API at `base`, which ends in `/v1`.
    pub fn new(base: &str) -> Self {
        Self {
            base: base.to_owned(),
            client: reqwest::Client::new(),
            version: "latest".to_owned(),
            token: None,
            identity: None,
        }
    }

    /// The same with another microversion.
    #[must_use]
    pub fn at_version(&self, version: &str) -> Self {
        Self {
            version: version.to_owned(),
            ..self.clone()
        }
    }

    /// The same with a token in `X-Auth-Token`.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self {
            token: Some(token.to_owned()),
            ..self.clone()
        }
    }

    /// The same as this user of this project, for an API that believes its clients (`noauth`).
    #[must_use]
    pub fn as_somebody(&self, project: &str, user: &str) -> Self {
        Self {
            identity: Some((project.to_owned(), user.to_owned())),
            ..self.clone()
        }
    }

    /// The endpoint.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Sends a request.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer> {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.base))
            .header(
                "OpenStack-API-Version",
                format!("container-infra {}", self.version),
            )
            .timeout(Duration::from_secs(60));
        if let Some(token) = &self.token {
            request = request.header("X-Auth-Token", token);
        }
        if let Some((project, user)) = &self.identity {
            request = request.header("X-Project-Id", project).header("X-User-Id", user);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await?;
        let status = response.status();
        let request_id = response.headers().get("x-openstack-request-id");
        let request_id = request_id.and_then(|id| id.to_str().ok()).map(str::to_owned);
        let text = response.text().await?;
        let body = if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        };
        Ok(Answer {
            status,
            body,
            request_id,
        })
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.send(Method::GET, path, None).await
    }

    /// POST.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        self.send(Method::POST, path, Some(body)).await
    }

    /// PATCH.
    pub async fn patch(&self, path: &str, body: &Value) -> Result<Answer> {
        self.send(Method::PATCH, path, Some(body)).await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str) -> Result<Answer> {
        self.send(Method::DELETE, path, None).await
    }

    /// Makes a template for the scripted driver and returns its uuid.
    pub async fn create_template(&self, name: &str) -> Result<String> {
        self.create_template_for(name, "scripted").await
    }

    /// Makes a template for this driver and returns its uuid.
    pub async fn create_template_for(&self, name: &str, driver: &str) -> Result<String> {
        let body = json!({
            "name": name, "image_id": IMAGE, "coe": "kubernetes", "external_network_id": "public", "keypair_id": "key",
            "flavor_id": "m1.small", "master_flavor_id": "m1.small", "driver": driver
        });
        uuid(&self.post("/clustertemplates", &body).await?.expect(201)?)
    }

    /// Asks for a cluster whose driver behaves as the labels say, and returns its uuid.
    pub async fn create_cluster(&self, template: &str, name: &str, labels: Value) -> Result<String> {
        uuid(&self.ask_for_cluster(template, name, labels).await?.expect(202)?)
    }

    /// Asks for a cluster and returns the answer, whatever it is.
    pub async fn ask_for_cluster(&self, template: &str, name: &str, labels: Value) -> Result<Answer> {
        let body = json!({
            "name": name, "cluster_template_id": template, "node_count": 1, "master_count": 1, "keypair": "key",
            "create_timeout": 60, "labels": labels
        });
        self.post("/clusters", &body).await
    }

    /// Asks for another number of nodes.
    pub async fn resize(&self, cluster: &str, nodes: u32) -> Result<Answer> {
        self.patch(
            &format!("/clusters/{cluster}"),
            &json!([{"op": "replace", "path": "/node_count", "value": nodes}]),
        )
        .await
    }

    /// The status of a cluster; `None` when there is no such cluster.
    pub async fn status(&self, cluster: &str) -> Result<Option<String>> {
        let answer = self.get(&format!("/clusters/{cluster}")).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        Ok(Some(
            answer.expect(200)?["status"]
                .as_str()
                .context("no status")?
                .to_owned(),
        ))
    }

    /// Waits until a cluster has this status.
    pub async fn wait_status(&self, cluster: &str, status: &str, within: Duration) -> Result<Value> {
        wait::until(&format!("cluster {cluster} to be {status}"), within, async || {
            let body = self.get(&format!("/clusters/{cluster}")).await?.expect(200)?;
            ensure!(
                body["status"] == status,
                "{}: {}",
                body["status"],
                body["status_reason"]
            );
            Ok(body)
        })
        .await
    }

    /// Waits until a cluster is gone.
    pub async fn wait_gone(&self, cluster: &str, within: Duration) -> Result<()> {
        wait::until(&format!("cluster {cluster} to be gone"), within, async || {
            let status = self.status(cluster).await?;
            ensure!(status.is_none(), "{status:?}");
            Ok(())
        })
        .await
    }
}

fn uuid(body: &Value) -> Result<String> {
    Ok(body["uuid"]
        .as_str()
        .with_context(|| format!("no uuid in {body}"))?
        .to_owned())
}
