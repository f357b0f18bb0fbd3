//! What a field makes of a wire value: the same as oslo.versionedobjects' fields, so that a lenient sender gets
//! the same stored value from either kind of conductor.

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, SecondsFormat};
use serde_json::{Map, Value};

use magnum_common::error::{Exception, Fault};

use super::object::{self, VersionedObject};
use super::schema::{Default, Field, FieldKind};
use super::tables;

/// The value to keep for `field`, in the form in which it is sent again.
///
/// # Errors
/// `ValueError` that names the field; for a nested object also what decoding it says.
pub fn coerce(field: &Field, value: &Value) -> Result<Value, Fault> {
    if value.is_null() {
        return null(field);
    }
    match field.kind {
        FieldKind::Integer => integer(field.name, value).map(Value::from),
        FieldKind::Text | FieldKind::Uuid => text(field.name, value).map(Value::from),
        FieldKind::Boolean => Ok(Value::Bool(is_true(value))),
        FieldKind::DateTime => time(field.name, value).map(Value::from),
        FieldKind::DictOfText => dict(field.name, value),
        FieldKind::ListOfText => list(field.name, value),
        FieldKind::ListOfDicts => list_of_dicts(field.name, value),
        FieldKind::Enum(allowed) => one_of(field.name, allowed, value),
        FieldKind::Object(class) => nested(field.name, class, value),
    }
}

fn invalid(message: String) -> Fault {
    Fault::new(Exception::ValueError, message)
}

fn null(field: &Field) -> Result<Value, Fault> {
    match field.default {
        _ if field.nullable => Ok(Value::Null),
        Default::Integer(number) => Ok(Value::from(number)),
        Default::Boolean(flag) => Ok(Value::Bool(flag)),
        Default::None => Err(cannot_be_null(field.name)),
    }
}

fn cannot_be_null(name: &str) -> Fault {
    invalid(format!("Field `{name}' cannot be None"))
}

fn integer(name: &str, value: &Value) -> Result<i64, Fault> {
    let refuse = || {
        invalid(format!(
            "A whole number is required in field {name}, not {}",
            shown(value)
        ))
    };
    match value {
        Value::Bool(flag) => Ok(i64::from(*flag)),
        Value::Number(number) => number
            .as_i64()
            .or_else(|| number.as_f64().and_then(truncated))
            .ok_or_else(refuse),
        // Python's int() takes blanks around and underscores between digits.
        Value::String(text) => text.trim().replace('_', "").parse().map_err(|_| refuse()),
        _ => Err(refuse()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn truncated(number: f64) -> Option<i64> {
    // Beyond 2^53 a float is no longer exact, and no column is as large.
    (number.abs() < 9.0e15).then_some(number as i64)
}

fn text(name: &str, value: &Value) -> Result<String, Fault> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(true) => Ok("True".to_owned()),
        Value::Bool(false) => Ok("False".to_owned()),
        Value::Number(number) if number.is_f64() => Ok(number.as_f64().map(python_float).unwrap_or_default()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null => Err(cannot_be_null(name)),
        Value::Array(_) | Value::Object(_) => Err(invalid(format!(
            "A string is required in field {name}, not {}",
            shown(value)
        ))),
    }
}

/// Python's `str()` of a float: shortest digits, exponent form below 1e-4 and from 1e16 on, two exponent digits.
fn python_float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{number}");
        if plain.contains('.') {
            plain
        } else {
            format!("{plain}.0")
        }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.abs())
    }
}

/// Python's truthiness. Note that the text "false" is true.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
    }
}

/// ISO 8601 in, `YYYY-MM-DDTHH:MM:SS` with `Z` or the given offset out; fractions are cut, no zone means UTC.
fn time(name: &str, value: &Value) -> Result<String, Fault> {
    let parsed = value.as_str().and_then(parse_time);
    match parsed {
        Some(time) => Ok(time.to_rfc3339_opts(SecondsFormat::Secs, true)),
        None => Err(invalid(format!(
            "A time like 2026-01-02T03:04:05Z is required in field {name}, not {}",
            shown(value)
        ))),
    }
}

