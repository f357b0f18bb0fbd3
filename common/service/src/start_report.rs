//! What a service has reached at its start, and as whom: one block of its log, for the person who has started it.

/// The block, line by line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartReport(Vec<Line>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    what: &'static str,
    text: String,
    is_missing: bool,
}

impl StartReport {
    /// Something is there: where, and as whom.
    pub fn reached(&mut self, what: &'static str, text: impl Into<String>) {
        self.add(what, text.into(), false);
    }

    /// Something is not there, and why: a warning, which says what to do.
    pub fn missing(&mut self, what: &'static str, text: impl Into<String>) {
        self.add(what, text.into(), true);
    }

    fn add(&mut self, what: &'static str, text: String, is_missing: bool) {
        self.0.push(Line {
            what,
            text,
            is_missing,
        });
    }

    /// Logs the block.
    pub fn log(&self) {
        for line in &self.0 {
            if line.is_missing {
                tracing::warn!("{}: {}", line.what, line.text);
            } else {
                tracing::info!("{}: {}", line.what, line.text);
            }
        }
    }
}
