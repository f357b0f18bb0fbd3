//! Standard error of a call in the conductor's log, within bounds.

use crate::Secrets;

/// Lines of standard error that are logged for one call.
pub const MAX_LOGGED: usize = 1000;
/// Bytes of one line of standard error; longer ones are cut.
pub const MAX_ERROR_LINE: usize = 4 << 10;

/// How important a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Level {
    /// An error.
    Error,
    /// A warning.
    Warning,
    /// Neither.
    #[default]
    Info,
    /// For those who look for a fault.
    Debug,
}

impl Level {
    /// Splits a line with the syslog level in front, as sd-daemon(3) has it (`<4>disk is almost full`), into both. A line
    /// without one is [`Level::Info`].
    pub fn of_line(line: &str) -> (Self, &str) {
        let mut bytes = line.bytes();
        let level = match (bytes.next(), bytes.next(), bytes.next()) {
            (Some(b'<'), Some(b'0'..=b'3'), Some(b'>')) => Self::Error,
            (Some(b'<'), Some(b'4'), Some(b'>')) => Self::Warning,
            (Some(b'<'), Some(b'5' | b'6'), Some(b'>')) => Self::Info,
            (Some(b'<'), Some(b'7'), Some(b'>')) => Self::Debug,
            _ => return (Self::Info, line),
        };
        (level, line.get(3..).unwrap_or_default())
    }
}

/// Takes the lines of one call, in the span of that call.
#[derive(Debug, Default)]
pub struct StderrLog {
    secrets: Secrets,
    lines: usize,
    last_line: Option<String>,
}

impl StderrLog {
    /// With these secrets masked.
    pub fn new(secrets: Secrets) -> Self {
        Self {
            secrets,
            ..Self::default()
        }
    }

    /// Logs a line. Empty lines are left out, and those after [`MAX_LOGGED`].
    pub fn record(&mut self, level: Level, line: &str) {
        let line = self.secrets.mask(line);
        if line.trim().is_empty() {
            return;
        }
        self.lines += 1;
        if self.lines <= MAX_LOGGED {
            match level {
                Level::Error => tracing::error!("driver: {line}"),
                Level::Warning => tracing::warn!("driver: {line}"),
                Level::Info => tracing::info!("driver: {line}"),
                Level::Debug => tracing::debug!("driver: {line}"),
            }
        } else if self.lines == MAX_LOGGED + 1 {
            tracing::warn!(
                "the driver writes more than {MAX_LOGGED} lines to standard error; the rest is left out"
            );
        }
        self.last_line = Some(line);
    }

    /// The secrets that are masked.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The last line, with its secrets masked.
    pub fn last_line(&self) -> Option<&str> {
        self.last_line.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_taken_off_its_line() {
        assert_eq!(Level::of_line("<3>x"), (Level::Error, "x"));
        assert_eq!(Level::of_line("<4>"), (Level::Warning, ""));
        assert_eq!(Level::of_line("<7>é"), (Level::Debug, "é"));
        for plain in ["", "<", "<9>x", "<6x", "é<6>", "Traceback"] {
            assert_eq!(Level::of_line(plain), (Level::Info, plain));
        }
    }
}