fn parse_time(text: &str) -> Option<DateTime<FixedOffset>> {
    const WITH_ZONE: &[&str] = &[
        "%Y-%m-%dT%H:%M:%S%.f%#z",
        "%Y-%m-%d %H:%M:%S%.f%#z",
        "%Y-%m-%dT%H:%M%#z",
        "%Y%m%dT%H%M%S%.f%#z",
    ];
    const WITHOUT_ZONE: &[&str] = &[
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M",
        "%Y%m%dT%H%M%S%.f",
    ];
    let text = text.trim();
    let zoned = WITH_ZONE
        .iter()
        .find_map(|format| DateTime::parse_from_str(text, format).ok());
    let naive = || {
        WITHOUT_ZONE
            .iter()
            .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
            .or_else(|| {
                NaiveDate::parse_from_str(text, "%Y-%m-%d")
                    .ok()
                    .and_then(|day| day.and_hms_opt(0, 0, 0))
            })
            .map(|time| time.and_utc().fixed_offset())
    };
    zoned.or_else(naive)
}

fn dict(name: &str, value: &Value) -> Result<Value, Fault> {
    let Value::Object(entries) = value else {
        return Err(invalid(format!(
            "A map of strings is required in field {name}, not {}",
            shown(value)
        )));
    };
    let mut kept = Map::new();
    for (key, value) in entries {
        kept.insert(key.clone(), Value::from(text(&format!("{name}[{key}]"), value)?));
    }
    Ok(Value::Object(kept))
}

fn list(name: &str, value: &Value) -> Result<Value, Fault> {
    let items = items(name, value)?;
    let kept: Result<Vec<Value>, Fault> = items
        .iter()
        .enumerate()
        .map(|(index, item)| text(&format!("{name}[{index}]"), item).map(Value::from))
        .collect();
    kept.map(Value::Array)
}

fn list_of_dicts(name: &str, value: &Value) -> Result<Value, Fault> {
    let items = items(name, value)?;
    for (index, item) in items.iter().enumerate() {
        if !item.is_object() {
            return Err(invalid(format!(
                "A map is required in field {name}[{index}], not {}",
                shown(item)
            )));
        }
    }
    Ok(value.clone())
}

fn items<'a>(name: &str, value: &'a Value) -> Result<&'a [Value], Fault> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err(invalid(format!(
            "A list is required in field {name}, not {}",
            shown(value)
        ))),
    }
}

fn one_of(name: &str, allowed: &[&str], value: &Value) -> Result<Value, Fault> {
    match value.as_str() {
        Some(text) if allowed.contains(&text) => Ok(value.clone()),
        _ => {
            let given = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Err(invalid(format!(
                "Field value {given} is invalid in field {name}, use one of: {}",
                allowed.join(", ")
            )))
        }
    }
}

fn nested(name: &str, class: &str, value: &Value) -> Result<Value, Fault> {
    // The class is looked at before decoding, so that a message cannot nest objects without end.
    let wrong = object::class_name(value).filter(|given| *given != class && tables::find(given).is_some());
    if let Some(given) = wrong {
        return Err(invalid(format!(
            "An object of type {class} is required in field {name}, not a {given}"
        )));
    }
    let object = VersionedObject::decode(value).map_err(|mut fault| {
        if fault.exception == Exception::ValueError {
            fault.message = format!("{} (in field {name})", fault.message);
        }
        fault
    })?;
    Ok(object.encode())
}

