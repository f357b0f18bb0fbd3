//! What a recorded request meets: the API in this process, on a database with the sample rows, with the drivers of the
//! recording, and a cloud that answers like the recorded one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use magnum_api_shim::Api;
use magnum_common::secret::Secret;
use magnum_conductor::app::Conductor;
use magnum_config::{AuthStrategy, CertManagerType, DatabaseSection, KeyType, Settings};
use magnum_db::schema::conductor_operation;
use magnum_db::{Database, DbError, migrate};
use magnum_rpc::{self as rpc, Request, Transport};
use magnum_rpc_server::RpcServer;
use magnum_tests::recorded_cloud::{RecordedCloud, token_of};
use magnum_tests::{TestDatabase, wait};
use serde_json::Value;
use tokio::sync::{OnceCell, mpsc};
use tokio::task::JoinHandle;

use super::case::{Case, Wait};
use super::drivers::{self, DRIVERS};

const PATIENCE: Duration = Duration::from_secs(60);

/// An answer, as far as it is compared.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    /// Null when there is none.
    pub body: Value,
    /// URL of the API that answered.
    pub base: String,
}

/// Who takes what the API asks of conductors.
enum Behind {
    Nobody,
    /// A listener of the test, which does nothing.
    Listener,
    /// A conductor of ours with the drivers of the recording.
    Conductor,
}

/// One API with everything around it.
pub struct World {
    api: Api,
    database: Database,
    transport: Arc<dyn Transport>,
    listening: Option<JoinHandle<()>>,
    conductor: Option<Conductor>,
    client: reqwest::Client,
    /// What the API asked of conductors.
    pub asked: mpsc::UnboundedReceiver<Request>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// `[drivers]` of each recorded profile: default, disabled, enabled beta.
fn choose_drivers(profile: &str, settings: &mut Settings) {
    let section = &mut settings.drivers;
    section.driver_path = Vec::new();
    section.disabled_drivers = names("fake_mid,zz_fake_beta");
    match profile {
        "base" => {}
        "default_zeta" => section.default_driver = Some("fake_zeta".into()),
        "default_unknown" => section.default_driver = Some("no_such_driver".into()),
        "default_disabled" => section.default_driver = Some("fake_mid".into()),
        "default_beta" => section.default_driver = Some("fake_preview".into()),
        "beta_enabled" => section.enabled_beta_drivers = names("fake_preview"),
        "beta_shared" => section.disabled_drivers = names("fake_mid"),
        "nothing_disabled" => {
            section.disabled_drivers = Vec::new();
            section.enabled_beta_drivers = names("zz_fake_beta,fake_preview");
        }
        "no_drivers" => {
            section.disabled_drivers = names("fake_alpha,fake_mid,fake_zeta,fake_preview,zz_fake_beta");
        }
        other => panic!("no profile {other}"),
    }
}

fn names(list: &str) -> Vec<String> {
    list.split(',').map(str::to_owned).collect()
}

/// A database file with tables, sample rows and announced drivers, made once and copied for each world.
async fn template_file() -> &'static PathBuf {
    static FILE: OnceCell<PathBuf> = OnceCell::const_new();
    FILE.get_or_init(|| async {
        let test = TestDatabase::sqlite().unwrap();
        migrate::upgrade(&section(&test)).await.unwrap();
        let database = open(&test).await;
        let rows = std::fs::read_to_string(fixtures().join("db/sample-rows.sqlite.sql")).unwrap();
        execute(&database, rows).await;
        for (name, beta, os, can) in DRIVERS {
            let beta = i32::from(beta);
            let can: Vec<String> = can.iter().map(|name| format!("\"{name}\": true")).collect();
            let can = can.join(", ");
            execute(
                &database,
                format!(
                    "insert into conductor_driver (conductor, host, name, version, beta, cluster_types, \
                     capabilities, master_size_rule, announced_ms) values ('c:1', 'c', '{name}', '1.0.0', {beta}, \
                     '[{{\"server_type\": \"vm\", \"os\": \"{os}\", \"coe\": \"kubernetes\"}}]', '{{{can}}}', 'odd', \
                     cast(strftime('%s', 'now') as integer) * 1000 + 3600000)"
                ),
            )
            .await;
        }
        execute(&database, "pragma wal_checkpoint(truncate)".to_owned()).await;
        test.file().unwrap().clone()
    })
    .await
}

fn section(test: &TestDatabase) -> DatabaseSection {
    DatabaseSection {
        connection: Secret::new(test.url()),
        ..DatabaseSection::default()
    }
}

async fn open(test: &TestDatabase) -> Database {
    Database::connect(&section(test)).await.unwrap()
}

async fn execute(database: &Database, sql: String) {
    database
        .run(move |connection| connection.batch_execute(&sql).map_err(DbError::from))
        .await
        .unwrap();
}

