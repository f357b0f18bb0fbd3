//! Restarts that nobody notices: behind a socket that somebody else keeps, and behind HAProxy.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::certificates::Authority;
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::haproxy;
use magnum_tests::oslo_peer::python;
use magnum_tests::ports::free_port;
use magnum_tests::process::{Launch, Program, Ready, built};
use magnum_tests::run_dir::run_dir;
use magnum_tests::{Backend, wait};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::tls;

const PATIENCE: Duration = Duration::from_secs(60);

/// Clients that ask without a pause, each time on a new connection or on one that stays.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Result<()>>>,
}

impl Load {
    fn on(url: &str, stays: bool) -> Result<Self> {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut clients = Vec::new();
        for _ in 0..4 {
            let client = reqwest::Client::builder()
                .pool_max_idle_per_host(usize::from(stays))
                .timeout(PATIENCE)
                .build()?;
            let (stop, answered, url) = (Arc::clone(&stop), Arc::clone(&answered), url.to_owned());
            clients.push(tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    client.get(&url).send().await?.error_for_status()?.bytes().await?;
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            }));
        }
        Ok(Self {
            stop,
            answered,
            clients,
        })
    }

    /// Waits until so many more were answered.
    async fn goes_on(&self, more: usize) -> Result<()> {
        let wanted = self.answered.load(Ordering::Relaxed) + more;
        wait::until("requests to be answered", PATIENCE, async || {
            let answered = self.answered.load(Ordering::Relaxed);
            let failed = self.clients.iter().filter(|client| client.is_finished()).count();
            ensure!(answered >= wanted || failed > 0, "{answered} of {wanted}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// An error when one request failed.
    async fn end(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await?.context("a request failed")?;
        }
        Ok(())
    }
}

fn config(deployment: &Deployment, name: &str) -> Result<PathBuf> {
    deployment
        .config()
        .clone()
        .write(&deployment.folder.join(format!("{name}.conf")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_behind_a_socket_restarts_and_every_connection_is_served() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let port = free_port()?;
    let url = format!("http://127.0.0.1:{port}/v1/mservices");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/socket_keeper.py");
    let keeper = Launch::command("socket-keeper", Command::new(python()?))
        .args([
            script.as_os_str(),
            "127.0.0.1".as_ref(),
            port.to_string().as_ref(),
        ])
        .args([built("magnum-api")?.as_os_str(), "--config-file".as_ref()])
        .args([config(&deployment, "kept")?])
        .ready_when(Ready::Http(format!("http://127.0.0.1:{port}/healthcheck")))
        .start()
        .await?;
    let load = Load::on(&url, false)?;
    for restart in 1..=3 {
        load.goes_on(50).await?;
        let log = keeper.log();
        let started: Vec<&str> = log
            .lines()
            .filter_map(|line| line.strip_prefix("started "))
            .collect();
        ensure!(started.len() == restart, "{started:?}");
        kill(Pid::from_raw(started[restart - 1].parse()?), Signal::SIGTERM)?;
        wait::until("the next one", PATIENCE, async || {
            let count = keeper
                .log()
                .lines()
                .filter(|line| line.starts_with("started "))
                .count();
            ensure!(count > restart, "{count}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
    }
    load.goes_on(50).await?;
    load.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn systemds_own_launcher_passes_a_socket_that_is_served() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let port = free_port()?;
    // Started by the first connection, as a unit that is not enabled by itself.
    let launcher = Launch::command("socket-activate", Command::new("systemd-socket-activate"))
        .args([format!("--listen=127.0.0.1:{port}")])
        .args([built("magnum-api")?.as_os_str(), "--config-file".as_ref()])
        .args([config(&deployment, "activated")?])
        .ready_when(Ready::Http(format!("http://127.0.0.1:{port}/healthcheck")));
    let mut program = launcher.start().await?;
    let text = reqwest::get(format!("http://127.0.0.1:{port}/"))
        .await?
        .text()
        .await?;
    ensure!(text.contains(&format!("http://127.0.0.1:{port}/v1/")), "{text}");
    ensure!(program.terminate(PATIENCE).await?.success());
    Ok(())
}

/// The sample of `deploy/haproxy`, for these servers: with TLS on one port, without it on another.
fn balancer(authority: &Authority, [port, plain]: [u16; 2], servers: &[&Api]) -> Result<Launch> {
    let (signed, pem) = (
        authority.sign("haproxy", "IP:127.0.0.1")?,
        run_dir()?.folder("haproxy")?.join("magnum.pem"),
    );
    let both = [signed.certificate, signed.key].map(std::fs::read_to_string);
    std::fs::write(&pem, both.into_iter().collect::<Result<String, _>>()?)?;
    let bind = format!(
        "bind 127.0.0.1:{port} ssl crt {}\n    bind 127.0.0.1:{plain}",
        pem.display()
    );
    let mut text = haproxy::with(
        haproxy::sample("haproxy.cfg")?,
        &[
            ("bind :9511 ssl crt /etc/haproxy/magnum.pem", bind.as_str()),
            ("inter 2s", "inter 200ms"),
            ("timeout http-request 10s", "timeout http-request 500ms"),
        ],
    )?;
    for (number, api) in servers.iter().enumerate() {
        let address = api
            .rest
            .base()
            .trim_start_matches("http://")
            .trim_end_matches("/v1");
        let sampled = format!("10.0.0.1{}:9511", number + 1);
        text = haproxy::with(text, &[(sampled.as_str(), address)])?;
    }
    haproxy::launch(&text, Ready::Http(format!("http://127.0.0.1:{plain}/")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn haproxy_speaks_tls_and_does_not_wait_for_half_a_request() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set("oslo_middleware", "enable_proxy_headers_parsing", true);
    let (api, other) = (deployment.api().await?, deployment.api().await?);
    let (authority, ports) = (Authority::new()?, [free_port()?, free_port()?]);
    let proxy: Program = balancer(&authority, ports, &[&api, &other])?.start().await?;
    let [port, plain] = ports;
    let seen = tls::ask(&authority, port).await?;
    ensure!(seen.contains(&format!("https://127.0.0.1:{port}/v1/")), "{seen}");
    let mut slow = TcpStream::connect(("127.0.0.1", plain)).await?;
    slow.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").await?;
    let mut answer = String::new();
    tokio::time::timeout(PATIENCE, slow.read_to_string(&mut answer))
        .await
        .context("the connection is kept")??;
    ensure!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    drop((proxy, api, other));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_behind_haproxy_stops_under_load_and_no_request_fails() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set("oslo_middleware", "enable_proxy_headers_parsing", true);
    deployment.set("api", "shutdown_delay", 3);
    let (mut first, second) = (deployment.api().await?, deployment.api().await?);
    let ports = [free_port()?, free_port()?];
    let proxy: Program = balancer(&Authority::new()?, ports, &[&first, &second])?
        .start()
        .await?;
    let base = format!("http://127.0.0.1:{}", ports[1]);

    // Links are those of the outside, whatever a client claims of proxies.
    let request = reqwest::Client::new()
        .get(format!("{base}/"))
        .header("Host", "magnum.example:1234")
        .header("Forwarded", "host=evil.example");
    let body: Value = request.send().await?.json().await?;
    ensure!(
        body["versions"][0]["links"][0]["href"] == "http://magnum.example:1234/v1/",
        "{body}"
    );

    let loads = [
        Load::on(&format!("{base}/v1/mservices"), true)?,
        Load::on(&format!("{base}/"), false)?,
    ];
    for load in &loads {
        load.goes_on(100).await?;
    }
    ensure!(first.program.terminate(PATIENCE).await?.success());
    for load in &loads {
        load.goes_on(100).await?;
    }
    for load in loads {
        load.end().await?;
    }
    drop((proxy, second));
    Ok(())
}
