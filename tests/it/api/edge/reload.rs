//! What a running API takes over on SIGHUP, and how it goes.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::builders::ConfigFile;
use magnum_tests::deployment::{Deployment, drivers};
use magnum_tests::ports::free_port;
use magnum_tests::process::{Launch, Ready};
use magnum_tests::rest::Rest;
use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use magnum_tests::api_alone::{World, rest};

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn levels_and_drivers_are_taken_over_and_a_mistake_changes_nothing() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let port = free_port()?;
    let place = deployment.folder.join("reloaded.conf");
    let write = |change: &dyn Fn(ConfigFile) -> ConfigFile| {
        let config = deployment
            .config()
            .clone()
            .set("api", "port", port)
            .set("DEFAULT", "debug", false);
        change(config).write(&place)
    };
    let nowhere = deployment.folder.join("nowhere");
    write(&|config| config.set("drivers", "driver_path", nowhere.display()))?;
    let health = format!("http://127.0.0.1:{port}/healthcheck");
    let api = Launch::program("magnum-api")?
        .config(&place)
        .ready_when(Ready::Http(health.clone()))
        .start()
        .await?;
    let client = Rest::new(&format!("http://127.0.0.1:{port}/v1"));
    ensure!(
        client.create_template("early").await.is_err(),
        "there is no driver yet"
    );
    ensure!(!api.log().contains("health was asked for"), "{}", api.log());

    // With a mistake: neither the levels nor the drivers that stand beside it.
    let drivers = drivers();
    write(&|config| {
        config
            .set("DEFAULT", "debug", true)
            .set("drivers", "driver_path", drivers.display())
            .set("api", "max_limit", "many")
    })?;
    api.signal(Signal::SIGHUP)?;
    api.wait_log("nothing was reloaded", PATIENCE).await?;
    reqwest::get(&health).await?.error_for_status()?;
    ensure!(
        client.create_template("early").await.is_err(),
        "the drivers came all the same"
    );
    ensure!(!api.log().contains("health was asked for"), "{}", api.log());

    write(&|config| {
        config
            .set("DEFAULT", "debug", true)
            .set("drivers", "driver_path", drivers.display())
    })?;
    api.signal(Signal::SIGHUP)?;
    api.wait_log("reloaded: ", PATIENCE).await?;
    client.create_template("now").await?;
    reqwest::get(&health).await?.error_for_status()?;
    api.wait_log("health was asked for", PATIENCE).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_service_fails_health_and_drains() -> Result<()> {
    let delay = Duration::from_secs(4);
    let world = World::start(|settings| settings.api.shutdown_delay = delay).await?;
    let (address, root, health) = (world.address(), world.url("/"), world.url("/healthcheck"));
    let admin = world.admin("/healthcheck");
    ensure!(reqwest::get(&health).await?.status().is_success());
    let (began, stopping) = (Instant::now(), tokio::spawn(world.stop()));
    let told = timeout(PATIENCE, async {
        loop {
            let answer = reqwest::get(&health).await?;
            if answer.status().as_u16() == 503 {
                return answer.text().await;
            }
        }
    });
    ensure!(told.await?? == "STOPPING");
    ensure!(reqwest::get(&admin).await?.status().as_u16() == 503);
    let answer = reqwest::get(&root).await?;
    ensure!(answer.status().is_success() && answer.headers()["connection"] == "close");
    stopping.await?;
    ensure!(began.elapsed() >= delay, "{:?}", began.elapsed());
    ensure!(TcpStream::connect(address).await.is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_does_not_end_is_cut_off_in_the_end() -> Result<()> {
    let world = World::start(|settings| settings.api.shutdown_timeout = Duration::from_secs(1)).await?;
    let mut client = TcpStream::connect(world.address()).await?;
    let head = "POST /v1/clusters HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n";
    client.write_all(head.as_bytes()).await?;
    // It waits for the body now, which does not come.
    let mut asked = [0; 12];
    client.read_exact(&mut asked).await.context("an invitation")?;
    ensure!(&asked == b"HTTP/1.1 100", "{asked:?}");
    timeout(Duration::from_secs(20), world.stop()).await?;
    let answer = rest(&mut client).await.unwrap_or_default();
    ensure!(!answer.contains("HTTP/1.1 4"), "it was answered: {answer}");
    Ok(())
}
