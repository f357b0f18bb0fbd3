//! Writing `magnum.conf` for programs under test.
//!
//! [`ConfigFile`] is plain text with sections, in the dialect an operator writes, on purpose: tests go
//! through the programs' own reading of it, not around it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use indexmap::IndexMap;

/// A configuration file under construction. Setting an option again replaces its value.
#[derive(Debug, Clone, Default)]
pub struct ConfigFile {
    sections: IndexMap<String, IndexMap<String, String>>,
}

impl ConfigFile {
    /// An empty file.
    pub fn new() -> Self {
        Self::default()
    }

    /// What every program under test needs: where the database and the broker are, and intervals short
    /// enough that a test does not wait for a minute's tick. Quorum queues, as the samples recommend: a
    /// broker restart must not lose what was confirmed.
    pub fn for_test(database: &str, transport: &str, state: &Path) -> Self {
        Self::new()
            .set("DEFAULT", "transport_url", transport)
            .set("DEFAULT", "state_path", state.display())
            .set("DEFAULT", "debug", true)
            .set("DEFAULT", "rpc_response_timeout", 30)
            .set("database", "connection", database)
            .set("oslo_messaging_rabbit", "rabbit_quorum_queue", true)
            .set("api", "auth_strategy", "noauth")
            .set(
                "conductor",
                "journal_key_file",
                state.join("journal.key").display(),
            )
            .set("conductor", "operation_lease", 3)
            .set("conductor", "operation_retry_initial", 1)
            .set("conductor", "operation_retry_max_interval", 3)
            .set("conductor", "status_poll_interval", 1)
            .set("conductor", "service_report_interval", 2)
            .set("conductor", "shutdown_timeout", 20)
    }

    /// Sets one option.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers have numbers and texts made on the spot"
    )]
    pub fn set(mut self, section: &str, option: &str, value: impl ToString) -> Self {
        self.sections
            .entry(section.to_owned())
            .or_default()
            .insert(option.to_owned(), value.to_string());
        self
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (section, options) in &self.sections {
            // Writing to a String cannot fail.
            writeln!(text, "[{section}]").ok();
            for (option, value) in options {
                // A line break in a value continues on an indented line.
                writeln!(text, "{option} = {}", value.replace('\n', "\n    ")).ok();
            }
            text.push('\n');
        }
        text
    }

    /// Writes the file and returns its path.
    pub fn write(&self, path: &Path) -> Result<PathBuf> {
        fs::write(path, self.text()).with_context(|| format!("write {}", path.display()))?;
        Ok(path.to_path_buf())
    }
}
