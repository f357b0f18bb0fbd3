//! Leftovers of killed runs, swept when the next run starts.
//!
//! A run is dead when the process named in its `owner` file is gone. A process is known by its pid *and*
//! its start time: a pid alone may belong to a stranger by now, and a stranger is never signalled.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Kills the servers and removes the folders of every dead run below `base`.
pub fn sweep(base: &Path) -> Result<()> {
    for entry in fs::read_dir(base).with_context(|| format!("read {}", base.display()))? {
        let path = entry?.path();
        let is_run = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with("run-"));
        if is_run && !owner_lives(&path) {
            end_servers(&path);
            remove(&path);
        }
    }
    Ok(())
}

/// Start time of a process in clock ticks since boot, `None` when there is no such process.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the command in parentheses and may itself hold spaces and parentheses.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19)?.parse().ok()
}

fn owner_lives(run: &Path) -> bool {
    let Ok(owner) = fs::read_to_string(run.join("owner")) else {
        return false;
    };
    let mut fields = owner.split_whitespace();
    let (Some(pid), Some(started)) = (fields.next(), fields.next()) else {
        return false;
    };
    pid.parse()
        .ok()
        .and_then(start_time)
        .is_some_and(|now| now.to_string() == started)
}

fn end_servers(run: &Path) {
    let Ok(pids) = fs::read_dir(run.join("pids")) else {
        return;
    };
    for file in pids.flatten() {
        let Ok(text) = fs::read_to_string(file.path()) else {
            continue;
        };
        let mut fields = text.split_whitespace();
        let (Some(Ok(pid)), Some(Ok(started))) = (
            fields.next().map(str::parse::<u32>),
            fields.next().map(str::parse::<u64>),
        ) else {
            continue;
        };
        let stranger = start_time(pid).is_some_and(|now| now != started);
        if let (false, Ok(group)) = (stranger, i32::try_from(pid)) {
            // Gone already is as good as killed now.
            let _gone = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
    }
}

fn remove(run: &Path) {
    let outside = fs::read_to_string(run.join("folders")).unwrap_or_default();
    for folder in outside.lines().map(Path::new).chain([run]) {
        // The run's own guard may be at it in this moment; a folder that stays is tried again next time.
        let _kept = fs::remove_dir_all(folder);
    }
}
