//! Garbage where a program should tell the health of its clusters: through the engine, the limits and the round, into the
//! row. It becomes UNKNOWN, or stays for a while; it is never made up, and nothing else of the row changes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_common::ids::{ClusterUuid, ConductorId};
use magnum_common::model::{Cluster, ClusterStatus, HealthStatus, StringMap};
use magnum_conductor::drivers::{Loaded, Registry};
use magnum_conductor::periodic::health::{HealthCheck, Pace, Timing};
use magnum_conductor::store;
use magnum_conductor::workflows::choose_driver::LoadedDrivers;
use magnum_config::{DriversSection, Settings};
use magnum_driver_api::{
    Clock, Cloud, EngineOptions, EngineServices, GuardProgram, NoCertificates, NoTrusts, RandomSource, Shared,
};
use magnum_drivers::ResolutionRules;
use magnum_tests::TestDatabase;
use magnum_tests::process::built;
use magnum_tests::run_dir::run_dir;
use tokio_util::sync::CancellationToken;

use super::operations::world::{TEMPLATE, World};

const PACE: Pace = Pace {
    interval: Duration::from_secs(60),
    batch: 20,
    parallelism: 1,
    lease: Duration::from_secs(30),
};

/// Says of each cluster what its label `answer` says, `UUID` replaced, and `LONG` by a text that no row holds.
const PROGRAM: &str = r#"#!/usr/bin/env python3
import json, sys
for one in json.load(sys.stdin)["clusters"]:
    answer = one["cluster"]["labels"]["answer"]
    print(answer.replace("UUID", one["cluster"]["uuid"]).replace("LONG", "x" * 70000), flush=True)
"#;

const MANIFEST: &str = "[driver]\nname = 'fake'\nversion = '1.0.0'\nengine = 'exec'\n[[provides]]\nserver_type = 'vm'\n\
                        os = 'ubuntu'\ncoe = 'kubernetes'\n[capabilities]\nhealth = true\n\
                        [exec]\nprogram = 'driver.py'\nobserve_batch = 1\n";

fn drivers(folder: &Path) -> Result<LoadedDrivers> {
    let driver = folder.join("fake");
    fs::create_dir_all(&driver)?;
    fs::write(driver.join("driver.toml"), MANIFEST)?;
    fs::write(driver.join("driver.py"), PROGRAM)?;
    fs::set_permissions(driver.join("driver.py"), fs::Permissions::from_mode(0o755))?;
    let settings = Settings::default();
    let services = EngineServices {
        guard: GuardProgram {
            program: built("magnum-conductor")?,
            arguments: Vec::new(),
        },
        lease: PACE.lease,
        options: EngineOptions::new(&settings),
        cloud: Cloud::new(&settings),
        certificates: Arc::new(NoCertificates),
        trusts: Arc::new(NoTrusts),
        clock: Clock::default(),
        random: RandomSource::default(),
        shared: Shared::default(),
    };
    let loaded = Loaded::from_folders(&[folder.to_owned()], &services);
    ensure!(loaded.failed().is_empty(), "{:?}", loaded.failed());
    let registry = Registry::default();
    registry.replace(loaded);
    Ok(LoadedDrivers::new(
        registry,
        ResolutionRules::from(&DriversSection::default()),
    ))
}

/// A healthy cluster with this answer, written so long ago that its row's own age does not count.
async fn cluster(world: &World, database: &TestDatabase, answer: &str) -> Result<ClusterUuid> {
    let uuid = ClusterUuid::random();
    let mut row = Cluster::new(uuid.clone(), TEMPLATE.into());
    row.project_id = Some("p".into());
    row.status = Some(ClusterStatus::CreateComplete);
    row.stack_id = Some("as it was".into());
    row.health_status = Some(HealthStatus::Healthy);
    row.health_status_reason = StringMap::from([("api".to_owned(), "ok".to_owned())]);
    row.labels = StringMap::from([("answer".to_owned(), answer.to_owned())]);
    world
        .read(move |conn| Ok(store::clusters::insert(conn, std::slice::from_ref(&row))?))
        .await;
    database
        .execute("UPDATE cluster SET created_at = '2020-01-01 00:00:00', updated_at = '2020-01-01 00:00:00'")
        .await?;
    Ok(uuid)
}

