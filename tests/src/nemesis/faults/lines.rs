//! Lines that are slow, cut, cut at the worst moment, or swallow what they are given.

use std::time::Duration;

use anyhow::{Context as _, Result};
use rand::RngExt as _;

use super::{Effect, chance, last};
use crate::chaos_proxy::ChaosProxy;
use crate::nemesis::host::Lines;
use crate::nemesis::kind::Place;
use crate::nemesis::plan::Planned;
use crate::nemesis::world::World;

/// How both databases are told to commit.
const COMMIT: &[u8] = b"COMMIT";

pub(super) async fn slow_database(world: &World, fault: &Planned) -> Result<Effect> {
    let line = database_line(world, fault)?;
    let each = Duration::from_millis(chance(fault).random_range(50..=700));
    let before = line.kept_back();
    line.slow(each);
    last(fault).await;
    line.restore();
    let late = line.kept_back() - before;
    Ok(Effect::of(
        late > 0,
        format!("{late} pieces were {each:?} late"),
        "nothing passed",
    ))
}

pub(super) async fn cut_database(world: &World, fault: &Planned) -> Result<Effect> {
    cut(database_line(world, fault)?, fault).await
}

pub(super) async fn black_hole_database(world: &World, fault: &Planned) -> Result<Effect> {
    black_hole(database_line(world, fault)?, fault).await
}

pub(super) async fn cut_after_commit(world: &World, fault: &Planned) -> Result<Effect> {
    let line = database_line(world, fault)?;
    let before = line.cuts();
    line.cut_after(COMMIT, chance(fault).random_range(1..=5));
    last(fault).await;
    line.cut_after(COMMIT, 0);
    let cuts = line.cuts() - before;
    Ok(Effect::of(
        cuts > 0,
        format!("{cuts} COMMITs without an answer"),
        "nothing was committed",
    ))
}

pub(super) async fn cut_broker(world: &World, fault: &Planned) -> Result<Effect> {
    cut(&lines(world, fault)?.broker, fault).await
}

pub(super) async fn black_hole_broker(world: &World, fault: &Planned) -> Result<Effect> {
    black_hole(&lines(world, fault)?.broker, fault).await
}

async fn cut(line: &ChaosProxy, fault: &Planned) -> Result<Effect> {
    let before = line.broken();
    line.cut();
    last(fault).await;
    line.restore();
    let closed = line.broken() - before;
    Ok(Effect::of(
        closed > 0,
        format!("{closed} connections were cut"),
        "there was no connection",
    ))
}

/// What is sent meanwhile never arrives, and what was open leads nowhere for ever.
async fn black_hole(line: &ChaosProxy, fault: &Planned) -> Result<Effect> {
    let before = line.kept_back();
    line.stall();
    last(fault).await;
    let swallowed = line.kept_back() - before;
    line.forget();
    Ok(Effect::of(
        swallowed > 0,
        format!("{swallowed} pieces were swallowed"),
        "nothing was sent",
    ))
}

fn lines<'a>(world: &'a World, fault: &Planned) -> Result<&'a Lines> {
    match fault.place {
        Place::Conductor(number) => world.conductors.get(number).map(|host| &host.lines),
        Place::Api(number) => world.apis.get(number).map(|host| &host.lines),
        Place::Servers => None,
    }
    .with_context(|| format!("no lines at {:?}", fault.place))
}

fn database_line<'a>(world: &'a World, fault: &Planned) -> Result<&'a ChaosProxy> {
    lines(world, fault)?
        .database
        .as_ref()
        .context("a file has no line")
}
