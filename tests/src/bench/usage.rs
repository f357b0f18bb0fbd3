//! What a process uses, as the kernel counts it.

use std::time::Duration;

use anyhow::{Context as _, Result};

/// Kernel ticks per second, the unit of processor time under `/proc`.
const TICKS: f64 = 100.0;

/// Processor time used so far, of all threads. Children are not counted.
pub(super) fn cpu(pid: u32) -> Result<Duration> {
    used(&format!("/proc/{pid}/stat"))
}

/// Processor time that this thread has used so far.
///
/// # Errors
/// The kernel does not tell.
pub fn cpu_of_thread() -> Result<Duration> {
    used("/proc/thread-self/stat")
}

fn used(file: &str) -> Result<Duration> {
    let stat = std::fs::read_to_string(file)?;
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |index: usize| -> Result<f64> { Ok(fields.get(index).context("short stat")?.parse()?) };
    Ok(Duration::from_secs_f64((ticks(11)? + ticks(12)?) / TICKS))
}

/// Processor time used so far, children included: those that run, and those that have ended.
pub(super) fn cpu_of_tree(pid: u32) -> Result<Duration> {
    let mut ticks = 0.0;
    let mut waiting = vec![pid];
    while let Some(pid) = waiting.pop() {
        // A child that has ended meanwhile is in its parent's figures, now or a moment later.
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let used = fields.split_whitespace().skip(11).take(4);
        ticks += used.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>();
        waiting.extend(children(pid).unwrap_or_default());
    }
    Ok(Duration::from_secs_f64(ticks / TICKS))
}

/// Memory in use now, in MiB.
pub(super) fn rss_mib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}

/// Memory of a process and its children in MiB, pages that they share counted once (PSS).
pub(super) fn pss_mib_of_tree(pid: u32) -> Result<f64> {
    tree(pid).into_iter().map(pss_mib).sum()
}

/// Memory of a process in MiB, a part of each page that it shares.
pub(super) fn pss_mib(pid: u32) -> Result<f64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .context("no Pss")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}

/// The processes below this one, and it itself.
pub(super) fn tree(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children(*pid).unwrap_or_default());
        next += 1;
    }
    found
}

/// Processor time that the whole machine has used, of all processes, those that nobody waited for included.
pub(super) fn cpu_of_machine() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let all = stat.lines().next().context("no processors")?;
    // user, nice, system; idle and waiting; interrupts.
    let fields: Vec<f64> = all
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    let busy = [0, 1, 2, 5, 6].into_iter().filter_map(|index| fields.get(index));
    Ok(Duration::from_secs_f64(busy.sum::<f64>() / TICKS))
}

fn children(pid: u32) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread that has ended meanwhile has none.
        let children = std::fs::read_to_string(task?.path().join("children")).unwrap_or_default();
        found.extend(
            children
                .split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    Ok(found)
}

/// Processor time of several processes since a moment.
pub(super) struct Meter(Vec<(u32, Duration)>);

impl Meter {
    pub(super) fn start(pids: impl IntoIterator<Item = u32>) -> Result<Self> {
        pids.into_iter()
            .map(|pid| Ok((pid, cpu(pid)?)))
            .collect::<Result<_>>()
            .map(Self)
    }

    /// Microseconds per message, one figure for each process.
    pub(super) fn per_message(&self, messages: u64) -> Result<Vec<f64>> {
        self.0
            .iter()
            .map(|(pid, before)| {
                let used = cpu(*pid)?.saturating_sub(*before);
                Ok(used.as_secs_f64() * 1e6 / messages as f64)
            })
            .collect()
    }
}

/// The value below which a share of the others lies.
pub(super) fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len() as f64 * share) as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 0.5), Some(51.0));
        assert_eq!(percentile(&values, 0.99), Some(100.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn a_process_has_used_something() {
        assert!(rss_mib(std::process::id()).unwrap() > 0.1);
        assert_eq!(
            Meter::start([std::process::id()])
                .unwrap()
                .per_message(1)
                .unwrap()
                .len(),
            1
        );
    }
}
