//! Clients that send too much, too slowly, too often, or not at all.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use magnum_tests::api_alone::{World, exchange, rest};

const PATIENCE: Duration = Duration::from_secs(30);

/// The answer's status, and its body as JSON.
fn read(answer: &str) -> Result<(u16, Value)> {
    let (head, body) = answer.split_once("\r\n\r\n").with_context(|| answer.to_owned())?;
    let status = head.split(' ').nth(1).context("a status")?.parse()?;
    ensure!(head.contains("x-openstack-request-id: req-"), "{head}");
    Ok((status, serde_json::from_str(body)?))
}

/// A client that sends everything before it reads anything.
async fn stubborn(world: &World, head: &str, chunk: &[u8], chunks: usize) -> Result<String> {
    let mut client = TcpStream::connect(world.address()).await?;
    client.write_all(head.as_bytes()).await?;
    for _ in 0..chunks {
        client.write_all(chunk).await?;
    }
    rest(&mut client).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_too_large_gets_its_413_however_large_it_is_and_however_it_is_sent() -> Result<()> {
    let world = World::start(|_| {}).await?;
    let megabyte = vec![b' '; 1 << 20];
    // More than any buffer between us holds, and more than 64 MiB.
    let head = format!(
        "POST /v1/clusters HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        100 << 20
    );
    let (status, body) = read(&stubborn(&world, &head, &megabyte, 100).await?)?;
    ensure!(status == 413 && body["errors"][0]["status"] == 413, "{body}");
    let head = "POST /v1/clusters HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = [b"100000\r\n".as_slice(), &megabyte, b"\r\n"].concat();
    let (status, _) = read(&stubborn(&world, head, &chunk, 100).await?)?;
    ensure!(status == 413);
    // What is just within is read, and the connection goes on.
    let client = reqwest::Client::new();
    for (bytes, status) in [(114_688, 400), (114_689, 413)] {
        let sent = client.post(world.url("/v1/clusters")).body(vec![b' '; bytes]);
        let sent = sent.header("content-type", "application/json");
        ensure!(sent.send().await?.status().as_u16() == status, "{bytes}");
    }
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_arrives_although_nobody_reads_the_body() -> Result<()> {
    let world = World::start(|_| {}).await?;
    let head = format!(
        "GET /v1/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        20 << 20
    );
    let (status, _) = read(&stubborn(&world, &head, &vec![b' '; 1 << 20], 20).await?)?;
    ensure!(status == 404);
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversized_request_head_gets_a_fault() -> Result<()> {
    let world = World::start(|settings| settings.api.max_header_size = 20_000).await?;
    let client = reqwest::Client::new();
    for (path, header, status) in [
        (10, 20_000, 431),
        (17_000, 10, 414),
        (10, 15_000, 200),
        // So large that the server does not read to its end.
        (10, 90_000, 431),
    ] {
        let request = client
            .get(world.url(&format!("/?{}", "&".repeat(path))))
            .header("x-auth-token", "t".repeat(header));
        let answer = request.send().await?;
        ensure!(
            answer.status().as_u16() == status,
            "{path} {header}: {}",
            answer.status()
        );
        if header < 80_000 && status != 200 {
            ensure!(answer.headers().contains_key("x-openstack-request-id"));
            let body: Value = answer.json().await?;
            ensure!(body["errors"][0]["status"] == status, "{body}");
        }
    }
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_sends_a_byte_now_and_then_loses_its_connection() -> Result<()> {
    let world = World::start(|settings| {
        settings.api.keep_alive_timeout = Duration::from_millis(700);
        settings.api.client_timeout = Duration::from_millis(700);
    })
    .await?;
    let body = "POST /v1/clusters HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n";
    for (begins, answered) in [("GET / HTTP/1.1\r\nX: ", None), (body, Some(408))] {
        let mut client = TcpStream::connect(world.address()).await?;
        client.write_all(begins.as_bytes()).await?;
        let (mut from, mut to) = client.split();
        let drips = async {
            // Until the other side has enough of it.
            while to.write_all(b"a").await.is_ok() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        let mut answer = Vec::new();
        let ended = timeout(PATIENCE, async {
            tokio::select! {
                _ = from.read_to_end(&mut answer) => {}
                () = drips => {}
            }
        });
        ensure!(ended.await.is_ok(), "{begins:?} keeps its connection");
        if let Some(status) = answered {
            ensure!(read(&String::from_utf8_lossy(&answer))?.0 == status);
        }
    }
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_beyond_the_limit_wait_for_their_turn() -> Result<()> {
    let world = World::start(|settings| settings.api.max_connections = 2).await?;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = TcpStream::connect(world.address()).await?;
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await?;
        let mut byte = [0];
        client.read_exact(&mut byte).await?;
        held.push(client);
    }
    let third = tokio::spawn(exchange(
        world.address(),
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ));
    // The admin interface counts its own.
    let admin = format!(
        "http://{}/healthcheck",
        world.api.admin_address().context("admin")?
    );
    ensure!(reqwest::get(admin).await?.status().is_success());
    ensure!(!third.is_finished(), "the third connection was served");
    drop(held);
    ensure!(timeout(PATIENCE, third).await???.starts_with("HTTP/1.1 200"));
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rate_limited_client_gets_retry_after_and_others_are_served() -> Result<()> {
    let world = World::start(|settings| {
        settings.api.rate_limit_per_project = 1;
        settings.api.rate_limit_burst = 3;
        settings.api.rate_limit_per_address = 1000;
    })
    .await?;
    let client = reqwest::Client::new();
    let ask = async |project: &str| {
        let request = client.get(world.url("/v1/mservices"));
        request
            .header("X-Project-Id", project)
            .header("X-Roles", "admin")
            .send()
            .await
    };
    // At once: one after the other may be slow enough to be allowed.
    let answers = try_join_all((0..20).map(|_| ask("busy"))).await?;
    let refused = answers
        .into_iter()
        .find(|answer| answer.status().as_u16() == 429)
        .context("nothing was refused")?;
    let wait: u64 = refused
        .headers()
        .get("retry-after")
        .context("when")?
        .to_str()?
        .parse()?;
    ensure!(wait == 1, "{wait}");
    ensure!(refused.headers().contains_key("x-openstack-request-id"));
    let body: Value = refused.json().await?;
    ensure!(body["errors"][0]["status"] == 429, "{body}");
    for (project, waits) in [("calm", 0), ("busy", wait)] {
        sleep(Duration::from_secs(waits)).await;
        let status = ask(project).await?.status();
        ensure!(status.is_success(), "{project}: {status}");
    }
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_cannot_escape_the_limit_by_address_with_a_header_of_its_own() -> Result<()> {
    let world = World::start(|settings| {
        settings.api.rate_limit_per_address = 1;
        settings.api.rate_limit_burst = 2;
        settings.oslo_middleware.enable_proxy_headers_parsing = true;
    })
    .await?;
    let client = reqwest::Client::new();
    let ask = async |claimed: String, seen: &str| -> Result<u16> {
        let request = client
            .get(world.url("/"))
            .header("X-Forwarded-For", format!("{claimed}, {seen}"));
        Ok(request.send().await?.status().as_u16())
    };
    let mut statuses = Vec::new();
    for number in 0..10 {
        statuses.push(ask(format!("10.0.0.{number}"), "203.0.113.9").await?);
    }
    ensure!(statuses.contains(&429), "{statuses:?}");
    ensure!(ask("10.0.0.1".to_owned(), "203.0.113.10").await? == 200);
    // Health is never limited.
    for _ in 0..10 {
        ensure!(
            client
                .get(world.url("/healthcheck"))
                .send()
                .await?
                .status()
                .is_success()
        );
    }
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_does_not_wait_for_idle_connections() -> Result<()> {
    let world = World::start(|_| {}).await?;
    let mut silent = TcpStream::connect(world.address()).await?;
    let mut idle = TcpStream::connect(world.address()).await?;
    idle.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    let mut byte = [0];
    idle.read_exact(&mut byte).await?;
    let began = Instant::now();
    world.stop().await;
    ensure!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    ensure!(rest(&mut silent).await?.is_empty());
    Ok(())
}
