//! The conductor as a process: signals, its admin interface, and what becomes of a driver's program when the
//! conductor that started it is stopped or killed.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::{Deployment, drivers};
use magnum_tests::process::{Launch, Program, Ready, works};
use magnum_tests::{Backend, wait};
use nix::sys::signal::Signal;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);

/// A second conductor finishes what the first had begun before `harm` was done to it, and the driver's program of
/// the first is gone before the second's begins.
async fn taken_over(harm: Signal) -> Result<Program> {
    let deployment = Deployment::new(Backend::Mariadb).await?;
    let one = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("t").await?;
    let labels = json!({"scripted_create": "wait"});
    let cluster = api.rest.create_cluster(&template, "c", labels).await?;
    let begun = async |count: usize| {
        wait::until("the driver to begin", PATIENCE, async || {
            let begun = deployment.record.begun("create", &cluster)?;
            ensure!(begun.len() == count, "{} begun", begun.len());
            Ok(begun)
        })
        .await
    };
    let first = begun(1).await?.remove(0);
    let _two = deployment.conductor("two").await?;
    one.signal(harm)?;
    let second = begun(2).await?.remove(1);
    ensure!(
        !works(first.pid),
        "the first program still runs while the second does"
    );
    ensure!(second.operation == first.operation && second.attempt > first.attempt);
    deployment.record.let_go(&cluster)?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    deployment.settled(PATIENCE).await?;
    deployment.record.assert_sound()?;
    if harm == Signal::SIGSTOP {
        // Back from its pause, it must notice that it lost the lease, and go on as a conductor.
        one.signal(Signal::SIGCONT)?;
        one.wait_log("lease", PATIENCE).await?;
        let status = api.rest.status(&cluster).await?;
        ensure!(status.as_deref() == Some("CREATE_COMPLETE"), "{status:?}");
        deployment.record.assert_sound()?;
    }
    Ok(one)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_conductors_program_ends_before_another_begins() -> Result<()> {
    taken_over(Signal::SIGKILL).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_conductors_program_ends_before_another_begins() -> Result<()> {
    taken_over(Signal::SIGSTOP).await.map(drop)
}

/// A driver of this name beside the scripted one.
fn add_driver(folder: &Path, name: &str) -> Result<()> {
    let (from, to) = (drivers().join("scripted"), folder.join(name));
    std::fs::create_dir_all(&to)?;
    std::fs::copy(from.join("driver.py"), to.join("driver.py"))?;
    let manifest = std::fs::read_to_string(from.join("driver.toml"))?;
    let renamed = manifest.replace("name = \"scripted\"", &format!("name = \"{name}\""));
    std::fs::write(to.join("driver.toml"), renamed)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_brings_new_drivers_to_every_api_and_a_broken_one_harms_nothing() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let folder = deployment.folder.join("drivers");
    add_driver(&folder, "scripted")?;
    deployment.set("drivers", "driver_path", folder.display());
    let mut conductor = deployment.conductor("one").await?;
    // An API host without driver files.
    deployment.set("drivers", "driver_path", deployment.folder.join("none").display());
    let api = deployment.api().await?;
    let body = json!({
        "name": "t", "image_id": "ubuntu-24.04", "coe": "kubernetes", "external_network_id": "public",
        "keypair_id": "key", "flavor_id": "m1.small", "master_flavor_id": "m1.small", "driver": "fresh"
    });
    let refused = api.rest.post("/clustertemplates", &body).await?;
    ensure!(refused.status.as_u16() == 400, "{}", refused.body);

    add_driver(&folder, "fresh")?;
    std::fs::create_dir_all(folder.join("broken"))?;
    std::fs::write(folder.join("broken/driver.toml"), "[driver]\nname = 3\n")?;
    conductor.signal(Signal::SIGHUP)?;
    conductor.wait_log("a driver cannot be loaded", PATIENCE).await?;
    wait::until("the new driver to be accepted", PATIENCE, async || {
        api.rest.post("/clustertemplates", &body).await?.expect(201)
    })
    .await?;
    ensure!(conductor.terminate(PATIENCE).await?.success());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_interface_serves_health_readiness_and_metrics() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let mut conductor = deployment.conductor("one").await?;
    let config = std::fs::read_to_string(deployment.folder.join("one.conf"))?;
    let admin = config
        .lines()
        .find_map(|line| line.strip_prefix("admin_listen = "))
        .context("the admin address")?;
    let get = async |path: &str| -> Result<(u16, String)> {
        let answer = reqwest::get(format!("http://{admin}{path}")).await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    };
    ensure!(get("/healthcheck").await? == (200, "OK".to_owned()));
    let (status, ready) = get("/readiness").await?;
    ensure!(status == 200 && ready.contains("\"consuming\":true"), "{ready}");
    wait::until("the metrics", PATIENCE, async || {
        let (status, text) = get("/metrics").await?;
        ensure!(status == 200);
        for name in [
            "magnum_drivers_loaded 1",
            "magnum_operations_open{state=\"queued\"} 0",
        ] {
            ensure!(text.contains(name), "{name} is not in {text}");
        }
        Ok(())
    })
    .await?;
    ensure!(conductor.terminate(PATIENCE).await?.success());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_revision_is_refused_by_name() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    deployment
        .database
        .execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")
        .await?;
    let config = deployment.config_file("one")?;
    let finished = Launch::program("magnum-conductor")?
        .config(&config)
        .finish()
        .await?;
    ensure!(!finished.status.success());
    ensure!(finished.stderr.contains("ffffffffffff"), "{}", finished.stderr);
    ensure!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_broker_the_conductor_runs_and_stops_at_a_word() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    // A port on which nobody listens.
    deployment.connect_via(
        Some(([127, 0, 0, 1], magnum_tests::ports::free_port()?).into()),
        None,
    );
    let config = deployment.config_file("one")?;
    let mut conductor = Launch::program("magnum-conductor")?
        .config(&config)
        .ready_when(Ready::Log("the conductor runs".to_owned()))
        .start()
        .await?;
    ensure!(conductor.terminate(Duration::from_secs(10)).await?.success());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conductor_removes_operations_that_are_older_than_the_history() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let mut conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("t").await?;
    let cluster = api.rest.create_cluster(&template, "c", json!({})).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    api.rest
        .delete(&format!("/clusters/{cluster}"))
        .await?
        .expect(204)?;
    let operations = deployment.settled(PATIENCE).await?;
    ensure!(operations.len() == 2, "{operations:#?}");
    ensure!(conductor.terminate(PATIENCE).await?.success());
    let month = 31 * 86_400_000_i64;
    let older = format!(
        "UPDATE conductor_operation SET created_ms = created_ms - {month}, ended_ms = ended_ms - {month}"
    );
    deployment.database.execute(&older).await?;

    let conductor = deployment.conductor("two").await?;
    conductor
        .wait_log("old operations were removed from the journal", PATIENCE)
        .await?;
    let operations = deployment.operations().await?;
    ensure!(operations.is_empty(), "{operations:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_threads_of_one_process() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set("conductor", "workers", 3);
    let conductor = deployment.conductor("one").await?;
    conductor.wait_log("threads=3", PATIENCE).await?;
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", conductor.pid()))?;
    ensure!(children.is_empty(), "it started processes: {children}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn both_programs_warn_at_start_of_a_queue_that_is_not_durable_and_name_the_option() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let (conductor, api) = (deployment.conductor("durable").await?, deployment.api().await?);
    for program in [&conductor, &api.program] {
        ensure!(!program.log().contains("not durable"), "{}", program.log());
    }
    drop((conductor, api));
    // Under oslo's default, in a vhost that has no durable queue of that name yet.
    let other = Deployment::new(Backend::Sqlite).await?;
    deployment.set("DEFAULT", "transport_url", other.vhost.transport_url());
    deployment.set("oslo_messaging_rabbit", "rabbit_quorum_queue", false);
    let (conductor, api) = (deployment.conductor("volatile").await?, deployment.api().await?);
    for program in [&conductor, &api.program] {
        program.wait_log("is not durable", PATIENCE).await?;
        ensure!(program.log().contains("rabbit_quorum_queue = true"));
    }
    Ok(())
}
