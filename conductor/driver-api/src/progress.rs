//! How far a driver got, told while it works.

/// How far a driver got, in words for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What it is doing.
    pub text: String,
    /// 0 to 100, when the driver can tell.
    pub percent: Option<u8>,
}

/// Takes progress. Must return at once: a slow sink would slow the driver.
pub trait ProgressSink: Send + Sync {
    /// Takes one report; a later one replaces an earlier one.
    fn report(&self, progress: Progress);
}

/// A sink for callers that do not care.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl ProgressSink for NoProgress {
    fn report(&self, _progress: Progress) {}
}
