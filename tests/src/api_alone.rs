//! The API alone in this process: SQLite, in-process messaging, identity from headers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use magnum_api_shim::Api;
use magnum_common::secret::Secret;
use magnum_config::{AuthStrategy, DatabaseSection, Settings};
use magnum_db::{Database, migrate};
use magnum_rpc::{self as rpc, Transport};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::TestDatabase;
use crate::oslo_peer::python;
use crate::process::Launch;
use crate::run_dir::run_dir;

/// A running API.
pub struct World {
    /// The API.
    pub api: Api,
    /// The connections that it has.
    pub pool: Database,
    transport: Arc<dyn Transport>,
    database: TestDatabase,
}

impl World {
    /// With settings that `change` decides.
    pub async fn start(change: impl FnOnce(&mut Settings)) -> Result<Self> {
        Self::start_as(change, |_| {}).await
    }

    /// The same, of which the API itself is told something else than what database and broker were reached by.
    pub async fn start_as(
        change: impl FnOnce(&mut Settings),
        tell: impl FnOnce(&mut Settings),
    ) -> Result<Self> {
        let test = TestDatabase::sqlite()?;
        let mut settings = Settings {
            database: DatabaseSection {
                connection: Secret::new(test.url()),
                ..DatabaseSection::default()
            },
            ..Settings::default()
        };
        settings.api.port = 0;
        settings.api.admin_listen = Some(([127, 0, 0, 1], 0).into());
        settings.api.auth_strategy = AuthStrategy::Noauth;
        settings.default.transport_url = Secret::new(format!("fake://{}", test.name));
        settings.drivers.driver_path = Vec::new();
        change(&mut settings);
        migrate::upgrade(&settings.database).await?;
        let database = Database::connect(&settings.database).await?;
        let transport = rpc::connect(&settings, "test").await?;
        tell(&mut settings);
        let api = Api::start(&settings, Arc::clone(&transport), database.clone()).await?;
        Ok(Self {
            api,
            pool: database,
            transport,
            database: test,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.api.address()
    }

    /// URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.api.address())
    }

    /// URL of a path of the admin interface.
    pub fn admin(&self, path: &str) -> String {
        let address = self.api.admin_address().map(|address| address.to_string());
        format!("http://{}{path}", address.unwrap_or_default())
    }

    /// Changes rows.
    pub async fn sql(&self, sql: &str) -> Result<()> {
        self.database.execute(sql).await
    }

    /// Stops it in good order.
    pub async fn stop(self) {
        self.api.stop().await;
        self.transport.close().await;
    }
}

/// Everything that comes on a connection after these bytes were sent, until it ends.
pub async fn exchange(address: SocketAddr, sent: &[u8]) -> Result<String> {
    let mut client = TcpStream::connect(address).await?;
    client.write_all(sent).await?;
    rest(&mut client).await
}

/// Everything that still comes on a connection.
pub async fn rest(client: &mut TcpStream) -> Result<String> {
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The results of the real oslo.middleware for these cases.
pub async fn oslo(topic: &str, cases: &Value) -> Result<Vec<Value>> {
    let file = run_dir()?
        .folder("oslo-middleware")?
        .join(format!("{topic}.json"));
    std::fs::write(&file, cases.to_string())?;
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("peers/middleware_truth.py");
    let launch = Launch::command("oslo-middleware", std::process::Command::new(python()?));
    let printed = launch
        .args([script.as_os_str(), topic.as_ref(), file.as_os_str()])
        .output()
        .await?;
    Ok(serde_json::from_str(&printed)?)
}
