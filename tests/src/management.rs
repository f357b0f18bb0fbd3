//! RabbitMQ's management interface, as far as tests need it: vhosts, queues, exchanges, bindings and
//! connections as the broker knows them, which is the independent witness of what a client declared.
//!
//! Message counts come from statistics that lag by a second or more; poll them with [`crate::wait::until`].

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::rabbitmq::{PASSWORD, USER, VhostView};

/// A node's management interface.
#[derive(Debug, Clone)]
pub struct Management {
    base: String,
}

impl Management {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            base: format!("http://{address}/api"),
        }
    }

    /// Succeeds when the node answers.
    pub async fn overview(&self) -> Result<()> {
        self.get("overview").await.map(drop)
    }

    /// Makes a vhost; the administrator gets all permissions on it.
    pub async fn create_vhost(&self, name: &str) -> Result<()> {
        self.send(reqwest::Method::PUT, &format!("vhosts/{name}"), None)
            .await
            .map(drop)
    }

    /// Makes a user without a password, who may do everything in a vhost: one that logs in by its certificate.
    pub async fn create_passwordless_user(&self, name: &str, vhost: &str) -> Result<()> {
        let user = serde_json::json!({"password_hash": "", "tags": ""});
        self.send(reqwest::Method::PUT, &format!("users/{name}"), Some(user))
            .await?;
        let all = serde_json::json!({"configure": ".*", "write": ".*", "read": ".*"});
        let path = format!("permissions/{vhost}/{name}");
        self.send(reqwest::Method::PUT, &path, Some(all)).await.map(drop)
    }

    /// Any read of the interface, by its path below `/api/`.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.send(reqwest::Method::GET, path, None).await
    }

    async fn send(&self, method: reqwest::Method, path: &str, body: Option<Value>) -> Result<Value> {
        let url = format!("{}/{path}", self.base);
        // A client per request: a pooled connection would be tied to the runtime of the test that made it.
        let mut request = reqwest::Client::new()
            .request(method, &url)
            .basic_auth(USER, Some(PASSWORD));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.with_context(|| url.clone())?;
        let status = response.status();
        let text = response.text().await?;
        ensure!(status.is_success(), "{url}: {status}: {text}");
        if text.is_empty() {
            Ok(Value::Null)
        } else {
            serde_json::from_str(&text).with_context(|| format!("{url}: {text}"))
        }
    }
}

impl VhostView<'_> {
    /// All queues: name, type, durable, arguments, messages, consumers and the rest.
    pub async fn queues(&self) -> Result<Vec<Value>> {
        self.list("queues").await
    }

    /// One queue; an error when there is none of this name.
    pub async fn queue(&self, name: &str) -> Result<Value> {
        self.management
            .get(&format!("queues/{}/{}", self.vhost, name))
            .await
    }

    /// Messages in a queue, ready and unacknowledged; lags by a second or more.
    pub async fn messages(&self, queue: &str) -> Result<u64> {
        let found = self.queue(queue).await?;
        found["messages"]
            .as_u64()
            .with_context(|| format!("queue {queue} has no message count yet"))
    }

    /// How many consumers a queue has at this moment, which the broker knows without delay.
    pub async fn consumers(&self, queue: &str) -> Result<usize> {
        let all = self.list("consumers").await?;
        Ok(all.iter().filter(|one| one["queue"]["name"] == queue).count())
    }

    /// All exchanges.
    pub async fn exchanges(&self) -> Result<Vec<Value>> {
        self.list("exchanges").await
    }

    /// All bindings, the implied ones of the default exchange included.
    pub async fn bindings(&self) -> Result<Vec<Value>> {
        self.list("bindings").await
    }

    /// All connections to this vhost, with their client properties.
    pub async fn connections(&self) -> Result<Vec<Value>> {
        self.get_list(&format!("vhosts/{}/connections", self.vhost)).await
    }

    /// Closes every connection to this vhost from the broker's side.
    pub async fn close_connections(&self) -> Result<()> {
        for connection in self.connections().await? {
            let name = connection["name"]
                .as_str()
                .context("a connection without name")?
                .replace(' ', "%20")
                .replace('>', "%3E");
            self.management
                .send(reqwest::Method::DELETE, &format!("connections/{name}"), None)
                .await?;
        }
        Ok(())
    }

    /// Takes a queue away, with everything in it.
    pub async fn delete_queue(&self, name: &str) -> Result<()> {
        self.management
            .send(
                reqwest::Method::DELETE,
                &format!("queues/{}/{name}", self.vhost),
                None,
            )
            .await
            .map(drop)
    }

    /// Looks at up to `count` messages of a queue and puts them back. Of long payloads it shows the beginning.
    pub async fn peek(&self, queue: &str, count: u32) -> Result<Vec<Value>> {
        let body = serde_json::json!({ "count": count, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 50_000 });
        let found = self
            .management
            .send(
                reqwest::Method::POST,
                &format!("queues/{}/{queue}/get", self.vhost),
                Some(body),
            )
            .await?;
        found.as_array().cloned().context("not a list")
    }

    async fn list(&self, kind: &str) -> Result<Vec<Value>> {
        self.get_list(&format!("{kind}/{}", self.vhost)).await
    }

    async fn get_list(&self, path: &str) -> Result<Vec<Value>> {
        self.management
            .get(path)
            .await?
            .as_array()
            .cloned()
            .with_context(|| format!("{path}: not a list"))
    }
}
