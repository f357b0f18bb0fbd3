//! A private Kubernetes API server: a real kube-apiserver on a real etcd, without kubelets and controllers, so that
//! nodes are what a test says.
//!
//! `tests/testbed/kubernetes/build` makes the programs; `tests/run` runs it. Administrators show a certificate of the server's
//! authority; what anybody else may do, roles say, of which there are none at first.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, OnceCell};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::certificates::{Authority, Signed};
use crate::ports::free_port;
use crate::run_dir::run_dir;
use crate::server::ServerProcess;

const START_WITHIN: Duration = Duration::from_secs(120);

/// The group that may do everything.
const ADMINISTRATORS: &str = "system:masters";

/// Whom an API server believes, and who it is itself.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Certificate of the authority, in PEM.
    pub authority: PathBuf,
    /// The certificate of somebody who may do everything.
    pub admin: Signed,
    /// The server's own, for 127.0.0.1.
    pub server: Signed,
}

impl Identity {
    /// Of an authority of its own.
    fn new() -> Result<Self> {
        let authority = Authority::new()?;
        Ok(Self {
            authority: authority.certificate(),
            admin: authority.sign_member(ADMINISTRATORS, "admin", "DNS:admin")?,
            server: authority.sign("kube-apiserver", "IP:127.0.0.1")?,
        })
    }
}

/// One API server and its etcd.
#[derive(Debug)]
pub struct Kubernetes {
    /// Whom it believes.
    pub identity: Identity,
    address: SocketAddr,
    server: Mutex<Option<ServerProcess>>,
    etcd: Mutex<Option<ServerProcess>>,
}

