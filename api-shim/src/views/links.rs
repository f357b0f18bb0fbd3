//! Links: where a resource is, with and without the version prefix.

use std::fmt;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

/// The pair of links of one resource: `self` under `/v1`, `bookmark` without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links<'a> {
    base: &'a str,
    path: String,
}

/// The links of what is at `path`, which has no leading slash.
pub fn pair(base: &str, path: String) -> Links<'_> {
    Links { base, path }
}

impl Serialize for Links<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { base, path } = self;
        [
            Link(format_args!("{base}/v1/{path}"), "self"),
            Link(format_args!("{base}/{path}"), "bookmark"),
        ]
        .serialize(serializer)
    }
}

/// Where it is, and what that is for.
struct Link<'a>(fmt::Arguments<'a>, &'static str);

impl Serialize for Link<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut link = serializer.serialize_struct("Link", 2)?;
        link.serialize_field("href", &self.0)?;
        link.serialize_field("rel", self.1)?;
        link.end()
    }
}
