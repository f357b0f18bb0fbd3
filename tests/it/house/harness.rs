//! The harness proves itself: servers come up, can be taken down, and lines can be cut.

use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_common::clock::utc_now;
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::fake_clock::FakeClock;
use magnum_tests::no_processes::NoProcesses;
use magnum_tests::process::Launch;
use magnum_tests::rabbitmq::{self, Rabbitmq};
use magnum_tests::{TestDatabase, on_every_database, run_dir, sweep};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

on_every_database! {
    async fn a_new_database_takes_a_table(database: TestDatabase) -> Result<()> {
        database.execute("CREATE TABLE t (id integer); INSERT INTO t VALUES (1);").await
    }
}

#[tokio::test]
async fn a_vhost_has_no_queues_of_others() -> Result<()> {
    let one = rabbitmq::vhost().await?;
    let other = rabbitmq::vhost().await?;
    let connection =
        lapin::Connection::connect(&one.amqp_url(), lapin::ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel
        .queue_declare(
            "mine".into(),
            lapin::options::QueueDeclareOptions::default(),
            lapin::types::FieldTable::default(),
        )
        .await?;
    assert_eq!(one.management().queues().await?.len(), 1);
    assert_eq!(other.management().queues().await?.len(), 0);
    Ok(())
}

#[tokio::test]
async fn a_restarted_node_keeps_ports_and_durable_queues() -> Result<()> {
    let node = Rabbitmq::dedicated().await?;
    let vhost = node.vhost().await?;
    let connection =
        lapin::Connection::connect(&vhost.amqp_url(), lapin::ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    let durable = lapin::options::QueueDeclareOptions {
        durable: true,
        ..Default::default()
    };
    channel
        .queue_declare("kept".into(), durable, lapin::types::FieldTable::default())
        .await?;
    node.restart().await?;
    vhost.management().queue("kept").await?;
    node.kill().await?;
    node.start().await?;
    vhost.management().queue("kept").await?;
    node.stop().await
}

/// An upstream that sends back what it gets.
async fn echo() -> Result<std::net::SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await.ok();
            });
        }
    });
    Ok(address)
}

async fn round_trip(stream: &mut TcpStream) -> Result<()> {
    stream.write_all(b"ping").await?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).await?;
    ensure!(&answer == b"ping");
    Ok(())
}

#[tokio::test]
async fn a_cut_line_closes_and_refuses_until_restored() -> Result<()> {
    let proxy = ChaosProxy::start(echo().await?).await?;
    let mut open = TcpStream::connect(proxy.address()).await?;
    round_trip(&mut open).await?;
    proxy.cut();
    assert_eq!(
        open.read(&mut [0; 1]).await.unwrap_or(0),
        0,
        "an open connection ends"
    );
    let mut refused = TcpStream::connect(proxy.address()).await?;
    assert_eq!(
        refused.read(&mut [0; 1]).await.unwrap_or(0),
        0,
        "a new connection ends at once"
    );
    proxy.restore();
    round_trip(&mut TcpStream::connect(proxy.address()).await?).await?;
    assert_eq!(proxy.accepted(), 3);
    Ok(())
}

#[tokio::test]
async fn a_stalled_line_carries_nothing_and_then_goes_on() -> Result<()> {
    let proxy = ChaosProxy::start(echo().await?).await?;
    let mut open = TcpStream::connect(proxy.address()).await?;
    round_trip(&mut open).await?;
    proxy.stall();
    assert!(
        tokio::time::timeout(Duration::from_millis(200), round_trip(&mut open))
            .await
            .is_err()
    );
    proxy.restore();
    let mut answer = [0; 4];
    open.read_exact(&mut answer).await?;
    assert_eq!(&answer, b"ping", "what was sent meanwhile arrives");
    Ok(())
}

/// A run folder in the state a killed test process leaves it in, with one server still running.
fn abandoned_run(base: &Path, owner: u32) -> Result<(PathBuf, Child)> {
    let run = base.join(format!("run-{owner}"));
    fs::create_dir_all(run.join("pids"))?;
    fs::write(
        run.join("owner"),
        format!("{owner} {}\n", sweep::start_time(owner).unwrap_or(1)),
    )?;
    let server = Command::new("sleep").arg("600").process_group(0).spawn()?;
    let started = sweep::start_time(server.id()).context("the server runs")?;
    fs::write(
        run.join("pids/server-1"),
        format!("{} {started} 15 server\n", server.id()),
    )?;
    Ok((run, server))
}

#[test]
fn the_guard_ends_servers_when_the_pipe_closes() -> Result<()> {
    let base = tempfile::tempdir()?;
    let (run, mut server) = abandoned_run(base.path(), std::process::id())?;
    let mut guard = run_dir::guard(&run)?;
    assert!(
        server.try_wait()?.is_none(),
        "nothing happens while the pipe is open"
    );
    drop(guard.stdin.take());
    assert_eq!(server.wait()?.signal(), Some(15));
    guard.wait()?;
    assert!(!run.exists());
    Ok(())
}

#[test]
fn the_sweep_takes_dead_runs_and_leaves_living_ones() -> Result<()> {
    let base = tempfile::tempdir()?;
    let mut gone = Command::new("true").spawn()?;
    gone.wait()?;
    let (dead_run, mut orphan) = abandoned_run(base.path(), gone.id())?;
    let (living_run, mut used) = abandoned_run(base.path(), std::process::id())?;
    sweep::sweep(base.path())?;
    assert_eq!(orphan.wait()?.signal(), Some(9));
    assert!(!dead_run.exists());
    assert!(living_run.exists());
    assert!(used.try_wait()?.is_none());
    used.kill()?;
    used.wait()?;
    Ok(())
}

#[test]
fn a_process_that_took_over_a_number_is_left_alone() -> Result<()> {
    let base = tempfile::tempdir()?;
    let mut gone = Command::new("true").spawn()?;
    gone.wait()?;
    let (run, mut stranger) = abandoned_run(base.path(), gone.id())?;
    fs::write(
        run.join("pids/server-1"),
        format!("{} 1 15 server\n", stranger.id()),
    )?;
    sweep::sweep(base.path())?;
    assert!(stranger.try_wait()?.is_none());
    stranger.kill()?;
    stranger.wait()?;
    Ok(())
}

#[tokio::test]
async fn a_host_has_a_clock_of_its_own_and_room_for_processes() -> Result<()> {
    let clock = FakeClock::new(&run_dir::run_dir()?.folder("clock")?)?;
    let off = async |step_ms: i64| {
        clock.set(step_ms)?;
        let launch = Launch::command("date", Command::new("date")).args(["+%s%3N"]);
        let shown: i64 = clock.hold(launch).output().await?.trim().parse()?;
        Ok::<_, anyhow::Error>(shown - utc_now().timestamp_millis())
    };
    for step in [0, 3_600_000, -20_500] {
        let off = off(step).await?;
        ensure!((off - step).abs() < 5000, "{off} ms instead of {step}");
    }
    let processes = NoProcesses::new()?;
    let forks = async || {
        let launch = Launch::command("sh", Command::new("sh")).args(["-c", "(true) && true"]);
        Ok::<_, anyhow::Error>(processes.hold(launch).finish().await?.status.success())
    };
    ensure!(forks().await? && processes.refused() == 0);
    processes.fill()?;
    ensure!(!forks().await? && processes.refused() == 1);
    processes.free()?;
    ensure!(forks().await? && processes.refused() == 1);
    Ok(())
}
