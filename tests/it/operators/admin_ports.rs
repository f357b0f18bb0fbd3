//! The admin ports of both programs: by which names they answer, and that nobody keeps their connections.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::ports::free_port;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(60);

/// The answer to `GET path` under the name `host`.
async fn ask(address: &str, path: &str, host: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer))
        .await
        .context("no answer")??;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn conductor_address(deployment: &Deployment, conductor: &str) -> Result<String> {
    let config = fs::read_to_string(deployment.folder.join(format!("{conductor}.conf")))?;
    let mut lines = config.lines();
    let admin = lines.find_map(|line| line.strip_prefix("admin_listen = "));
    Ok(admin.context("the admin address")?.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_of_a_stranger_that_leads_to_an_admin_port_is_not_answered() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let api_admin = format!("127.0.0.1:{}", free_port()?);
    deployment.set("api", "admin_listen", &api_admin);
    deployment.set("api", "admin_hosts", "ops.example");
    deployment.set("conductor", "admin_hosts", "ops.example");
    let api = deployment.api().await?;
    let conductor = deployment.conductor("one").await?;
    let conductor_admin = conductor_address(&deployment, "one")?;
    for (address, path) in [
        (&api_admin, "/ui"),
        (&api_admin, "/metrics"),
        (&conductor_admin, "/metrics"),
    ] {
        for host in [address, "localhost", "ops.example:80"] {
            let answer = ask(address, path, host).await?;
            ensure!(answer.starts_with("HTTP/1.1 200"), "{path} of {host}: {answer}");
        }
        let answer = ask(address, path, "evil.example").await?;
        ensure!(answer.starts_with("HTTP/1.1 421"), "{path}: {answer}");
        ensure!(answer.contains("admin_hosts"), "{answer}");
    }
    drop((api, conductor));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_say_nothing_do_not_keep_a_conductors_admin_port_from_others() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let conductor = deployment.conductor("one").await?;
    let address = conductor_address(&deployment, "one")?;
    // More than it takes at a time, each with half of a request.
    let mut silent = Vec::new();
    for _ in 0..80 {
        let mut stream = TcpStream::connect(&address).await?;
        stream
            .write_all(b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\n")
            .await?;
        silent.push(stream);
    }
    let answer = ask(&address, "/healthcheck", "localhost").await?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // The first of them was closed for that.
    let mut first = silent.remove(0);
    let mut rest = Vec::new();
    let read = tokio::time::timeout(PATIENCE, first.read_to_end(&mut rest)).await;
    ensure!(
        matches!(read, Ok(Ok(_))),
        "the connection is still open: {read:?}"
    );
    drop((silent, conductor));
    Ok(())
}
