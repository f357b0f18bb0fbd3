//! What a service has to do with the system and the person that run it: signals, what systemd is told, and what it says
//! that it has reached at its start.
//!
//! | signal | asks for |
//! |---|---|
//! | SIGTERM, SIGINT | the end: in order, and the second time at once |
//! | SIGHUP | a reload |
//! | SIGUSR2 | a report of what the process is doing, in its log |
//!
//! Guarantee: a service that makes its [`Signals`] first and starts in [`Signals::unless_stopped`] can be ended while it
//! starts, whatever it waits for. Not guaranteed: that work in blocking threads ends; the runtime has to be shut down
//! without waiting for them, and the process to end by [`end_process`].

pub mod systemd;

mod admin_hosts;
mod private_memory;
mod process_end;
mod process_report;
mod signals;
mod start_report;

pub use self::admin_hosts::AdminHosts;
pub use self::private_memory::keep_memory_private;
pub use self::process_end::end_process;
pub use self::process_report::ProcessReport;
pub use self::signals::{Asked, SignalError, Signals};
pub use self::start_report::StartReport;
