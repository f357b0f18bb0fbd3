//! The broker goes, is short of memory, or takes deliveries back.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Effect, last};
use crate::nemesis::kind::{Place, Resource};
use crate::nemesis::plan::Planned;
use crate::nemesis::world::World;
use crate::wait;

/// RabbitMQ's own default.
const WATERMARK: &str = "0.4";
/// RabbitMQ's own default, half an hour in milliseconds.
const TIMEOUT_MS: u32 = 1_800_000;
/// As short as an operator of other services may set it by mistake.
const SHORT_MS: u32 = 2000;

/// Starts it again, and does what an operator does about queues that have no leader.
async fn start(world: &World) -> Result<Effect> {
    world.broker.start().await?;
    let elected = world.broker.elect_leaders().await?;
    Ok(Effect::Seen(match elected.trim() {
        "[]" => "it was away".into(),
        elected => format!("it was away, and queues had no leader: {elected}"),
    }))
}

pub(super) async fn restart(world: &World, fault: &Planned) -> Result<Effect> {
    world.broker.stop().await?;
    last(fault).await;
    start(world).await
}

pub(super) async fn kill(world: &World, fault: &Planned) -> Result<Effect> {
    world.broker.kill().await?;
    last(fault).await;
    start(world).await
}

pub(super) async fn memory_alarm(world: &World, fault: &Planned) -> Result<Effect> {
    world
        .broker
        .control(&["set_vm_memory_high_watermark", "absolute", "1048576"])
        .await?;
    let management = world.broker.management();
    let alarm = wait::until("the alarm", Duration::from_secs(20), async || {
        let nodes = management.get("nodes").await?;
        ensure!(
            nodes[0]["mem_alarm"] == true,
            "no alarm: {}",
            nodes[0]["mem_alarm"]
        );
        Ok(())
    })
    .await;
    last(fault).await;
    let blocked = blocked(world).await;
    world
        .broker
        .control(&["set_vm_memory_high_watermark", WATERMARK])
        .await?;
    let seen = format!("the alarm was on, {blocked} connections were blocked");
    Ok(Effect::of(
        alarm.is_ok() && blocked > 0,
        seen,
        "nobody was blocked",
    ))
}

async fn blocked(world: &World) -> usize {
    let connections = world
        .deployment
        .vhost
        .management()
        .connections()
        .await
        .unwrap_or_default();
    let states = connections.iter().filter_map(|one| one["state"].as_str());
    states.filter(|state| state.starts_with("block")).count()
}

/// Whoever cannot record what it was given loses it: the lines of one conductor to the database are stalled, too, unless
/// another fault has them.
pub(super) async fn consumer_timeout(world: &World, fault: &Planned) -> Result<Effect> {
    const GIVEN_UP: &str = "has timed out waiting";
    set_timeout(world, SHORT_MS).await?;
    let before = world.broker.log()?.matches(GIVEN_UP).count();
    let mut conductors = world.conductors.iter().enumerate();
    let victim = conductors.find_map(|(number, host)| {
        let taken = world.try_take(Place::Conductor(number), Resource::DatabaseLine)?;
        Some((taken, host.lines.database.as_ref()?))
    });
    if let Some((_, line)) = &victim {
        line.stall();
    }
    last(fault).await;
    if let Some((_, line)) = &victim {
        line.forget();
    }
    let given_up = world.broker.log()?.matches(GIVEN_UP).count() - before;
    set_timeout(world, TIMEOUT_MS).await?;
    let seen = format!("{given_up} deliveries were taken back");
    Ok(Effect::of(
        given_up > 0,
        seen,
        "everything was acknowledged in time",
    ))
}

/// For channels that are opened from now on, and all are.
async fn set_timeout(world: &World, milliseconds: u32) -> Result<()> {
    // A channel looks at its deliveries once in a minute otherwise.
    let set = format!(
        "application:set_env(rabbit, channel_tick_interval, 1000), \
         application:set_env(rabbit, consumer_timeout, {milliseconds})."
    );
    world.broker.control(&["eval", &set]).await?;
    // A connection may go by itself meanwhile.
    world.deployment.vhost.management().close_connections().await.ok();
    Ok(())
}
