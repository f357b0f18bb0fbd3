//! The end of a service's process, which does not wait for blocking work that hangs.
//!
//! Threads in the middle of a C library's call (a database that does not answer) stay behind when the runtime is shut down, and
//! must not hold the process; others end at that moment. Nor may the process end as others do then: what libraries have
//! registered for a process's end (the clean-up of cryptography and of database clients) frees what those threads still use or
//! free themselves, and a program that was told to stop ends by SIGABRT. The system takes back what they would free.

use std::io::Write as _;

/// Ends the process at once with this exit code, without clean-up by C libraries. What was printed is written first; traces
/// and all else that has to be sent, before it is called.
pub fn end_process(code: u8) -> ! {
    // Nobody is left whom an error could be told.
    let _ = std::io::stdout().flush();
    signal_hook::low_level::exit(code.into())
}