/// What a round makes of an answer, when a driver may say nothing for so long.
async fn after(
    world: &World,
    database: &TestDatabase,
    drivers: &Arc<LoadedDrivers>,
    answer: &str,
    unknown_after: Duration,
) -> Result<Cluster> {
    let uuid = cluster(world, database, answer).await?;
    let me = ConductorId::new("one");
    let drivers: Arc<LoadedDrivers> = Arc::clone(drivers);
    let check = HealthCheck::new(world.db.clone(), me, drivers, PACE, Timing { unknown_after });
    check.add_missing().await?;
    ensure!(check.round(&CancellationToken::new()).await? == 1, "{answer}");
    let row = world.cluster(&uuid).await.expect("the cluster is there");
    ensure!(row.status == Some(ClusterStatus::CreateComplete), "{answer}");
    ensure!(row.stack_id.as_deref() == Some("as it was"), "{answer}");
    Ok(row)
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_about_one_cluster_makes_its_health_unknown_with_the_reason() -> Result<()> {
    let database = TestDatabase::sqlite()?;
    let world = World::new(&database).await;
    let drivers = Arc::new(drivers(&run_dir()?.folder("garbage")?)?);
    for (answer, reason) in [
        (
            r#"{"cluster": "UUID", "result": {"cluster": {"health_status": "HEALTHY", "health_status_reason": {"api": "LONG"}}}}"#,
            "returned a report that cannot be recorded: health_status_reason takes",
        ),
        (
            r#"{"cluster": "UUID", "result": {"cluster": {"health_status": "HEALTHY", "stack_id": "another"}}}"#,
            "an answer to health holds health_status",
        ),
        (
            r#"{"cluster": "UUID", "result": {"cluster": {"status": "DELETE_COMPLETE"}}}"#,
            "an answer to health holds health_status",
        ),
        (
            r#"{"cluster": "UUID", "result": {}}"#,
            "an answer to health holds health_status",
        ),
    ] {
        let row = after(&world, &database, &drivers, answer, Duration::from_secs(600)).await?;
        ensure!(
            row.health_status == Some(HealthStatus::Unknown),
            "{answer}: {row:?}"
        );
        let told = &row.health_status_reason["driver"];
        ensure!(told.contains(reason), "{answer}: {told}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_breaks_the_protocol_keeps_the_health_for_a_while_and_then_makes_it_unknown()
-> Result<()> {
    let database = TestDatabase::sqlite()?;
    let world = World::new(&database).await;
    let drivers = Arc::new(drivers(&run_dir()?.folder("garbage")?)?);
    for (answer, reason) in [
        (
            r#"{"cluster": "UUID", "result": {"cluster": {"health_status": "FINE"}}}"#,
            "broke the protocol and was stopped",
        ),
        (
            r#"{"cluster": "UUID", "result": {"cluster": {"health_status": "UNHEALTHY", "health_status_reason": {"api": 1}}}}"#,
            "broke the protocol and was stopped",
        ),
        (
            r#"{"cluster": "UUID", "result": {"cluster": {"health": "UNHEALTHY"}}}"#,
            "broke the protocol and was stopped",
        ),
        ("UNHEALTHY", "broke the protocol and was stopped"),
        (
            r#"{"result": {"cluster": {"health_status": "UNHEALTHY"}}}"#,
            "an answer to health names its cluster",
        ),
        ("", "ended without a line"),
        (
            r#"{"cluster": "00000000-0000-0000-0000-000000000000", "result": {"cluster": {"health_status": "UNHEALTHY"}}}"#,
            "said nothing about the cluster",
        ),
    ] {
        let kept = after(&world, &database, &drivers, answer, Duration::from_secs(600)).await?;
        ensure!(
            kept.health_status == Some(HealthStatus::Healthy),
            "{answer}: {kept:?}"
        );
        ensure!(kept.health_status_reason["api"] == "ok", "{answer}: {kept:?}");
        let unknown = after(&world, &database, &drivers, answer, Duration::ZERO).await?;
        ensure!(
            unknown.health_status == Some(HealthStatus::Unknown),
            "{answer}: {unknown:?}"
        );
        let told = &unknown.health_status_reason["driver"];
        ensure!(told.contains(reason), "{answer}: {told}");
    }
    Ok(())
}
