//! What is wrong with a configuration, and where.
//!
//! All problems are collected and reported together: an operator should not have to start the program once per
//! typing error. No message quotes the value of a secret option.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Nowhere: the default applies.
    Default,
    /// A line of a file.
    Line(Arc<PathBuf>, usize),
    /// A file as a whole.
    File(Arc<PathBuf>),
    /// An environment variable.
    Variable(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Line(file, line) => write!(f, "{}:{line}", file.display()),
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Variable(name) => write!(f, "environment {name}"),
        }
    }
}

/// One thing to tell the operator, as an error or as a warning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where it was found.
    pub place: Place,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Everything that makes a configuration unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has {} problem{}:\n{}", .0.len(), if .0.len() == 1 { "" } else { "s" }, lines(.0))]
pub struct ConfigErrors(pub Vec<Problem>);

fn lines(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(|problem| format!("  {problem}"))
        .collect::<Vec<_>>()
        .join("\n")
}
