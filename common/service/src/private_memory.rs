//! Keeps the memory of a service from other processes of its user.
//!
//! Tokens, keys and passwords lie in it, and drivers' programs run as the same user: without this they could read
//! `/proc/PID/mem`, attach a debugger, or find a core dump. A program that is started does not inherit it. Root still can.

use std::io;

use nix::sys::prctl;

/// To be called before secrets are read.
///
/// # Errors
/// The system's.
pub fn keep_memory_private() -> io::Result<()> {
    prctl::set_dumpable(false).map_err(io::Error::from)
}

/// Whether it is kept.
pub(crate) fn is_memory_private() -> bool {
    prctl::get_dumpable() == Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_kept_from_other_processes_and_the_process_still_sees_itself() {
        keep_memory_private().unwrap();
        assert!(is_memory_private());
        assert!(std::fs::read_dir("/proc/self/fd").unwrap().count() > 2);
    }
}
