//! The Rust types of fields, and their wire values.

use serde_json::{Map, Value};

use magnum_common::error::{Exception, Fault};
use magnum_common::ids::{ClusterUuid, NodeGroupUuid, TemplateUuid};
use magnum_common::model::{ClusterStatus, HealthStatus, StringMap, Timestamp};
use magnum_common::secret::Secret;

/// A field's Rust type and its wire values.
pub trait WireValue: Sized {
    /// The wire value; null for an absent one.
    fn to_wire(&self) -> Value;

    /// From a coerced wire value.
    ///
    /// # Errors
    /// `ValueError` that names the field.
    fn from_wire(field: &str, value: &Value) -> Result<Self, Fault>;
}

fn unusable(field: &str, why: &str) -> Fault {
    Fault::new(Exception::ValueError, format!("Field {field} {why}"))
}

macro_rules! wire_texts {
    ($($type:ty, $read:expr, $make:expr;)*) => {
        $(impl WireValue for $type {
            fn to_wire(&self) -> Value {
                let read: fn(&$type) -> &str = $read;
                Value::from(read(self))
            }

            fn from_wire(field: &str, value: &Value) -> Result<Self, Fault> {
                let make: fn(&str) -> $type = $make;
                value.as_str().map(make).ok_or_else(|| unusable(field, "must be a string"))
            }
        })*
    };
}

wire_texts! {
    String, String::as_str, str::to_owned;
    Secret, Secret::expose, |text| Secret::new(text);
    ClusterUuid, ClusterUuid::as_str, |text| ClusterUuid::new(text);
    TemplateUuid, TemplateUuid::as_str, |text| TemplateUuid::new(text);
    NodeGroupUuid, NodeGroupUuid::as_str, |text| NodeGroupUuid::new(text);
}

macro_rules! wire_enums {
    ($($type:ty),*) => {
        $(impl WireValue for $type {
            fn to_wire(&self) -> Value {
                Value::from(self.as_str())
            }

            fn from_wire(field: &str, value: &Value) -> Result<Self, Fault> {
                value
                    .as_str()
                    .and_then(|text| text.parse().ok())
                    .ok_or_else(|| unusable(field, "has a value that is not in its list"))
            }
        })*
    };
}

wire_enums!(ClusterStatus, HealthStatus);

impl WireValue for i32 {
    fn to_wire(&self) -> Value {
        Value::from(*self)
    }

    fn from_wire(field: &str, value: &Value) -> Result<Self, Fault> {
        value
            .as_i64()
            .and_then(|number| Self::try_from(number).ok())
            .ok_or_else(|| unusable(field, "must be a number between -2147483648 and 2147483647"))
    }
}

impl WireValue for bool {
    fn to_wire(&self) -> Value {
        Value::Bool(*self)
    }

    fn from_wire(field: &str, value: &Value) -> Result<Self, Fault> {
        value
            .as_bool()
            .ok_or_else(|| unusable(field, "must be true or false"))
    }
}

impl WireValue for Timestamp {
    fn to_wire(&self) -> Value {
        Value::from(self.format("%Y-%m-%dT%H:%M:%SZ").to_string())
    }

    fn from_wire(field: &str, value: &Value) -> Result<Self, Fault> {
        value
            .as_str()
            .and_then(|text| chrono::DateTime::parse_from_rfc3339(text).ok())
            .map(|time| time.naive_utc())
            .ok_or_else(|| unusable(field, "must be a time"))
    }
}

/// Null reads as the empty map: the domain does not tell them apart, and rows never hold null here.
impl WireValue for StringMap {
    fn to_wire(&self) -> Value {
        let entries = self
            .iter()
            .map(|(key, value)| (key.clone(), Value::from(value.as_str())));
        Value::Object(entries.collect())
    }

    fn from_wire(field: &str, value: &Value) -> Result<Self, Fault> {
        let empty = Map::new();
        let entries = match value {
            Value::Null => &empty,
            Value::Object(entries) => entries,
            _ => return Err(unusable(field, "must be a map of strings")),
        };
        entries
            .iter()
            .map(|(key, value)| Ok((key.clone(), String::from_wire(field, value)?)))
            .collect()
    }
}

/// Null reads as the empty list.
impl WireValue for Vec<String> {
    fn to_wire(&self) -> Value {
        Value::Array(self.iter().map(|item| Value::from(item.as_str())).collect())
    }

    fn from_wire(field: &str, value: &Value) -> Result<Self, Fault> {
        match value {
            Value::Null => Ok(Self::new()),
            Value::Array(items) => items.iter().map(|item| String::from_wire(field, item)).collect(),
            _ => Err(unusable(field, "must be a list")),
        }
    }
}

/// Null reads as the empty list.
impl WireValue for Vec<Value> {
    fn to_wire(&self) -> Value {
        Value::Array(self.clone())
    }

    fn from_wire(field: &str, value: &Value) -> Result<Self, Fault> {
        match value {
            Value::Null => Ok(Self::new()),
            Value::Array(items) => Ok(items.clone()),
            _ => Err(unusable(field, "must be a list")),
        }
    }
}

impl<T: WireValue> WireValue for Option<T> {
    fn to_wire(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_wire)
    }

    fn from_wire(field: &str, value: &Value) -> Result<Self, Fault> {
        if value.is_null() {
            return Ok(None);
        }
        T::from_wire(field, value).map(Some)
    }
}
