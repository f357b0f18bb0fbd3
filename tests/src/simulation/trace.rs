//! All that happened in a schedule, in order: as a hash, by which two runs are compared, and in words if somebody wants to read
//! them.

use std::fmt;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What has happened by now.
pub struct Trace {
    start: Instant,
    state: Mutex<State>,
}

struct State {
    hasher: DefaultHasher,
    lines: Option<Vec<String>>,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").finish_non_exhaustive()
    }
}

struct Hashed<'a>(&'a mut DefaultHasher);

impl fmt::Write for Hashed<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl Trace {
    /// Nothing has happened; time begins now. `in_words`: to be read afterwards.
    pub fn new(in_words: bool) -> Self {
        Self {
            start: Instant::now(),
            state: Mutex::new(State {
                hasher: DefaultHasher::new(),
                lines: in_words.then(Vec::new),
            }),
        }
    }

    /// Virtual time since the begin.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// `who` has done `what`.
    pub fn note(&self, who: &str, what: fmt::Arguments<'_>) {
        let at = self.elapsed();
        let mut state = self.lock();
        state.hasher.write_u128(at.as_nanos());
        state.hasher.write(who.as_bytes());
        // Nothing in there can fail.
        let _ = fmt::write(&mut Hashed(&mut state.hasher), what);
        if let Some(lines) = &mut state.lines {
            lines.push(format!("{:10.3} {who:12} {what}", at.as_secs_f64()));
        }
    }

    /// The hash of everything.
    pub fn hash(&self) -> u64 {
        self.lock().hasher.finish()
    }

    /// The words.
    pub fn lines(&self) -> Vec<String> {
        self.lock().lines.clone().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
