//! What engines have in common that start processes.
//!
//! | module | topic |
//! |---|---|
//! | `lines` | lines from a pipe within bounds |
//! | `secrets` | texts that are masked in whatever a process writes |
//! | `stderr_log` | standard error of a call in the conductor's log |
//! | `timing` | how a conductor and the guards of its processes keep time |

mod lines;
mod secrets;
mod stderr_log;
mod timing;

pub use lines::{Lines, TooMuch};
pub use secrets::Secrets;
pub use stderr_log::{Level, MAX_ERROR_LINE, MAX_LOGGED, StderrLog};
pub use timing::GuardTiming;
