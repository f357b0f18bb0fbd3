//! Programs that may use nothing more: no descriptors, no processes, no room on the disk.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Effect, last};
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
    let usual = descriptors(pid)?;
    if set_descriptors(pid, 8).is_err() {
        return Ok(Effect::None("it was away".into()));
    }
    last(fault).await;
    set_descriptors(pid, usual).ok();
    let refused = host.log().matches(REFUSED).count() - before;
    let seen = format!("{refused} attempts to open something were refused");
    Ok(Effect::of(refused > 0, seen, "it opened nothing"))
}

/// What a process may open.
fn descriptors(pid: u32) -> Result<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits"))?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next());
    soft.context("no limit of descriptors")?
        .parse()
        .context("a limit")
}

fn set_descriptors(pid: u32, soft: u64) -> Result<()> {
    let mut command = Command::new("prlimit");
    command.args(["--pid", &pid.to_string(), &format!("--nofile={soft}:")]);
    let status = command.output().context("run prlimit")?.status;
    ensure!(status.success(), "prlimit: {status}");
    Ok(())
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
