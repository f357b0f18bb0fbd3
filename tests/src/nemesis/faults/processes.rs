//! Programs that die, stand still, leave and join.

use std::time::Duration;

use anyhow::{Context as _, Result};
use diesel::prelude::*;
use magnum_db::schema::conductor_operation::dsl as op;
use nix::sys::signal::Signal;

use super::{Effect, last};
use crate::nemesis::host::ConductorHost;
use crate::nemesis::kind::Place;
use crate::nemesis::plan::Planned;
use crate::nemesis::world::World;

const LEAVES_WITHIN: Duration = Duration::from_secs(90);

pub(super) async fn kill_conductor(world: &World, fault: &Planned) -> Result<Effect> {
    let host = world.conductor(fault.place)?;
    let Some(mut program) = host.take() else {
        return Ok(Effect::None("it was away".into()));
    };
    let held = held_by(world, host).await.map_or(0, |held| held.len());
    program.kill().await?;
    host.keep(program);
    last(fault).await;
    host.start(&world.deployment, world.disk.as_ref()).await?;
    Ok(Effect::Seen(format!("{held} operations were in its hands")))
}

/// Its effect is that somebody else has taken over.
pub(super) async fn freeze_conductor(world: &World, fault: &Planned) -> Result<Effect> {
    let host = world.conductor(fault.place)?;
    host.signal(Signal::SIGSTOP)?;
    let held = held_by(world, host).await;
    last(fault).await;
    let mut taken_over = 0;
    for (operation, epoch) in held.iter().flatten() {
        if epoch_of(world, *operation).await.is_some_and(|now| now != *epoch) {
            taken_over += 1;
        }
    }
    host.signal(Signal::SIGCONT)?;
    let seen = format!("{taken_over} operations were taken over");
    Ok(Effect::of(
        taken_over > 0,
        seen,
        "it had nothing that could be taken over",
    ))
}

pub(super) async fn leave_conductor(world: &World, fault: &Planned) -> Result<Effect> {
    let host = world.conductor(fault.place)?;
    let Some(mut program) = host.take() else {
        return Ok(Effect::None("it was away".into()));
    };
    let status = program.terminate(LEAVES_WITHIN).await?;
    host.keep(program);
    last(fault).await;
    host.start(&world.deployment, world.disk.as_ref()).await?;
    Ok(Effect::Seen(format!("it ended with {status}")))
}

pub(super) async fn join_conductor(world: &World, fault: &Planned) -> Result<Effect> {
    let host = &world.guest;
    host.start(&world.deployment, world.disk.as_ref()).await?;
    last(fault).await;
    let mut program = host.take().context("the guest is away")?;
    let has_consumed = program.log().contains("the conductor runs");
    program.terminate(LEAVES_WITHIN).await?;
    host.keep(program);
    Ok(Effect::of(
        has_consumed,
        "it took part".into(),
        "it had not come up by then",
    ))
}

pub(super) async fn kill_api(world: &World, fault: &Planned) -> Result<Effect> {
    let Place::Api(number) = fault.place else {
        anyhow::bail!("no API at {:?}", fault.place)
    };
    let Some(mut program) = world.apis[number].take() else {
        return Ok(Effect::None("it was away".into()));
    };
    program.kill().await?;
    last(fault).await;
    world.start_api(number)?;
    Ok(Effect::Seen("it died".into()))
}

/// Operations that a conductor on this host works on, with their epochs. None when the database does not say.
async fn held_by(world: &World, host: &ConductorHost) -> Option<Vec<(i64, i64)>> {
    let owner = format!("{}:%", host.name);
    let ask = world.direct.run(move |conn| {
        let held = op::conductor_operation
            .filter(op::owner.like(owner))
            .filter(op::state.eq("running"));
        Ok(held.select((op::id, op::lease_epoch)).load(conn)?)
    });
    tokio::time::timeout(Duration::from_secs(2), ask).await.ok()?.ok()
}

async fn epoch_of(world: &World, operation: i64) -> Option<i64> {
    let ask = world.direct.run(move |conn| {
        let row = op::conductor_operation.filter(op::id.eq(operation));
        Ok(row.select(op::lease_epoch).first(conn)?)
    });
    tokio::time::timeout(Duration::from_secs(2), ask).await.ok()?.ok()
}
