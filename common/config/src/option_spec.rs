//! One row of the option table: what an option is called, what it is for, and its default.

/// The name of an option: section and key.
pub(super) type Key = (String, String);

/// One option as documentation sees it.
#[derive(Debug, Clone)]
pub struct OptionSpec {
    /// The section as written in the file; `DEFAULT` for the first one.
    pub section: &'static str,
    /// The key.
    pub name: &'static str,
    /// What it is for.
    pub help: &'static str,
    /// The form of its value, in words.
    pub form: String,
    /// What applies when it is not set; `None` when nothing does.
    pub default: DefaultText,
    /// Whether its value is masked wherever it is shown.
    pub secret: bool,
    /// Older places of it: section and key. They are read, with a warning.
    pub was: &'static [(&'static str, &'static str)],
    /// Whether Python Magnum does not know it (and therefore ignores it).
    pub ours: bool,
}

/// What is known of a default before the file is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefaultText {
    /// A value, as it would be written.
    Value(Option<String>),
    /// A value with substitutions, as it would be written.
    Template(&'static str),
    /// Found out on the machine: in words, and what it is on this one.
    Machine(&'static str, Option<String>),
}

impl OptionSpec {
    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("OS_{}__{}", self.section.to_uppercase(), self.name.to_uppercase())
    }
}
