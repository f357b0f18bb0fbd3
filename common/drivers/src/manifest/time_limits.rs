//! How long calls may take: alike in the sections of engines whose calls are processes.

use std::time::Duration;

use super::reader::{Problems, Section};

/// Time limits of calls.
pub(super) struct TimeLimits {
    /// Of a call.
    pub(super) timeout: Duration,
    /// Of a look.
    pub(super) observe_timeout: Duration,
}

impl TimeLimits {
    /// Those of a section: whole seconds.
    pub(super) fn of(section: &Section<'_>, problems: &mut Problems<'_>) -> Self {
        let mut seconds = |key: &str, unsaid: u64| {
            let given = section.count(key, ("second", "seconds"), problems);
            Duration::from_secs(given.unwrap_or(unsaid))
        };
        Self {
            timeout: seconds("timeout", 3600),
            observe_timeout: seconds("observe_timeout", 60),
        }
    }
}
