//! The JSON of a request, read as Python's `json` reads it: whole numbers have any size, others are the nearest binary fraction.
//!
//! Read by jiter, which is made for Python's values: serde_json makes fractions of whole numbers beyond 64 bits unless every
//! `Value` of the program is another one. Not here: `NaN` and `Infinity`, which Python reads besides, and half a surrogate pair.

use jiter::{JsonErrorType, JsonValue};
use serde_json::{Map, Number, Value};

use crate::validation::python::{integer, is_reserved};

/// As many levels as everybody who reads the value later allows.
const MAX_DEPTH: usize = 127;

/// Reads it.
///
/// # Errors
/// What the client is told. The parser's own words would quote what was sent, and it may hold a secret.
pub fn read(bytes: &[u8]) -> Result<Value, &'static str> {
    let parsed = JsonValue::parse(bytes, false).map_err(|error| told(&error.error_type))?;
    value(&parsed, MAX_DEPTH)
}

const TOO_DEEP: &str = "Request is nested too deeply, at most 127 levels are read";
const TOO_LARGE: &str = "Request has a number that is too large";
const NO_JSON: &str = "Request is not in valid JSON format";

fn told(error: &JsonErrorType) -> &'static str {
    match error {
        JsonErrorType::RecursionLimitExceeded => TOO_DEEP,
        JsonErrorType::NumberOutOfRange => TOO_LARGE,
        _ => NO_JSON,
    }
}

/// `levels` are left for what is in it.
fn value(parsed: &JsonValue<'_>, levels: usize) -> Result<Value, &'static str> {
    let inner = || levels.checked_sub(1).ok_or(TOO_DEEP);
    Ok(match parsed {
        JsonValue::Null => Value::Null,
        JsonValue::Bool(boolean) => Value::Bool(*boolean),
        JsonValue::Int(number) => (*number).into(),
        JsonValue::BigInt(number) => integer(number),
        JsonValue::Float(float) => Value::Number(Number::from_f64(*float).ok_or(TOO_LARGE)?),
        JsonValue::Str(text) => Value::String(text.clone().into_owned()),
        JsonValue::Array(items) => {
            let levels = inner()?;
            let items = items.iter().map(|item| value(item, levels));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        JsonValue::Object(members) => {
            let levels = inner()?;
            let mut map = Map::new();
            for (key, member) in members.iter() {
                if is_reserved(key) {
                    return Err(NO_JSON);
                }
                // The last of several with one name counts, as in Python.
                map.insert(key.clone().into_owned(), value(member, levels)?);
            }
            Value::Object(map)
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::python::str_of;

    #[test]
    fn values_are_read_as_python_reads_them() {
        for (text, value) in [
            (
                r#" {"b": [1, -2.5, "ü", null, true], "a": {}} "#,
                json!({"b": [1, -2.5, "ü", null, true], "a": {}}),
            ),
            (r#"{"a": 1, "a": 2}"#, json!({"a": 2})),
            ("18446744073709551615", json!(u64::MAX)),
            (r#""\u00e9\ud83d\ude00""#, json!("é😀")),
        ] {
            assert_eq!(read(text.as_bytes()), Ok(value), "{text}");
        }
        for (text, printed) in [
            ("18446744073709551616", "18446744073709551616"),
            (
                "-1000000000000000000000000000000",
                "-1000000000000000000000000000000",
            ),
            ("-0", "0"),
            ("-0.0", "-0.0"),
            ("9007199254740993.0", "9007199254740992.0"),
            ("1e-7", "1e-07"),
            ("1E5", "100000.0"),
            ("[1e22]", "[1e+22]"),
            (r#"{"a": 18446744073709551616}"#, "{'a': 18446744073709551616}"),
        ] {
            assert_eq!(str_of(&read(text.as_bytes()).unwrap()), printed, "{text}");
        }
    }

    #[test]
    fn what_is_not_read_is_told_without_what_was_sent() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(read(nested(127).as_bytes()).is_ok());
        for deep in [nested(128), nested(100_000), "[".repeat(100_000)] {
            assert_eq!(read(deep.as_bytes()), Err(TOO_DEEP));
        }
        for large in ["1e999".to_owned(), format!("[-{}]", "9".repeat(5000))] {
            assert_eq!(read(large.as_bytes()), Err(TOO_LARGE), "{large}");
        }
        for text in [
            "",
            "{",
            "[1,]",
            "{} {}",
            "NaN",
            "[Infinity]",
            "01",
            "'a'",
            "\"a\nb\"",
            r#""\ud800""#,
            "\u{feff}{}",
            "{\"\\u0000whole number\": \"1\"}",
        ] {
            assert_eq!(read(text.as_bytes()), Err(NO_JSON), "{text}");
        }
        assert_eq!(read(b"\"\xff\""), Err(NO_JSON));
    }
}
