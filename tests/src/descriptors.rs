//! How many descriptors a running program may have: read and set from outside, so that it can open nothing for a while.
//!
//! What is open stays so, whatever the limit.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// A limit below what any of our programs has open: everything that is opened from now on is refused.
pub const NONE_MORE: u64 = 8;

/// How many this process may have; an error when it has ended.
pub fn limit(pid: u32) -> Result<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits"))?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next());
    soft.context("no limit of descriptors")?
        .parse()
        .context("a limit")
}

/// Sets it; an error when the process has ended.
pub fn set_limit(pid: u32, soft: u64) -> Result<()> {
    let mut command = Command::new("prlimit");
    command.args(["--pid", &pid.to_string(), &format!("--nofile={soft}:")]);
    let status = command.output().context("run prlimit")?.status;
    ensure!(status.success(), "prlimit: {status}");
    Ok(())
}
