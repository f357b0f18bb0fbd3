//! The API in this process, with the real Keystone behind a line that counts what is asked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use magnum_api_shim::Api;
use magnum_common::secret::Secret;
use magnum_config::{DatabaseSection, Settings};
use magnum_db::{Database, migrate};
use magnum_rpc::{self as rpc, Transport};
use magnum_rpc_server::RpcServer;
use magnum_tests::TestDatabase;
use magnum_tests::http_trap::HttpTrap;
use magnum_tests::keystone_people::People;
use magnum_tests::openstack::{OpenStack, PASSWORD};
use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

const VALIDATION: &str = "GET /v3/auth/tokens";

/// The real Keystone behind a line that counts.
pub struct Cloud {
    pub people: People,
    line: HttpTrap,
    region: String,
}

impl Cloud {
    pub async fn start() -> Result<Self> {
        let keystone = OpenStack::shared().await?;
        let line = HttpTrap::start(keystone.keystone_address()).await?;
        let url = format!("http://{}/v3", line.address());
        Ok(Self {
            people: People::of(keystone).await?,
            region: keystone.region_of("identity", "internal", &url).await?,
            line,
        })
    }

    /// How often Keystone was asked about a token.
    pub fn validations(&self) -> usize {
        self.line.seen().get(VALIDATION).copied().unwrap_or(0)
    }

    /// How often the service user logged in.
    pub fn log_ins(&self) -> usize {
        self.line.seen().get("POST /v3/auth/tokens").copied().unwrap_or(0)
    }

    /// Settings with Keystone behind the counting line.
    pub fn settings(&self) -> Settings {
        settings(self.line.address(), &self.region)
    }
}

/// Settings of an API whose Keystone is at `address` and in this region of the catalog.
pub fn settings(address: SocketAddr, region: &str) -> Settings {
    let mut settings = Settings::default();
    let section = &mut settings.keystone_authtoken;
    section.www_authenticate_uri = Some("http://keystone.example:5000".to_owned());
    section.auth_url = Some(format!("http://{address}"));
    section.username = Some("magnum".to_owned());
    section.password = Some(Secret::new(PASSWORD));
    section.project_name = Some("service".to_owned());
    section.user_domain_name = Some("Default".to_owned());
    section.project_domain_name = Some("Default".to_owned());
    section.region_name = Some(region.to_owned());
    settings
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

/// One API, and somebody who takes what it asks of conductors.
pub struct World {
    api: Api,
    transport: Arc<dyn Transport>,
    listening: JoinHandle<()>,
    client: reqwest::Client,
    database: TestDatabase,
    /// What the API asked of conductors.
    pub asked: mpsc::UnboundedReceiver<rpc::Request>,
}

impl World {
    pub async fn start(mut settings: Settings) -> Result<Self> {
        let test = TestDatabase::sqlite()?;
        let section = DatabaseSection {
            connection: Secret::new(test.url()),
            ..DatabaseSection::default()
        };
        migrate::upgrade(&section).await?;
        settings.api.port = 0;
        settings.api.accept_wait = Duration::ZERO;
        settings.default.transport_url = Secret::new(format!("fake://{}", test.name));
        let transport = rpc::connect(&settings, "test").await?;
        let mut server = RpcServer::start(Arc::clone(&transport), &settings, "one").await?;
        let (tell, asked) = mpsc::unbounded_channel();
        let listening = tokio::spawn(async move {
            while let Some(incoming) = server.recv().await {
                incoming.delivery.ack().await;
                let _ = tell.send(incoming.request);
            }
        });
        let database = Database::connect(&section).await?;
        Ok(Self {
            api: Api::start(&settings, Arc::clone(&transport), database).await?,
            transport,
            listening,
            client: reqwest::Client::new(),
            database: test,
            asked,
        })
    }

    pub async fn stop(self) {
        self.api.stop().await;
        self.transport.close().await;
        self.listening.abort();
    }

    /// Changes rows.
    pub async fn sql(&self, sql: String) -> Result<()> {
        self.database.execute(&sql).await
    }

    /// GET with a token.
    pub async fn get(&self, path: &str, token: &str) -> Answer {
        self.ask("GET", path, &[("x-auth-token", token)], Value::Null)
            .await
    }

    /// Status of a list of clusters with a token.
    pub async fn status(&self, token: &str) -> u16 {
        self.get("/v1/clusters", token).await.status
    }

    /// Any request.
    pub async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Value) -> Answer {
        let mut request = self
            .client
            .request(
                method.parse().unwrap(),
                format!("http://{}{path}", self.api.address()),
            )
            .header("OpenStack-API-Version", "container-infra latest");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if !body.is_null() {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Answer {
            status,
            headers,
            body,
        }
    }
}
