//! From how a program ended and what it said, to what the call means: pure decisions and their words.

use std::time::Duration;

use magnum_driver_api::{DriverError, Reason};
use magnum_engine_process::guard::{CANNOT_START, REFUSED};
use magnum_engine_process::{End, MAX_OUTPUT};

/// EX_TEMPFAIL of sysexits.h: try again later.
pub const TRY_AGAIN: i32 = 75;

/// What is known after a run, besides the answers themselves.
pub struct Ended<'a> {
    /// How it ended.
    pub end: &'a End,
    /// Driver, version and program, for people.
    pub who: &'a str,
    /// The last line on standard error: for administrators, as all of it. A program that has something to say to the
    /// cluster's users writes an error on its standard output.
    pub last_stderr_line: Option<&'a str>,
    /// The limit it ran under.
    pub limit: Duration,
    /// Whether the program's file has gone since it was started: its package is being removed, or replaced.
    pub is_gone: bool,
}

impl Ended<'_> {
    /// Whether the way it ended is an error of its own, whatever it said before.
    ///
    /// # Errors
    /// See [`DriverError`].
    pub fn check(&self) -> Result<(), DriverError> {
        let who = self.who;
        match self.end {
            End::Exited(0) => Ok(()),
            End::Exited(TRY_AGAIN) => Err(DriverError::Transient(
                self.with_stderr_line(format!("{who} asks to be tried again later")),
            )),
            // Nothing of it is the driver's: this machine has no process for it, or the program is not here.
            End::Exited(code) if *code == i32::from(CANNOT_START) && self.was_refused() => Err(
                DriverError::NotHere(self.with_stderr_line(format!("{who} cannot be run here"))),
            ),
            // An interpreter that was started for it did not find it, or it did not find what stood beside it.
            End::Exited(code) if self.is_gone => Err(DriverError::NotHere(self.with_stderr_line(format!(
                "{who} is not on this host any more and failed with exit code {code}"
            )))),
            End::Exited(code) => Err(DriverError::Permanent(
                self.with_stderr_line(format!("{who} failed with exit code {code}")),
            )),
            // It may have been the machine: no memory, a shutdown. Tried again as often as the options say.
            End::Killed(signal) => Err(DriverError::Transient(
                self.with_stderr_line(format!("{who} was killed by signal {signal}")),
            )),
            End::TimedOut => Err(DriverError::Permanent(self.with_stderr_line(format!(
                "{who} did not end within {} seconds and was stopped",
                self.limit.as_secs_f64().ceil()
            )))),
            End::Cancelled => Err(DriverError::Cancelled),
            End::Garbage(what) => Err(DriverError::Permanent(Reason::internal(
                format!("{who} broke the protocol and was stopped"),
                format!("{who} broke the protocol and was stopped: {what}"),
            ))),
            End::Flood => Err(DriverError::Permanent(Reason::open(format!(
                "{who} printed more than the protocol allows ({} MiB, 1 MiB in a line) and was stopped",
                MAX_OUTPUT >> 20
            )))),
        }
    }

    /// The error for a program that ended well without saying how it went.
    pub fn silent(&self) -> DriverError {
        DriverError::Permanent(self.with_stderr_line(format!(
            "{} ended without a line that holds a result or an error",
            self.who
        )))
    }

    /// Whether the guard could not start the program.
    fn was_refused(&self) -> bool {
        self.last_stderr_line
            .is_some_and(|line| line.starts_with(REFUSED))
    }

    fn with_stderr_line(&self, text: String) -> Reason {
        match self.last_stderr_line {
            Some(line) => {
                let whole = format!("{text}: {line}");
                Reason::internal(text, whole)
            }
            None => Reason::open(text),
        }
    }
}

/// `text` for a message: quoted, and cut to a length that people read.
pub fn quote(text: &str) -> String {
    const SHOWN: usize = 200;
    if text.chars().count() <= SHOWN {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(SHOWN).collect();
    format!("{start:?}… ({} bytes)", text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use magnum_common::error::ErrorClass;

    fn check(end: &End) -> Result<(), DriverError> {
        Ended {
            end,
            who: "driver disk 1.0.0 (driver.py)",
            last_stderr_line: Some("no space"),
            limit: Duration::from_secs(60),
            is_gone: false,
        }
        .check()
    }

    #[test]
    fn each_end_has_its_class_and_reason() {
        for (end, class, words) in [
            (
                End::Exited(75),
                ErrorClass::Transient,
                "tried again later: no space",
            ),
            (End::Exited(3), ErrorClass::Permanent, "exit code 3: no space"),
            (End::Killed(9), ErrorClass::Transient, "signal 9"),
            (End::TimedOut, ErrorClass::Permanent, "within 60 seconds"),
            (
                End::Garbage("\"hi\"".into()),
                ErrorClass::Permanent,
                "protocol and was stopped: \"hi\"",
            ),
            (End::Flood, ErrorClass::Permanent, "16 MiB"),
            (End::Cancelled, ErrorClass::Transient, "cancelled"),
        ] {
            let error = check(&end).unwrap_err();
            assert_eq!(error.class(), class, "{end:?}");
            assert!(error.reason().whole().contains(words), "{error:?}");
            assert!(!error.to_string().contains("no space"), "{error}");
        }
        assert_eq!(check(&End::Exited(0)), Ok(()));
    }

    #[test]
    fn a_quoted_text_is_cut() {
        assert_eq!(quote("a\tb"), r#""a\tb""#);
        let long = quote(&"é".repeat(500));
        assert!(
            long.ends_with("… (1000 bytes)") && long.chars().count() < 220,
            "{long}"
        );
    }
}
