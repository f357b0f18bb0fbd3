//! HTTPS by the API itself.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::certificates::Authority;
use magnum_tests::deployment::Deployment;
use magnum_tests::ports::free_port;
use magnum_tests::process::{Launch, Program, Ready};
use magnum_tests::{Backend, wait};
use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const PATIENCE: Duration = Duration::from_secs(60);

/// An API that serves HTTPS on a port, and is about to be started.
fn launch(deployment: &Deployment, port: u16, certificate: &Path, key: &Path) -> Result<Launch> {
    let config = deployment
        .config()
        .clone()
        .set("api", "port", port)
        .set("api", "enabled_ssl", true)
        .set("api", "ssl_cert_file", certificate.display())
        .set("api", "ssl_key_file", key.display());
    let file = config.write(&deployment.folder.join(format!("tls-{port}.conf")))?;
    Ok(Launch::program("magnum-api")?.config(&file))
}

/// What `GET /` says to a client that trusts this authority only.
pub(super) async fn ask(authority: &Authority, port: u16) -> Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.certificate())?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let name = ServerName::try_from("127.0.0.1")?;
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let request = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_replaced_while_the_api_runs_and_a_broken_one_is_not_taken() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let (old, new) = (Authority::new()?, Authority::new()?);
    let (first, second) = (
        old.sign("first", "IP:127.0.0.1")?,
        new.sign("second", "IP:127.0.0.1")?,
    );
    let (certificate, key) = (
        deployment.folder.join("api.pem"),
        deployment.folder.join("api.key"),
    );
    fs::copy(&first.certificate, &certificate)?;
    fs::copy(&first.key, &key)?;
    let port = free_port()?;
    let api = launch(&deployment, port, &certificate, &key)?.ready_when(Ready::Log("the API listens".into()));
    let mut api: Program = api.start().await?;
    let seen = ask(&old, port).await?;
    ensure!(seen.contains(&format!("https://127.0.0.1:{port}/v1/")), "{seen}");
    ensure!(ask(&new, port).await.is_err(), "any certificate is believed");

    // Half of a new pair: what was stays.
    fs::copy(&second.certificate, &certificate)?;
    api.signal(Signal::SIGHUP)?;
    api.wait_log("the old certificate stays", PATIENCE).await?;
    ask(&old, port).await?;
    fs::copy(&second.key, &key)?;
    api.signal(Signal::SIGHUP)?;
    wait::until("the new certificate", PATIENCE, async || ask(&new, port).await).await?;
    ensure!(ask(&old, port).await.is_err());

    // Who speaks no TLS is not answered, and harms nobody.
    let plain = reqwest::get(format!("http://127.0.0.1:{port}/")).await;
    ensure!(plain.is_err(), "{plain:?}");
    ask(&new, port).await?;
    ensure!(api.terminate(PATIENCE).await?.success());
    let secret = fs::read_to_string(&key)?;
    let secret = secret.lines().nth(1).context("a key")?.to_owned();
    ensure!(!api.log().contains(&secret), "the key is in the log");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_cannot_be_used_stop_the_start_and_are_named() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let authority = Authority::new()?;
    let (one, other) = (
        authority.sign("one", "IP:127.0.0.1")?,
        authority.sign("other", "IP:127.0.0.1")?,
    );
    let nowhere = deployment.folder.join("nowhere.pem");
    for (certificate, key, said) in [
        (&nowhere, &one.key, "[api] ssl_cert_file"),
        (&one.certificate, &nowhere, "[api] ssl_key_file"),
        (&one.key, &one.key, "has no certificate in PEM"),
        (&one.certificate, &one.certificate, "has no private key in PEM"),
        (&one.certificate, &other.key, "cannot be used together"),
    ] {
        let ended = launch(&deployment, free_port()?, certificate, key)?
            .finish()
            .await?;
        ensure!(
            !ended.status.success() && ended.stderr.contains(said),
            "{said}: {}",
            ended.stderr
        );
    }
    Ok(())
}
