//! What a process uses, for who asks it by SIGUSR2. Magnum's services write a report then, with the stack of each thread;
//! here tasks have no stacks that could be shown, and what they work on is in their spans.

use std::fs;

use tokio::runtime::Handle;

use crate::private_memory::is_memory_private;

/// Threads, memory, descriptors and tasks of this process. A figure that the system does not tell is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessReport {
    /// Of the system.
    pub threads: u64,
    /// Of those, the ones that run tasks.
    pub workers: usize,
    /// Tasks that have not ended.
    pub tasks: usize,
    /// Tasks that could run and wait for a worker.
    pub waiting_tasks: usize,
    /// Memory in use, in KiB.
    pub resident_kib: u64,
    /// Open files, connections included.
    pub open_files: usize,
    /// Whether other processes of its user are kept from its memory.
    pub memory_is_private: bool,
}

impl ProcessReport {
    /// As it is now. Inside of a runtime.
    pub fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let metrics = Handle::current().metrics();
        Self {
            threads: figure(&status, "Threads:"),
            workers: metrics.num_workers(),
            tasks: metrics.num_alive_tasks(),
            waiting_tasks: metrics.global_queue_depth(),
            resident_kib: figure(&status, "VmRSS:"),
            open_files: fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
            memory_is_private: is_memory_private(),
        }
    }

    /// Writes it into the log.
    pub fn log(&self) {
        tracing::info!(
            threads = self.threads,
            workers = self.workers,
            tasks = self.tasks,
            waiting_tasks = self.waiting_tasks,
            resident_kib = self.resident_kib,
            open_files = self.open_files,
            memory_is_private = self.memory_is_private,
            "report: the process"
        );
    }
}

/// The number behind a name in `/proc/self/status`.
fn figure(status: &str, name: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_knows_what_it_uses() {
        let report = ProcessReport::now();
        assert!(
            report.threads >= 1 && report.resident_kib > 0 && report.open_files > 2,
            "{report:?}"
        );
        assert_eq!(report.workers, 1);
    }

    #[test]
    fn a_figure_that_is_not_told_is_none() {
        assert_eq!(figure("Threads:\t12\nVmRSS:\t  345 kB\n", "VmRSS:"), 345);
        assert_eq!(figure("Threads:\t12\n", "VmRSS:"), 0);
    }
}
