//! The real Keystone and the real Barbican, from PyPI, on SQLite: one process each, shared by all tests of a run.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use magnum_common::secret::Secret;
use magnum_config::Settings;
use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::oslo_peer::python;
use crate::ports::free_port;
use crate::process::little_environment;
use crate::run_dir::{base, run_dir};
use crate::server::ServerProcess;

/// Password of every user.
pub const PASSWORD: &str = "openstack-secret";
/// Both make their databases first, on a machine with other work.
const START_WITHIN: Duration = Duration::from_secs(180);

/// Both services.
#[derive(Debug)]
pub struct OpenStack {
    keystone: u16,
    barbican: u16,
    client: reqwest::Client,
    _processes: [ServerProcess; 2],
}

/// Somebody with a token.
#[derive(Debug, Clone)]
pub struct Session {
    token: String,
    keystone: String,
    barbican: String,
    client: reqwest::Client,
}

impl OpenStack {
    /// The services that all tests of this process share; never stopped.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<OpenStack> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    async fn start() -> Result<Self> {
        let folder = run_dir()?.folder("openstack")?;
        let (keystone, barbican) = (free_port()?, free_port()?);
        let spawn = |name: &str, own: u16, other: u16| -> Result<ServerProcess> {
            let mut command = Command::new(python()?);
            little_environment(&mut command)
                .arg(script())
                .arg(name)
                .arg(&folder)
                .args([own.to_string(), other.to_string()]);
            ServerProcess::spawn(name, command, Signal::SIGKILL)
        };
        // At once: most of their start is importing.
        let mut processes = [
            spawn("keystone", keystone, barbican)?,
            spawn("barbican", barbican, keystone)?,
        ];
        let client = client_of_all_tests()?;
        for (process, path) in processes.iter_mut().zip([
            format!("http://127.0.0.1:{keystone}/v3"),
            format!("http://127.0.0.1:{barbican}/"),
        ]) {
            let client = client.clone();
            process
                .wait_ready(START_WITHIN, async || {
                    client.get(&path).send().await?;
                    Ok(())
                })
                .await?;
        }
        Ok(Self {
            keystone,
            barbican,
            client,
            _processes: processes,
        })
    }

    /// Keystone's v3 API.
    pub fn keystone_url(&self) -> String {
        format!("http://127.0.0.1:{}/v3", self.keystone)
    }

    /// Puts the service user into these settings.
    pub fn configure(&self, settings: &mut Settings) {
        let auth = &mut settings.keystone_auth;
        auth.auth_url = Some(self.keystone_url());
        auth.username = Some("magnum".to_owned());
        auth.password = Some(Secret::new(PASSWORD));
        auth.project_name = Some("service".to_owned());
        auth.user_domain_name = Some("Default".to_owned());
        auth.project_domain_name = Some("Default".to_owned());
    }

    /// The same as lines of a `magnum.conf`.
    pub fn config(&self) -> String {
        format!(
            "[keystone_auth]\nauth_url = {url}\nauth_type = password\nusername = magnum\npassword = {PASSWORD}\n\
             project_name = service\nuser_domain_name = Default\nproject_domain_name = Default\n\
             [keystone_authtoken]\nwww_authenticate_uri = {url}\nauth_url = {url}\n",
            url = self.keystone_url()
        )
    }

    /// The service user, as options of `[keystone_auth]`.
    pub fn service_user(&self) -> [(&'static str, String); 6] {
        [
            ("auth_url", self.keystone_url()),
            ("auth_type", "password".to_owned()),
            ("username", "magnum".to_owned()),
            ("password", PASSWORD.to_owned()),
            ("project_name", "service".to_owned()),
            ("user_domain_name", "Default".to_owned()),
        ]
    }

    /// The same as options of a `magnum.conf`, with Keystone behind `keystone` and Barbican's endpoint of `region`.
    pub fn options(&self, keystone: SocketAddr, region: &str) -> Vec<(&'static str, &'static str, String)> {
        vec![
            ("certificates", "cert_manager_type", "barbican".to_owned()),
            ("keystone_auth", "auth_url", format!("http://{keystone}/v3")),
            ("keystone_auth", "username", "magnum".to_owned()),
            ("keystone_auth", "password", PASSWORD.to_owned()),
            ("keystone_auth", "project_name", "service".to_owned()),
            ("barbican_client", "region_name", region.to_owned()),
        ]
    }

    /// Where Keystone listens.
    pub fn keystone_address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.keystone).into()
    }

    /// Where Barbican listens.
    pub fn barbican_address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.barbican).into()
    }

    /// Puts Barbican into Keystone's catalog once more, under another address: that of a line or a front before it.
    /// Returns the region in which it is found there.
    pub async fn region_via(&self, url: &str) -> Result<String> {
        self.region_of("key-manager", "public", url).await
    }

    /// The same with any service, under one of its interfaces.
    pub async fn region_of(&self, service: &str, interface: &str, url: &str) -> Result<String> {
        let region = format!("region-{}", uuid::Uuid::new_v4().simple());
        let admin = self.log_in("admin", "admin").await?;
        let made = json!({ "region": { "id": region } });
        admin.keystone(Method::POST, "/regions", made).await?;
        self.list(&region, service, interface, url).await?;
        Ok(region)
    }

    /// Puts one more endpoint of a service into a region of the catalog.
    pub async fn list(&self, region: &str, service: &str, interface: &str, url: &str) -> Result<()> {
        let admin = self.log_in("admin", "admin").await?;
        let services = admin
            .keystone(Method::GET, &format!("/services?type={service}"), Value::Null)
            .await?;
        let service = services["services"][0]["id"].as_str().context("the service")?;
        let endpoint = json!({ "endpoint": {
            "interface": interface, "region_id": region, "service_id": service, "url": url } });
        admin.keystone(Method::POST, "/endpoints", endpoint).await?;
        Ok(())
    }

    /// A token for a user of one of the projects.
    pub async fn log_in(&self, user: &str, project: &str) -> Result<Session> {
        let domain = json!({ "id": "default" });
        let body = json!({ "auth": {
            "identity": { "methods": ["password"], "password": { "user": {
                "name": user, "domain": domain, "password": PASSWORD } } },
            "scope": { "project": { "name": project, "domain": domain } },
        } });
        let answer = self
            .client
            .post(format!("{}/auth/tokens", self.keystone_url()))
            .json(&body)
            .send()
            .await?;
        ensure!(answer.status().is_success(), "{user}: {}", answer.status());
        let token = answer.headers().get("X-Subject-Token").context("a token")?;
        Ok(self.session(token.to_str()?))
    }

    /// Whoever has this token.
    pub fn session(&self, token: &str) -> Session {
        Session {
            token: token.to_owned(),
            keystone: self.keystone_url(),
            barbican: format!("http://127.0.0.1:{}/v1", self.barbican),
            client: self.client.clone(),
        }
    }
}

