//! JSON in text columns, byte for byte as Python's `json.dumps` writes it.
//!
//! `{"kube_tag": "v1.31.4", "note": "\u017c"}`: a blank after `,` and `:`, everything outside printable ASCII
//! escaped. Magnum compares some of these texts, and operators grep for them.
//!
//! Reading accepts any spacing and, as rows of old releases hold it, SQL NULL for "empty".

use std::io;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

use crate::error::DbError;
use magnum_common::model::StringMap;

struct PythonFormat;

impl Formatter for PythonFormat {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        let mut units = [0; 2];
        for c in text.chars() {
            if matches!(c, ' '..='~') {
                writer.write_all(&[c as u8])?;
            } else {
                for unit in c.encode_utf16(&mut units) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}

/// The text Python would write for a value.
pub fn to_text(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, PythonFormat));
    debug_assert!(
        written.is_ok(),
        "string maps, string lists and JSON values always serialize"
    );
    String::from_utf8(bytes).unwrap_or_default()
}

/// Where a value was read, for the error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub table: &'static str,
    pub column: &'static str,
    pub row: &'a str,
}

impl Place<'_> {
    /// The row's uuid, by which everything else names the row. Magnum's tables allow NULL, its code does not.
    pub(super) fn uuid(table: &'static str, id: i32, uuid: Option<String>) -> Result<String, DbError> {
        uuid.ok_or_else(|| {
            let (column, row) = ("uuid", &*id.to_string());
            Place { table, column, row }.corrupt("is NULL")
        })
    }

    pub(super) fn corrupt(self, detail: impl Into<String>) -> DbError {
        DbError::Corrupt {
            table: self.table,
            column: self.column,
            row: self.row.to_owned(),
            detail: detail.into(),
        }
    }

    fn parse(self, text: Option<&str>, kind: &str) -> Result<Option<Value>, DbError> {
        match text.map(str::trim) {
            None | Some("") => Ok(None),
            Some(text) => match serde_json::from_str(text) {
                Ok(Value::Null) => Ok(None),
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(self.corrupt(format!("expected a JSON {kind}: {error}"))),
            },
        }
    }
}

/// A column that holds an object of strings. Numbers and booleans become the strings Python would make.
pub(super) fn string_map(text: Option<&str>, place: Place<'_>) -> Result<StringMap, DbError> {
    match place.parse(text, "object")? {
        None => Ok(IndexMap::new()),
        Some(Value::Object(object)) => Ok(object
            .into_iter()
            .map(|(key, value)| (key, string(value)))
            .collect()),
        Some(_) => Err(place.corrupt("expected a JSON object, found another kind")),
    }
}

/// A column that holds an array of strings.
pub(super) fn string_list(text: Option<&str>, place: Place<'_>) -> Result<Vec<String>, DbError> {
    Ok(value_list(text, place)?.into_iter().map(string).collect())
}

/// A column that holds an array of anything.
pub(super) fn value_list(text: Option<&str>, place: Place<'_>) -> Result<Vec<Value>, DbError> {
    match place.parse(text, "array")? {
        None => Ok(Vec::new()),
        Some(Value::Array(array)) => Ok(array),
        Some(_) => Err(place.corrupt("expected a JSON array, found another kind")),
    }
}

fn string(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => to_text(&other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLACE: Place<'static> = Place {
        table: "cluster",
        column: "labels",
        row: "u-1",
    };

    #[test]
    fn texts_are_those_of_python() {
        assert_eq!(to_text(&json!({})), "{}");
        assert_eq!(to_text(&json!([])), "[]");
        assert_eq!(
            to_text(&json!({"b": "ż 雲 🚀", "a": [1, true, null, 1.5], "q": "\"\\\n\u{7f}\u{1}/"})),
            r#"{"b": "\u017c \u96f2 \ud83d\ude80", "a": [1, true, null, 1.5], "q": "\"\\\n\u007f\u0001/"}"#
        );
    }

    #[test]
    fn order_survives_a_round_trip_and_null_reads_as_empty() {
        let map = string_map(Some(r#"{"z":"1",  "a":"2"}"#), PLACE).unwrap();
        assert_eq!(to_text(&map), r#"{"z": "1", "a": "2"}"#);
        for empty in [None, Some(""), Some("null"), Some("{}")] {
            assert!(string_map(empty, PLACE).unwrap().is_empty());
        }
    }

    #[test]
    fn values_that_are_not_strings_become_the_strings_python_would_make() {
        let map = string_map(Some(r#"{"n": 3, "t": true, "x": null}"#), PLACE).unwrap();
        assert_eq!(map["n"], "3");
        assert_eq!(map["t"], "True");
        assert_eq!(map["x"], "");
    }

    #[test]
    fn a_value_of_the_wrong_kind_names_table_column_and_row() {
        for text in ["[]", "{\"a\": ", "3"] {
            let error = string_map(Some(text), PLACE).unwrap_err().to_string();
            assert!(
                error.starts_with("table cluster, column labels, row u-1: expected a JSON object"),
                "{error}"
            );
        }
        assert!(value_list(Some("{}"), PLACE).is_err());
    }
}
