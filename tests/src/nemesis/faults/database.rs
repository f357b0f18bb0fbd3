//! The database server goes, stands still, or somebody holds a row.

use std::time::Duration;

use anyhow::{Context as _, Result};
use diesel::prelude::*;
use magnum_db::schema::conductor_operation::dsl as op;
use nix::sys::signal::Signal;
use rand::seq::IndexedRandom as _;

use super::{Effect, chance, last};
use crate::nemesis::plan::Planned;
use crate::nemesis::world::World;
use crate::row_lock::RowLock;

pub(super) async fn restart(world: &World, fault: &Planned) -> Result<Effect> {
    world.server.stop().await?;
    last(fault).await;
    world.server.start().await?;
    Ok(Effect::Seen("it was away".into()))
}

pub(super) async fn kill(world: &World, fault: &Planned) -> Result<Effect> {
    world.server.kill().await?;
    last(fault).await;
    world.server.start().await?;
    Ok(Effect::Seen("it was away".into()))
}

pub(super) async fn freeze(world: &World, fault: &Planned) -> Result<Effect> {
    let pid = world.server.signal(Signal::SIGSTOP).await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let is_stopped = std::fs::read_to_string(format!("/proc/{pid}/stat"))?.contains(") T ");
    last(fault).await;
    world.server.signal(Signal::SIGCONT).await?;
    Ok(Effect::of(is_stopped, "it stood still".into(), "it went on"))
}

/// The row of a cluster that has something to do, if there is one.
pub(super) async fn hold_row(world: &World, fault: &Planned) -> Result<Effect> {
    let open = world.direct.run(|conn| {
        let open = op::conductor_operation.filter(op::ended_ms.is_null());
        let clusters: Vec<String> = open.select(op::cluster_uuid).distinct().load(conn)?;
        Ok(clusters)
    });
    let open = tokio::time::timeout(Duration::from_secs(5), open).await;
    let Ok(Ok(open)) = open else {
        return Ok(Effect::None("the database was away".into()));
    };
    let Some(cluster) = open.choose(&mut chance(fault)) else {
        return Ok(Effect::None("nothing was to do".into()));
    };
    let condition = format!("uuid = '{cluster}'");
    let database = &world.deployment.database;
    let take = RowLock::take(database, "cluster", &condition);
    let lock = match tokio::time::timeout(Duration::from_secs(5), take).await {
        Ok(Ok(lock)) => lock,
        Ok(Err(_)) | Err(_) => return Ok(Effect::None("the database did not give the lock".into())),
    };
    let is_there = row_is_there(world, cluster.clone()).await;
    last(fault).await;
    tokio::task::spawn_blocking(move || drop(lock))
        .await
        .context("let the row go")?;
    Ok(Effect::of(
        is_there,
        format!("{cluster} was held"),
        "the row was gone by then",
    ))
}

async fn row_is_there(world: &World, cluster: String) -> bool {
    use magnum_db::schema::cluster::dsl;
    let ask = world.direct.run(move |conn| {
        let count: i64 = dsl::cluster
            .filter(dsl::uuid.eq(cluster))
            .count()
            .get_result(conn)?;
        Ok(count)
    });
    matches!(tokio::time::timeout(Duration::from_secs(2), ask).await, Ok(Ok(1)))
}
