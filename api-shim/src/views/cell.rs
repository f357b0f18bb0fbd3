//! A value on its way into an answer.
//!
//! It borrows what it shows: a list of a thousand resources is written without a tree of JSON before it, and a text
//! is copied once, into the answer.

use std::fmt;

use magnum_common::ids::{ClusterUuid, NodeGroupUuid, TemplateUuid};
use magnum_common::model::{StringMap, Timestamp};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::links::Links;

/// One value.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Cell<'a> {
    Null,
    Text(&'a str),
    Time(Timestamp),
    Integer(i64),
    Boolean(bool),
    Strings(&'a StringMap),
    Texts(Vec<&'a str>),
    Links(Links<'a>),
    /// What is rare enough to be a tree.
    Json(Value),
}

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Time(at) => serializer.collect_str(&Zoned(*at)),
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Boolean(is_so) => serializer.serialize_bool(*is_so),
            Self::Strings(map) => map.serialize(serializer),
            Self::Texts(texts) => texts.serialize(serializer),
            Self::Links(links) => links.serialize(serializer),
            Self::Json(value) => value.serialize(serializer),
        }
    }
}

/// ISO 8601 with the zone; microseconds only when there are some.
struct Zoned(Timestamp);

impl fmt::Display for Zoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = if self.0.and_utc().timestamp_subsec_micros() == 0 {
            "%Y-%m-%dT%H:%M:%S+00:00"
        } else {
            "%Y-%m-%dT%H:%M:%S%.6f+00:00"
        };
        self.0.format(format).fmt(f)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Cell<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a StringMap> for Cell<'a> {
    fn from(map: &'a StringMap) -> Self {
        Self::Strings(map)
    }
}

impl<'a> From<&'a Vec<String>> for Cell<'a> {
    fn from(texts: &'a Vec<String>) -> Self {
        Self::Texts(texts.iter().map(String::as_str).collect())
    }
}

impl<'a> From<Vec<&'a str>> for Cell<'a> {
    fn from(texts: Vec<&'a str>) -> Self {
        Self::Texts(texts)
    }
}

impl From<&Vec<Value>> for Cell<'_> {
    fn from(values: &Vec<Value>) -> Self {
        Self::Json(Value::Array(values.clone()))
    }
}

impl<'a> From<Links<'a>> for Cell<'a> {
    fn from(links: Links<'a>) -> Self {
        Self::Links(links)
    }
}

impl From<Value> for Cell<'_> {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

impl From<&Timestamp> for Cell<'_> {
    fn from(at: &Timestamp) -> Self {
        Self::Time(*at)
    }
}

macro_rules! from_numbers {
    ($($number:ty),*) => {$(
        impl From<&$number> for Cell<'_> {
            fn from(number: &$number) -> Self {
                Self::Integer(i64::from(*number))
            }
        }
    )*};
}
from_numbers!(i32, i64);

impl From<&bool> for Cell<'_> {
    fn from(is_so: &bool) -> Self {
        Self::Boolean(*is_so)
    }
}

macro_rules! from_ids {
    ($($id:ty),*) => {$(
        impl<'a> From<&'a $id> for Cell<'a> {
            fn from(id: &'a $id) -> Self {
                Self::Text(id.as_str())
            }
        }
    )*};
}
from_ids!(ClusterUuid, NodeGroupUuid, TemplateUuid);

/// Null where there is nothing. Not for every `T`: the compiler would look for options of options without end.
macro_rules! from_options {
    ($($value:ty),*) => {$(
        impl<'a> From<&'a Option<$value>> for Cell<'a> {
            fn from(value: &'a Option<$value>) -> Self {
                value.as_ref().map_or(Self::Null, Self::from)
            }
        }
    )*};
}
from_options!(String, i32, i64, bool, Timestamp);

impl<'a> From<Option<&'a str>> for Cell<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_have_a_zone_and_a_fraction_only_when_the_row_has_one() {
        let at = |text: &str| {
            let at = Timestamp::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").unwrap();
            serde_json::to_value(Cell::from(&Some(at))).unwrap()
        };
        assert_eq!(at("2026-01-02 03:04:05"), json!("2026-01-02T03:04:05+00:00"));
        assert_eq!(
            at("2026-01-02 03:04:05.5"),
            json!("2026-01-02T03:04:05.500000+00:00")
        );
        assert_eq!(Cell::from(&None::<Timestamp>), Cell::Null);
    }
}