impl Session {
    /// The token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Asks Keystone; null for an empty answer.
    pub async fn keystone(&self, method: Method, path: &str, body: Value) -> Result<Value> {
        self.ask(method, format!("{}{path}", self.keystone), body).await
    }

    /// Asks Barbican; null for an empty answer.
    pub async fn barbican(&self, method: Method, path: &str, body: Value) -> Result<Value> {
        self.ask(method, format!("{}{path}", self.barbican), body).await
    }

    /// Names of all containers (`containers`) or secrets (`secrets`) that hold this text.
    pub async fn names(&self, kind: &str, text: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for offset in (0..).step_by(100) {
            let page = self
                .barbican(
                    Method::GET,
                    &format!("/{kind}?limit=100&offset={offset}"),
                    Value::Null,
                )
                .await?;
            let page = page[kind].as_array().context("a list")?.clone();
            names.extend(
                page.iter()
                    .filter_map(|one| one["name"].as_str())
                    .filter(|name| name.contains(text))
                    .map(str::to_owned),
            );
            if page.len() < 100 {
                break;
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Asks whatever is at `url`; null for an empty answer.
    pub async fn ask(&self, method: Method, url: String, body: Value) -> Result<Value> {
        let mut request = self
            .client
            .request(method.clone(), &url)
            .header("X-Auth-Token", &self.token);
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = request.send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        if !status.is_success() {
            bail!("{method} {url}: {status} {text}");
        }
        Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
    }
}

/// A client that keeps no connection. Each test has a runtime of its own, which takes its connections along when it
/// ends; another test may have found one of them in the pool and be waiting for its answer.
pub(crate) fn client_of_all_tests() -> Result<reqwest::Client> {
    Ok(reqwest::Client::builder().pool_max_idle_per_host(0).build()?)
}

fn script() -> PathBuf {
    base().with_file_name("testbed").join("openstack.py")
}
