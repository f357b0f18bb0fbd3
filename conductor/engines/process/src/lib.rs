//! What engines have in common that start processes.
//!
//! | module | topic |
//! |---|---|
//! | [`guard`] | the small process between the conductor and a program |
//! | `lines` | lines from a pipe within bounds |
//! | `run` | one run of a program under a guard |
//! | `secrets` | texts that are masked in whatever a process writes |
//! | `stderr_log` | standard error of a call in the conductor's log |
//! | `timing` | how a conductor and the guards of its processes keep time |

pub mod guard;
mod lines;
mod run;
mod secrets;
mod stderr_log;
mod timing;

pub use lines::{Lines, TooMuch};
pub use run::{End, Listener, MAX_LINE, MAX_OUTPUT, Run};
pub use secrets::Secrets;
pub use stderr_log::{Level, MAX_ERROR_LINE, MAX_LOGGED, StderrLog};
pub use timing::GuardTiming;
