//! As much of a REST client as the demonstration needs.

use anyhow::{Context as _, bail};
use reqwest::{Method, StatusCode};
use serde_json::Value;

/// A client of one API.
pub(super) struct Client {
    base: String,
    http: reqwest::Client,
}

impl Client {
    /// For the API at `base`.
    pub(super) fn new(base: String) -> Self {
        Self {
            base,
            http: reqwest::Client::new(),
        }
    }

    /// POST.
    pub(super) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.send(Method::POST, path, Some(body)).await?.done()
    }

    /// PATCH.
    pub(super) async fn patch(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.send(Method::PATCH, path, Some(body)).await?.done()
    }

    /// DELETE.
    pub(super) async fn delete(&self, path: &str) -> anyhow::Result<Value> {
        self.send(Method::DELETE, path, None).await?.done()
    }

    /// GET; `None` for what is not there.
    pub(super) async fn find(&self, path: &str) -> anyhow::Result<Option<Value>> {
        let answer = self.send(Method::GET, path, None).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        answer.done().map(Some)
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Answer> {
        let what = format!("{method} {path}");
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.base))
            .header("OpenStack-API-Version", "container-infra latest");
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.with_context(|| what.clone())?;
        let status = response.status();
        let text = response.text().await.with_context(|| what.clone())?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Answer { what, status, body })
    }
}

struct Answer {
    what: String,
    status: StatusCode,
    body: Value,
}

impl Answer {
    fn done(self) -> anyhow::Result<Value> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        bail!("{}: {}: {}", self.what, self.status, self.body)
    }
}