impl Answer {
    /// The error's whole message.
    pub fn detail(&self) -> &str {
        self.body
            .pointer("/errors/0/detail")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

/// Takes every request from the conductors' queue and tells the test.
async fn listener(
    transport: &Arc<dyn Transport>,
    settings: &Settings,
    tell: mpsc::UnboundedSender<Request>,
) -> JoinHandle<()> {
    let mut server = RpcServer::start(Arc::clone(transport), settings, "one")
        .await
        .unwrap();
    tokio::spawn(async move {
        while let Some(incoming) = server.recv().await {
            incoming.delivery.ack().await;
            let _ = tell.send(incoming.request);
        }
    })
}

impl World {
    /// A fresh world with the drivers of `profile`. Its conductor takes every request and does nothing, and the
    /// API does not wait for it.
    pub async fn start(profile: &str) -> Self {
        let mut settings = Settings::default();
        choose_drivers(profile, &mut settings);
        settings.api.accept_wait = Duration::ZERO;
        Box::pin(Self::with(settings, Behind::Listener)).await
    }

    /// A fresh world with a conductor that has the drivers of the recording.
    pub async fn with_conductor(profile: &str) -> Self {
        let mut settings = Settings::default();
        choose_drivers(profile, &mut settings);
        settings.api.accept_wait = PATIENCE;
        Box::pin(Self::with(settings, Behind::Conductor)).await
    }

    /// One whose API waits as long as `settings` say.
    pub async fn patient(mut settings: Settings) -> Self {
        choose_drivers("base", &mut settings);
        Box::pin(Self::with(settings, Behind::Listener)).await
    }

    /// One in which nobody has ever listened.
    pub async fn without_conductor(mut settings: Settings) -> Self {
        choose_drivers("base", &mut settings);
        Box::pin(Self::with(settings, Behind::Nobody)).await
    }

    async fn with(mut settings: Settings, behind: Behind) -> Self {
        let test = TestDatabase::sqlite().unwrap();
        std::fs::copy(template_file().await, test.file().unwrap()).unwrap();
        let database = open(&test).await;
        settings.api.port = 0;
        settings.certificates.cert_manager_type = CertManagerType::X509KeyPair;
        settings.certificates.key_type = KeyType::EcdsaP256;
        settings.api.admin_listen = Some(([127, 0, 0, 1], 0).into());
        settings.api.publish_timeout = Duration::from_secs(1);
        if settings.api.auth_strategy == AuthStrategy::Noauth {
            settings.api.image_catalog_file = Some(fixtures().join("rest/images.json"));
        } else {
            RecordedCloud::shared().await.unwrap().configure(&mut settings);
        }
        settings.default.transport_url = Secret::new(format!("fake://{}", test.name));
        let transport = rpc::connect(&settings, "test").await.unwrap();
        let (tell, asked) = mpsc::unbounded_channel();
        let mut listening = None;
        let mut conductor = None;
        match behind {
            Behind::Nobody => {}
            Behind::Listener => listening = Some(listener(&transport, &settings, tell).await),
            Behind::Conductor => {
                conductor =
                    Some(drivers::conductor(&settings, database.clone(), Arc::clone(&transport)).await);
            }
        }
        let api = Api::start(&settings, Arc::clone(&transport), database.clone())
            .await
            .unwrap();
        Self {
            api,
            database,
            transport,
            listening,
            conductor,
            client: reqwest::Client::new(),
            asked,
        }
    }

    /// The requests that conductors get, for a test that must not borrow the world.
    pub fn take_asked(&mut self) -> mpsc::UnboundedReceiver<Request> {
        std::mem::replace(&mut self.asked, mpsc::unbounded_channel().1)
    }

    /// Stops everything.
    pub async fn stop(self) {
        self.api.stop().await;
        if let Some(conductor) = self.conductor {
            conductor.shutdown().await;
        }
        self.transport.close().await;
        if let Some(listening) = self.listening {
            listening.abort();
        }
    }

    /// Takes the broker away.
    pub async fn close_transport(&self) {
        self.transport.close().await;
    }

    /// URL of the API.
    pub fn base(&self) -> String {
        format!("http://{}", self.api.address())
    }

    /// URL of the admin interface.
    pub fn admin(&self) -> String {
        format!("http://{}", self.api.admin_address().unwrap())
    }

    /// Changes rows.
    pub async fn sql(&self, sql: &str) {
        execute(&self.database, sql.to_owned()).await;
    }

    /// Sends a recorded request and keeps what it saves.
    pub async fn send(&self, case: &Case, saved: &mut BTreeMap<String, String>) -> Answer {
        for setup in &case.setup {
            if let Some(sql) = &setup.sql {
                self.sql(&sql.replace("UTC_TIMESTAMP()", "datetime('now')")).await;
            }
            if let Some(wait) = &setup.wait {
                self.wait(wait, saved).await;
            }
        }
        let request = &case.request;
        let filled = |text: &str| filled(text, saved);
        let body = match (&request.body, &request.raw) {
            (Some(body), _) => filled(&body.to_string()),
            (None, Some(raw)) => raw.clone(),
            (None, None) => String::new(),
        };
        let method = request.method.parse().unwrap();
        let mut sent = self
            .client
            .request(method, format!("{}{}", self.base(), filled(&request.path)))
            .body(body);
        let mut headers = BTreeMap::from([
            ("accept".to_owned(), "application/json".to_owned()),
            ("content-type".to_owned(), "application/json".to_owned()),
        ]);
        headers.extend(request.user.iter().flat_map(|user| identity(user)));
        headers.extend(request.version.iter().map(|version| version_header(version)));
        for (name, value) in &request.headers {
            let name = name.to_ascii_lowercase();
            match value {
                Some(value) => headers.insert(name, value.clone()),
                None => headers.remove(&name),
            };
        }
        for (name, value) in headers {
            sent = sent.header(name, value);
        }
        let answer = self.answer(sent).await;
        for (name, pointer) in &case.save {
            if let Some(value) = answer.body.pointer(pointer).and_then(Value::as_str) {
                saved.insert(name.clone(), value.to_owned());
            }
        }
        answer
    }

    /// Asks until the answer is what is waited for.
    async fn wait(&self, wait: &Wait, saved: &BTreeMap<String, String>) {
        let (name, version) = version_header(&wait.version);
        let headers = [(name.as_str(), version.as_str())];
        let path = filled(&wait.path, saved);
        if path.contains("{{") {
            // What the recording waits for was refused here, so there is nothing to wait for.
            return;
        }
        wait::until(&format!("{path} to be {:?}", wait.until), PATIENCE, async || {
            let answer = self.ask_with(&wait.user, "GET", &path, "", &headers).await;
            let value = answer.body.pointer(&wait.pointer);
            let is_there = value.is_some_and(|value| wait.until.contains(value));
            if is_there { Ok(()) } else { Err(answer.body) }
        })
        .await
        .unwrap();
        self.settle().await;
    }

    /// Waits until the drivers have returned. The recording's waits look at a status, which Magnum writes after that
    /// and our conductor before.
    async fn settle(&self) {
        wait::until("every driver call to return", PATIENCE, async || {
            let open: Vec<(String, String)> = self
                .database
                .run(|connection| {
                    let open = ["queued", "running", "retrying", "observing"];
                    Ok(conductor_operation::table
                        .filter(conductor_operation::state.eq_any(open))
                        .select((conductor_operation::cluster_uuid, conductor_operation::state))
                        .load(connection)?)
                })
                .await
                .unwrap();
            // What waits for one that is being observed waits for the end of the test.
            let observed = |cluster: &str| {
                open.iter()
                    .any(|(of, state)| of == cluster && state == "observing")
            };
            match open
                .iter()
                .find(|(cluster, state)| state != "observing" && !(state == "queued" && observed(cluster)))
            {
                None => Ok(()),
                Some((cluster, state)) => Err(format!("{cluster}: {state}")),
            }
        })
        .await
        .unwrap();
    }

    /// Gives the cluster of the recording certificates with keys: its rows come without.
    pub async fn make_keys(&self) {
        let answer = self.ask("alice", "PATCH", "/v1/certificates/prod", "").await;
        assert_eq!(answer.status, 202, "{}", answer.body);
    }

    /// Sends a request of a test's own as `user` (empty: nobody) in the latest version.
    pub async fn ask(&self, user: &str, method: &str, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        self.ask_with(
            user,
            method,
            path,
            body,
            &[("openstack-api-version", "container-infra latest")],
        )
        .await
    }

    /// The same with headers of its own.
    pub async fn ask_with(
        &self,
        user: &str,
        method: &str,
        path: &str,
        body: impl Into<reqwest::Body>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut all = BTreeMap::from([("content-type".to_owned(), "application/json".to_owned())]);
        if !user.is_empty() {
            all.extend(identity(user));
        }
        all.extend(
            headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        let mut request = self
            .client
            .request(method.parse().unwrap(), format!("{}{path}", self.base()))
            .body(body);
        for (name, value) in all {
            request = request.header(name, value);
        }
        self.answer(request).await
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().to_owned()))
            .collect();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        let body = if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        };
        Answer {
            status,
            headers,
            body,
            base: self.base(),
        }
    }
}

/// A recorded text with what was saved.
fn filled(text: &str, saved: &BTreeMap<String, String>) -> String {
    saved.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{{{name}}}}}"), value)
    })
}

fn version_header(version: &str) -> (String, String) {
    let value = match version.strip_prefix('!') {
        Some(rest) => rest.to_owned(),
        None if version.contains(' ') => version.to_owned(),
        None => format!("container-infra {version}"),
    };
    ("openstack-api-version".to_owned(), value)
}

/// The users of the recording, by their tokens.
fn identity(user: &str) -> Vec<(String, String)> {
    vec![("x-auth-token".to_owned(), token_of(user))]
}