impl Kubernetes {
    /// The server that all tests of this process share; never stopped.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<Kubernetes> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::dedicated).await
    }

    /// A server of one's own, to be killed.
    pub async fn dedicated() -> Result<Self> {
        let mut last = None;
        for _ in 0..3 {
            match Self::listening_on(free_port()?, Identity::new()?).await {
                Ok(server) => return Ok(server),
                Err(error) => last = Some(error),
            }
        }
        bail!(
            "kube-apiserver does not start: {:#}",
            last.context("no attempt was made")?
        )
    }

    /// A server on a port that is free, with certificates from elsewhere.
    pub async fn listening_on(port: u16, identity: Identity) -> Result<Self> {
        let programs = tokio::task::spawn_blocking(programs).await??;
        let folder = run_dir()?.folder("kubernetes")?;
        let own = &identity.server;
        let (store, peers) = (free_port()?, free_port()?);
        let (store, peers) = (
            format!("http://127.0.0.1:{store}"),
            format!("http://127.0.0.1:{peers}"),
        );
        let mut etcd = Command::new(programs.join("etcd"));
        etcd.arg("--data-dir").arg(folder.join("etcd")).args([
            "--unsafe-no-fsync",
            "--log-level=warn",
            &format!("--listen-client-urls={store}"),
            &format!("--advertise-client-urls={store}"),
            &format!("--listen-peer-urls={peers}"),
            &format!("--initial-advertise-peer-urls={peers}"),
            &format!("--initial-cluster=default={peers}"),
        ]);
        let name = run_dir()?.unique("etcd");
        let etcd = ServerProcess::spawn(&name, etcd, Signal::SIGTERM)?;

        let mut command = Command::new(programs.join("kube-apiserver"));
        let file = |option: &str, path: &Path| format!("--{option}={}", path.display());
        command
            .args([
                file("tls-cert-file", &own.certificate),
                file("tls-private-key-file", &own.key),
                file("client-ca-file", &identity.authority),
                file("service-account-key-file", &own.certificate),
                file("service-account-signing-key-file", &own.key),
                format!("--etcd-servers={store}"),
                format!("--secure-port={port}"),
            ])
            .args([
                "--bind-address=127.0.0.1",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--authorization-mode=RBAC",
                "--disable-admission-plugins=ServiceAccount",
            ]);
        let name = run_dir()?.unique("kube-apiserver");
        let mut process = ServerProcess::spawn(&name, command, Signal::SIGTERM)?;
        let server = Self {
            identity,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            server: Mutex::default(),
            etcd: Mutex::new(Some(etcd)),
        };
        let ready = process
            .wait_ready(START_WITHIN, async || {
                let answer = server.send("GET", "/readyz", None).await?;
                ensure!(answer.as_ref() == b"ok", "{}", String::from_utf8_lossy(&answer));
                Ok(())
            })
            .await;
        *server.server.lock().await = Some(process);
        if ready.is_err() {
            server.kill().await?;
            server.kill_etcd().await?;
        }
        ready.map(|()| server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `kill -9` of the API server.
    pub async fn kill(&self) -> Result<()> {
        end(&self.server).await
    }

    /// `kill -9` of its etcd: the API server goes on to listen.
    pub async fn kill_etcd(&self) -> Result<()> {
        end(&self.etcd).await
    }

    /// A file that names this server and an administrator, in JSON, which is YAML.
    pub fn kubeconfig(&self) -> Value {
        let admin = &self.identity.admin;
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "tests",
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "admin"}}],
            "clusters": [{"name": "tests", "cluster": {
                "server": format!("https://{}", self.address), "certificate-authority": self.identity.authority}}],
            "users": [{"name": "admin", "user": {
                "client-certificate": admin.certificate, "client-key": admin.key}}],
        })
    }

    /// What is at this path.
    pub async fn get(&self, path: &str) -> Result<Value> {
        Ok(serde_json::from_slice(&self.send("GET", path, None).await?)?)
    }

    /// Makes or changes the object at this path, whose query names a field manager, as server-side apply does.
    pub async fn apply(&self, path: &str, object: &Value) -> Result<Value> {
        Ok(serde_json::from_slice(
            &self.send("APPLY", path, Some(object)).await?,
        )?)
    }

    /// Merges a patch into the object at this path.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<()> {
        self.send("PATCH", path, Some(patch)).await.map(drop)
    }

    /// Makes a node whose condition `Ready` has this status.
    pub async fn add_node(&self, name: &str, ready: &str) -> Result<()> {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        self.send("POST", "/api/v1/nodes", Some(&node)).await?;
        self.set_ready(name, ready).await
    }

    /// What a node's kubelet, or the controller that watches kubelets, would write.
    pub async fn set_ready(&self, name: &str, ready: &str) -> Result<()> {
        let conditions =
            json!([{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": ready}]);
        let patch = json!({"status": {"conditions": conditions}});
        let path = format!("/api/v1/nodes/{name}/status");
        self.send("PATCH", &path, Some(&patch)).await.map(drop)
    }

    /// Removes every node.
    pub async fn remove_nodes(&self) -> Result<()> {
        self.send("DELETE", "/api/v1/nodes", None).await.map(drop)
    }

    /// A request as administrator; any status but success is an error.
    async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Bytes> {
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::IpAddress(self.address.ip().into());
        let stream = self.connector()?.connect(name, stream).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let (method, kind) = match method {
            "PATCH" => ("PATCH", "application/merge-patch+json"),
            "APPLY" => ("PATCH", "application/apply-patch+yaml"),
            other => (other, "application/json"),
        };
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Host", "kubernetes")
            .header("Content-Type", kind)
            .body(Full::new(Bytes::from(body)))?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        let answer = response.into_body().collect().await?.to_bytes();
        ensure!(
            status.is_success(),
            "{method} {path}: {status}: {}",
            String::from_utf8_lossy(&answer)
        );
        Ok(answer)
    }

    fn connector(&self) -> Result<TlsConnector> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&self.identity.authority)?)?;
        let certificate = CertificateDer::from_pem_file(&self.identity.admin.certificate)?;
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(
                vec![certificate],
                PrivateKeyDer::from_pem_file(&self.identity.admin.key)?,
            )?;
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

async fn end(process: &Mutex<Option<ServerProcess>>) -> Result<()> {
    match process.lock().await.take() {
        Some(process) => process.kill().await.map(drop),
        None => Ok(()),
    }
}

/// The folder with the programs.
fn programs() -> Result<PathBuf> {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("testbed/kubernetes/build");
    let output = Command::new(&build)
        .arg("--check")
        .output()
        .with_context(|| build.display().to_string())?;
    ensure!(
        output.status.success(),
        "{}; tests/run builds it, or {}",
        String::from_utf8_lossy(&output.stderr).trim(),
        build.display()
    );
    let folder = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    fs::metadata(folder.join("kube-apiserver"))?;
    Ok(folder)
}
