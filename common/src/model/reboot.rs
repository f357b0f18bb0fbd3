//! How a node is restarted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::status::UnknownText;

/// How a node is restarted. The texts are on the wire and in journals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RebootType {
    /// Its operating system shuts down and starts again.
    Soft,
    /// It is switched off and on.
    Hard,
}

impl RebootType {
    /// The texts of all of them.
    pub const TEXTS: &[&str] = &[Self::Soft.as_str(), Self::Hard.as_str()];

    /// The text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Soft => "soft",
            Self::Hard => "hard",
        }
    }
}

impl fmt::Display for RebootType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for RebootType {
    type Err = UnknownText;

    fn from_str(text: &str) -> Result<Self, UnknownText> {
        match text {
            "soft" => Ok(Self::Soft),
            "hard" => Ok(Self::Hard),
            other => Err(UnknownText {
                kind: "RebootType",
                text: other.to_owned(),
            }),
        }
    }
}