/// A value in an error: its kind and, for short ones, itself.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        // Secrets live in text fields, which take any string, so none gets here; but it can be long.
        Value::String(text) if text.chars().count() <= 40 => value.to_string(),
        Value::String(_) => "a long string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn required(kind: FieldKind) -> Field {
        Field::required("f", kind)
    }

    /// The right column was produced by the real classes (oslo.versionedobjects 3.12).
    #[test]
    fn values_are_coerced_as_in_python() {
        use FieldKind::{Boolean, DateTime, DictOfText, Integer, ListOfDicts, ListOfText, Text, Uuid};
        for (kind, sent, kept) in [
            (Integer, json!("5"), json!(5)),
            (Integer, json!(" 7 "), json!(7)),
            (Integer, json!("1_0"), json!(10)),
            (Integer, json!(5.7), json!(5)),
            (Integer, json!(true), json!(1)),
            (
                Integer,
                json!(1_000_000_000_000_i64),
                json!(1_000_000_000_000_i64),
            ),
            (Text, json!(5), json!("5")),
            (Text, json!(true), json!("True")),
            (Text, json!(1.5), json!("1.5")),
            (Text, json!(1.0), json!("1.0")),
            (Text, json!(1e20), json!("1e+20")),
            (Text, json!(1e-7), json!("1e-07")),
            (Uuid, json!("not-a-uuid"), json!("not-a-uuid")),
            (Boolean, json!("no"), json!(true)),
            (Boolean, json!(""), json!(false)),
            (Boolean, json!(0), json!(false)),
            (Boolean, json!(2), json!(true)),
            (Boolean, json!([]), json!(false)),
            (
                DateTime,
                json!("2026-01-02T03:04:05Z"),
                json!("2026-01-02T03:04:05Z"),
            ),
            (
                DateTime,
                json!("2026-01-02T03:04:05.999999Z"),
                json!("2026-01-02T03:04:05Z"),
            ),
            (
                DateTime,
                json!("2026-01-02T03:04:05.123456"),
                json!("2026-01-02T03:04:05Z"),
            ),
            (
                DateTime,
                json!("2026-01-02 03:04:05"),
                json!("2026-01-02T03:04:05Z"),
            ),
            (
                DateTime,
                json!("2026-01-02T03:04:05+02:00"),
                json!("2026-01-02T03:04:05+02:00"),
            ),
            (
                DateTime,
                json!("2026-01-02T03:04:05+02"),
                json!("2026-01-02T03:04:05+02:00"),
            ),
            (
                DateTime,
                json!("2026-01-02T03:04:05-0530"),
                json!("2026-01-02T03:04:05-05:30"),
            ),
            (DateTime, json!("20260102T030405Z"), json!("2026-01-02T03:04:05Z")),
            (
                DateTime,
                json!("2026-01-02T03:04Z"),
                json!("2026-01-02T03:04:00Z"),
            ),
            (DateTime, json!("2026-01-02"), json!("2026-01-02T00:00:00Z")),
            (
                DictOfText,
                json!({"a": 1, "b": true}),
                json!({"a": "1", "b": "True"}),
            ),
            (ListOfText, json!([1, true]), json!(["1", "True"])),
            (
                ListOfDicts,
                json!([{"a": {"b": [1]}}]),
                json!([{"a": {"b": [1]}}]),
            ),
        ] {
            assert_eq!(coerce(&required(kind), &sent), Ok(kept), "{kind:?} {sent}");
        }
    }

    #[test]
    fn invalid_value_is_refused_and_the_error_names_the_field() {
        use FieldKind::{DateTime, DictOfText, Enum, Integer, ListOfDicts, ListOfText, Object, Text};
        for (kind, sent) in [
            (Integer, json!("x")),
            (Integer, json!("60.5")),
            (Integer, json!([])),
            (Integer, json!(1e300)),
            (Text, json!([])),
            (Text, json!({})),
            (Text, json!(null)),
            (DateTime, json!("garbage")),
            (DateTime, json!(5)),
            (DictOfText, json!([])),
            (DictOfText, json!({"a": null})),
            (DictOfText, json!({"a": {}})),
            (ListOfText, json!(5)),
            (ListOfText, json!("abc")),
            (ListOfText, json!([null])),
            (ListOfDicts, json!(["x"])),
            (Enum(&["A"]), json!("a")),
            (Enum(&["A"]), json!(5)),
            (Object("ClusterTemplate"), json!(5)),
            (Object("ClusterTemplate"), json!({})),
        ] {
            let fault = coerce(&required(kind), &sent).unwrap_err();
            assert_eq!(fault.exception, Exception::ValueError, "{kind:?} {sent}");
            assert!(fault.message.contains('f'), "{}", fault.message);
        }
    }

    #[test]
    fn enumeration_error_starts_as_pythons_and_lists_the_values() {
        let field = Field::nullable("status", FieldKind::Enum(&["UP", "DOWN"]));
        assert_eq!(
            coerce(&field, &json!("SIDEWAYS")).unwrap_err().message,
            "Field value SIDEWAYS is invalid in field status, use one of: UP, DOWN"
        );
    }

    #[test]
    fn null_is_kept_defaulted_or_refused_by_the_field() {
        let nullable = Field::nullable("f", FieldKind::Integer);
        assert_eq!(coerce(&nullable, &Value::Null), Ok(Value::Null));
        let defaulted = Field::defaulted("f", FieldKind::Integer, Default::Integer(1));
        assert_eq!(coerce(&defaulted, &Value::Null), Ok(json!(1)));
        let flag = Field::defaulted("f", FieldKind::Boolean, Default::Boolean(true));
        assert_eq!(coerce(&flag, &Value::Null), Ok(json!(true)));
        let fault = coerce(&required(FieldKind::Boolean), &Value::Null).unwrap_err();
        assert_eq!(fault.message, "Field `f' cannot be None");
    }
}
