//! Programs that may use nothing more: no descriptors, no processes, no room on the disk.

use anyhow::{Context as _, Result};

use super::{Effect, last};
use crate::descriptors;
use crate::nemesis::plan::Planned;
use crate::nemesis::world::World;

/// Seen by what it logs.
pub(super) async fn no_descriptors(world: &World, fault: &Planned) -> Result<Effect> {
    const REFUSED: &str = "Too many open files";
    let host = world.conductor(fault.place)?;
    let Some(pid) = host.pid() else {
        return Ok(Effect::None("it was away".into()));
    };
    let before = host.log().matches(REFUSED).count();
    // It may have been killed by another fault by now, or later.
    let usual = descriptors::limit(pid)?;
    if descriptors::set_limit(pid, descriptors::NONE_MORE).is_err() {
        return Ok(Effect::None("it was away".into()));
    }
    last(fault).await;
    descriptors::set_limit(pid, usual).ok();
    let refused = host.log().matches(REFUSED).count() - before;
    let seen = format!("{refused} attempts to open something were refused");
    Ok(Effect::of(refused > 0, seen, "it opened nothing"))
}

pub(super) async fn no_processes(world: &World, fault: &Planned) -> Result<Effect> {
    let host = world.conductor(fault.place)?;
    let before = host.processes.refused();
    host.processes.fill()?;
    last(fault).await;
    host.processes.free()?;
    let refused = host.processes.refused() - before;
    Ok(Effect::of(
        refused > 0,
        format!("{refused} processes were refused"),
        "it started none",
    ))
}

/// Seen by what conductors log.
pub(super) async fn full_disk(world: &World, fault: &Planned) -> Result<Effect> {
    const REFUSED: &str = "disk is full";
    let disk = world.disk.as_ref().context("no file of rows")?;
    let refused = || {
        world
            .conductors
            .iter()
            .map(|host| host.log().matches(REFUSED).count())
            .sum()
    };
    let before: usize = refused();
    disk.fill()?;
    last(fault).await;
    disk.free()?;
    let refused = refused() - before;
    Ok(Effect::of(
        refused > 0,
        format!("{refused} writes were refused"),
        "nothing was written",
    ))
}
