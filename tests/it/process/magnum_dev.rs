//! `magnum-dev`, as somebody meets it who has just cloned the repository: SQLite, no broker, no other service.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::ports::free_port;
use magnum_tests::process::{Finished, Launch, Program, Ready, built};
use magnum_tests::rest::Rest;
use magnum_tests::run_dir::run_dir;
use nix::sys::signal::Signal;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);

async fn demo(args: &[&str]) -> Result<Finished> {
    Launch::program("magnum-dev")?
        .args(["demo"])
        .args(args)
        .finish()
        .await
}

/// The texts stand in the output in this order.
fn in_order(output: &str, texts: &[&str]) -> Result<()> {
    let mut rest = output;
    for text in texts {
        let at = rest
            .find(text)
            .with_context(|| format!("{text:?} is missing, or comes too early, in\n{output}"))?;
        rest = &rest[at + text.len()..];
    }
    Ok(())
}

/// Where a demonstration logs, in its own words.
fn log_of(output: &str) -> Result<&str> {
    output
        .lines()
        .find_map(|line| line.strip_prefix("What it logs is in "))
        .and_then(|line| line.split(", removed").next())
        .context("it says where its log is")
}

const LIFE: [&str; 9] = [
    "driver disk was chosen",
    "status: CREATE_IN_PROGRESS",
    "status: CREATE_COMPLETE",
    "status: UPDATE_IN_PROGRESS",
    "status: UPDATE_COMPLETE",
    "status: DELETE_IN_PROGRESS",
    "status: gone",
    "What the journal recorded",
    "Done",
];

#[tokio::test]
async fn the_demonstration_shows_a_whole_life_in_plain_lines_and_leaves_nothing() -> Result<()> {
    let done = demo(&["--node-delay-ms", "300"]).await?;
    ensure!(done.status.success(), "{done:?}");
    in_order(&done.stdout, &LIFE)?;
    in_order(
        &done.stdout,
        &[
            "building default-master",
            "cluster_create",
            "by driver disk 1.0.0: succeeded",
            "intent         create_cluster",
            "cluster_update",
            "succeeded",
            "cluster_delete",
            "succeeded",
        ],
    )?;
    ensure!(done.stderr.is_empty(), "{}", done.stderr);
    ensure!(!done.stdout.contains(['\x1b', '\r']), "{:?}", done.stdout);
    let log = log_of(&done.stdout)?;
    ensure!(!Path::new(log).exists(), "{log} is left");
    Ok(())
}

#[tokio::test]
async fn on_a_terminal_the_demonstration_draws_a_bar_that_ends_with_its_part() -> Result<()> {
    let program = format!("{} demo --node-delay-ms 300", built("magnum-dev")?.display());
    let done = Launch::command("script", Command::new("script"))
        .env("TERM", "xterm")
        .args(["--quiet", "--return", "--command", &program, "/dev/null"])
        .finish()
        .await?;
    ensure!(done.status.success(), "{done:?}");
    in_order(&done.stdout, &LIFE)?;
    // A bar with the driver's words, drawn over and over in one line.
    ensure!(
        done.stdout.contains("] building default-master"),
        "{:?}",
        done.stdout
    );
    ensure!(done.stdout.contains("\x1b[2K"), "{:?}", done.stdout);
    // What stays on the screen afterwards has no remains of it.
    let journal = done
        .stdout
        .split("What the journal recorded")
        .nth(1)
        .unwrap_or_default();
    ensure!(!journal.contains('\x1b'), "{journal:?}");
    Ok(())
}

#[tokio::test]
async fn demonstration_that_cannot_run_prints_advice() -> Result<()> {
    let no_python = Launch::program("magnum-dev")?
        .args(["demo"])
        .env("PATH", "/nowhere");
    let done = no_python.finish().await?;
    ensure!(!done.status.success());
    ensure!(done.stderr.contains("install Python 3"), "{}", done.stderr);

    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = taken.local_addr()?.port().to_string();
    let done = demo(&["--port", &port]).await?;
    ensure!(!done.status.success());
    ensure!(
        done.stderr.matches("Address already in use").count() == 1,
        "{}",
        done.stderr
    );
    Ok(())
}

#[tokio::test]
async fn an_interrupted_demonstration_ends_soon_and_leaves_nothing() -> Result<()> {
    let mut program = Launch::program("magnum-dev")?
        .args(["demo", "--node-delay-ms", "60000"])
        .spawn()?;
    program.wait_log("building default-master", PATIENCE).await?;
    program.signal(Signal::SIGINT)?;
    // Far less than the node takes that is being built.
    ensure!(!program.wait_end(PATIENCE / 2).await?.success());
    let said = program.log();
    ensure!(said.contains("magnum-dev: interrupted"), "{said}");
    let log = log_of(&said)?;
    ensure!(!Path::new(log).exists(), "{log} is left");
    Ok(())
}

/// A service on `state`, and a client for it.
async fn serve(state: &Path) -> Result<(Program, Rest)> {
    let port = free_port()?;
    let program = Launch::program("magnum-dev")?
        .args(["serve", "--port", &port.to_string(), "--state"])
        .args([state])
        .ready_when(Ready::Http(format!("http://127.0.0.1:{port}/healthcheck")))
        .start()
        .await?;
    Ok((program, Rest::new(&format!("http://127.0.0.1:{port}/v1"))))
}

fn state() -> Result<PathBuf> {
    Ok(run_dir()?.folder("magnum-dev")?.join("state"))
}

#[tokio::test]
async fn service_keeps_its_data_and_stops_in_order() -> Result<()> {
    let state = state()?;
    let (mut program, rest) = serve(&state).await?;
    ensure!(
        program.log().contains("curl "),
        "it says how to ask it: {}",
        program.log()
    );
    ensure!(!program.log().contains("not durable"), "{}", program.log());
    let body = json!({"name": "t", "image_id": "ubuntu-24.04", "coe": "kubernetes"});
    rest.post("/clustertemplates", &body).await?.expect(201)?;
    let cluster = rest.create_cluster("t", "c", json!({})).await?;
    rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
    ensure!(program.terminate(PATIENCE).await?.success());

    let (_program, rest) = serve(&state).await?;
    let status = rest.status(&cluster).await?;
    ensure!(status.as_deref() == Some("CREATE_COMPLETE"), "{status:?}");
    Ok(())
}

#[tokio::test]
async fn a_taken_port_is_named_with_the_option_that_takes_another() -> Result<()> {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = taken.local_addr()?.port().to_string();
    let state = state()?;
    let second = Launch::program("magnum-dev")?
        .args(["serve", "--port", &port, "--state"])
        .args([&state]);
    let done = second.finish().await?;
    ensure!(!done.status.success());
    let said = done.stderr.lines().last().unwrap_or_default();
    ensure!(
        said.contains("--port takes another") && said.matches("in use").count() == 1,
        "{said}"
    );
    Ok(())
}
