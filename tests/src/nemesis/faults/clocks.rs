//! Wall clocks that step, and step back.

use std::time::Duration;

use anyhow::Result;
use chrono::DateTime;
use magnum_common::clock::utc_now;
use magnum_db::now_ms;
use rand::RngExt as _;

use super::{Effect, chance, last};
use crate::nemesis::plan::Planned;
use crate::nemesis::world::World;

/// As when a time server comes back after hours.
const CONDUCTOR_STEP_MS: std::ops::RangeInclusive<i64> = 5000..=7_200_000;
/// The database's clock decides about leases.
const DATABASE_STEP_MS: std::ops::RangeInclusive<i64> = 1000..=30_000;

/// Forwards or backwards.
fn step(fault: &Planned, sizes: std::ops::RangeInclusive<i64>) -> i64 {
    let mut chance = chance(fault);
    let size = chance.random_range(sizes);
    if chance.random() { size } else { -size }
}

/// Seen by the time that its log's lines have.
pub(super) async fn step_conductor(world: &World, fault: &Planned) -> Result<Effect> {
    let host = world.conductor(fault.place)?;
    let step = step(fault, CONDUCTOR_STEP_MS);
    host.clock.set(step)?;
    last(fault).await;
    let log = host.log();
    let last_line = log.lines().rev().find_map(time_of);
    let off = last_line.map_or(0, |at| at - utc_now().timestamp_millis());
    host.clock.set(0)?;
    let seen = format!("its clock was {step} ms off");
    Ok(Effect::of(
        is_near(off, step),
        seen,
        "it logged nothing, or was away",
    ))
}

pub(super) async fn step_database(world: &World, fault: &Planned) -> Result<Effect> {
    let step = step(fault, DATABASE_STEP_MS);
    world.server_clock.set(step)?;
    last(fault).await;
    let ask = world.direct.run(now_ms);
    let now = tokio::time::timeout(Duration::from_secs(5), ask).await;
    let off = now
        .ok()
        .and_then(Result::ok)
        .map_or(0, |now| now - utc_now().timestamp_millis());
    world.server_clock.set(0)?;
    let seen = format!("its clock was {step} ms off");
    Ok(Effect::of(
        is_near(off, step),
        seen,
        "it did not say what time it is",
    ))
}

/// In the same direction, by half of it at least: a line may be some seconds old.
fn is_near(off: i64, step: i64) -> bool {
    off.signum() == step.signum() && off.abs() * 2 > step.abs()
}

fn time_of(line: &str) -> Option<i64> {
    let at = DateTime::parse_from_rfc3339(line.split_whitespace().next()?).ok()?;
    Some(at.timestamp_millis())
}
