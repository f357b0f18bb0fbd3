//! One attribute's value: its type, its bounds, its conversion.

use magnum_common::error::{Exception, Fault};
use num_bigint::Sign;
use serde_json::{Map, Value};

use super::{CLUSTER_NAME_PATTERN, Field, Kind, invalid};
use crate::validation::labels::check_size;
use crate::validation::python::{self, str_of, type_name};

const CLUSTER_NAME_MAX: usize = 242;

/// How strictly a value's type is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode<'a> {
    /// A create body, whose argument name and content the error texts quote.
    Convert(&'a str, &'a Value),
    /// An object after a patch.
    AsIs,
}

fn wrong_type(field: &Field, value: &Value, expected: &str) -> Fault {
    wrong_part(field, value, value, expected)
}

/// The value is told whole, of its part the type.
fn wrong_part(field: &Field, value: &Value, part: &Value, expected: &str) -> Fault {
    let got = type_name(part);
    invalid(
        field.name,
        value,
        &format!("Wrong type. Expected '{expected}', got '{got}'"),
    )
}

/// The value as the attribute has it, or why it cannot have it. Null stays null.
pub(super) fn typed(field: &Field, value: &Value, mode: Mode<'_>) -> Result<Value, Fault> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    match field.kind {
        Kind::Any => Ok(value.clone()),
        Kind::Text { min, max } => {
            length(field, text(field, value)?, min, max)?;
            Ok(value.clone())
        }
        Kind::Line { max } => {
            let line = text(field, value)?;
            length(field, line, 1, max)?;
            if line.contains(char::is_control) {
                let shown = Value::String(without_control(line));
                return Err(invalid(
                    field.name,
                    &shown,
                    "Value should not have control characters",
                ));
            }
            Ok(value.clone())
        }
        Kind::Plain { max } => {
            if !value.is_string() {
                return Err(wrong_type(field, value, "<class 'str'>"));
            }
            length(field, text(field, value)?, 0, max)?;
            Ok(value.clone())
        }
        Kind::ClusterName => {
            let name = text(field, value)?;
            length(field, name, 1, CLUSTER_NAME_MAX)?;
            if !is_cluster_name(name) {
                let reason = format!("Value should match the pattern {CLUSTER_NAME_PATTERN}");
                return Err(invalid(field.name, value, &reason));
            }
            Ok(value.clone())
        }
        Kind::Integer { min, max } => {
            let number = integer(field, value, mode)?;
            let bound = |text, bound| {
                invalid(
                    field.name,
                    value,
                    &format!("Value should be {text} or equal to {bound}"),
                )
            };
            if number < min {
                return Err(bound("greater", min));
            }
            if number > max {
                return Err(bound("lower", max));
            }
            Ok(number.into())
        }
        Kind::Boolean => boolean(field, value).map(Value::Bool),
        Kind::Choice(choices) => {
            let chosen = value.as_str().filter(|text| choices.contains(text));
            if chosen.is_none() {
                let mut choices = choices.to_vec();
                choices.sort_unstable();
                let reason = format!("Value should be one of: {}", choices.join(", "));
                return Err(invalid(field.name, value, &reason));
            }
            Ok(value.clone())
        }
        Kind::Uuid => match value.as_str().and_then(|text| uuid::Uuid::try_parse(text).ok()) {
            Some(uuid) => Ok(Value::String(uuid.to_string())),
            None => Err(Fault::new(
                Exception::InvalidUUID,
                format!("Expected a uuid but received {}.", str_of(value)),
            )),
        },
        Kind::Labels => labels(field, value, mode),
        Kind::Strings => {
            let texts = dictionary(field, value, value, mode)?.values();
            only(field, value, texts, Value::is_string)?;
            check_size(field.name, value)?;
            Ok(value.clone())
        }
        Kind::ListOfStrings => {
            // Nulls pass the types, as in Magnum; the reader of the list reports what is missing there.
            let items = list(field, value, mode, "[{<class 'str'>: <class 'str'>}]")?;
            for item in items.iter().filter(|item| !item.is_null()) {
                let texts = dictionary(field, value, item, mode)?.values();
                only(field, value, texts, |text| text.is_string() || text.is_null())?;
            }
            check_size(field.name, value)?;
            Ok(value.clone())
        }
        Kind::Texts => {
            let items = list(field, value, mode, "[<class 'str'>]")?;
            only(field, value, items, Value::is_string)?;
            Ok(value.clone())
        }
        Kind::DnsServers => {
            let servers = text(field, value)?;
            if servers.contains('/') {
                let reason = "IPAddress() does not support netmasks or subnet prefixes! See documentation for details.";
                return Err(invalid(field.name, value, reason));
            }
            let valid = |server: &str| server.trim().parse::<std::net::Ipv4Addr>().is_ok();
            if !servers.split(',').all(valid) {
                return Err(Fault::new(
                    Exception::InvalidDNS,
                    format!(
                        "Expected a single dns address or comma separated dns list, but received {servers}."
                    ),
                ));
            }
            length(field, servers, 1, 255)?;
            Ok(value.clone())
        }
    }
}

/// `part` is the attribute's value, or an element of it.
fn dictionary<'a>(
    field: &Field,
    value: &Value,
    part: &'a Value,
    mode: Mode<'_>,
) -> Result<&'a Map<String, Value>, Fault> {
    match (python::dictionary(part), mode) {
        (Some(map), _) => Ok(map),
        (_, Mode::Convert(argument, body)) => {
            let reason = format!("Value not a valid dict: {}", str_of(part));
            Err(invalid(argument, body, &reason))
        }
        (_, Mode::AsIs) => Err(wrong_part(field, value, part, "{<class 'str'>: <class 'str'>}")),
    }
}

fn list<'a>(field: &Field, value: &'a Value, mode: Mode<'_>, expected: &str) -> Result<&'a [Value], Fault> {
    match (value, mode) {
        (Value::Array(items), _) => Ok(items),
        (_, Mode::Convert(argument, body)) => {
            let reason = format!("Value not a valid list: {}", str_of(value));
            Err(invalid(argument, body, &reason))
        }
        (_, Mode::AsIs) => Err(wrong_type(field, value, expected)),
    }
}

/// Refuses what does not fit inside of a list or dictionary of texts; `whole` is the attribute's value.
fn only<'a>(
    field: &Field,
    whole: &Value,
    inner: impl IntoIterator<Item = &'a Value>,
    fits: fn(&Value) -> bool,
) -> Result<(), Fault> {
    match inner.into_iter().find(|value| !fits(value)) {
        None => Ok(()),
        Some(other) => Err(wrong_part(field, whole, other, "<class 'str'>")),
    }
}

fn text<'a>(field: &Field, value: &'a Value) -> Result<&'a str, Fault> {
    let text = value
        .as_str()
        .ok_or_else(|| invalid(field.name, value, "Value should be string"))?;
    if text.contains('\0') {
        // PostgreSQL cannot store it, and nothing that a text names has one.
        let shown = Value::String(text.replace('\0', "\\x00"));
        return Err(invalid(
            field.name,
            &shown,
            "Value should not have a NUL character",
        ));
    }
    Ok(text)
}

/// The text with its control characters in words, since the refusal is read in one line, too.
fn without_control(text: &str) -> String {
    let shown = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

fn length(field: &Field, text: &str, min: usize, max: usize) -> Result<(), Fault> {
    let characters = text.chars().count();
    let (word, bound) = if characters < min {
        ("minimum", min)
    } else if characters > max {
        ("maximum", max)
    } else {
        return Ok(());
    };
    let reason = format!("Value should have a {word} character requirement of {bound}");
    Err(invalid(field.name, &Value::String(text.to_owned()), &reason))
}

fn is_cluster_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

fn integer(field: &Field, value: &Value, mode: Mode<'_>) -> Result<i64, Fault> {
    // Larger than 64 bits is larger, or smaller, than every bound.
    if let Some(digits) = python::large_integer(value) {
        return Ok(saturated(digits.starts_with('-')));
    }
    match (value, mode) {
        (Value::Number(number), _) if number.is_i64() || number.is_u64() => {
            Ok(number.as_i64().unwrap_or(i64::MAX))
        }
        // Magnum cuts the fraction off.
        (Value::Number(number), Mode::Convert(..)) =>
        {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "saturates, and bounds are checked next"
            )]
            Ok(number.as_f64().map_or(i64::MAX, |float| float.trunc() as i64))
        }
        (Value::String(text), Mode::Convert(argument, body)) => match python::whole_number(text) {
            Some(number) => {
                let is_negative = number.sign() == Sign::Minus;
                Ok(number.try_into().unwrap_or_else(|_| saturated(is_negative)))
            }
            None => Err(invalid(argument, body, &python::no_whole_number(value))),
        },
        (Value::Array(_) | Value::Object(_), Mode::Convert(argument, body)) => {
            let reason = format!("{} should be a whole number", field.name);
            Err(invalid(argument, body, &reason))
        }
        _ => Err(wrong_type(field, value, "<class 'int'>")),
    }
}

fn saturated(is_negative: bool) -> i64 {
    if is_negative { i64::MIN } else { i64::MAX }
}

const TRUE_WORDS: [&str; 6] = ["1", "on", "t", "true", "y", "yes"];
const FALSE_WORDS: [&str; 6] = ["0", "f", "false", "n", "no", "off"];

/// A boolean as oslo reads it strictly: the words in any case, 0 and 1.
pub fn boolean_of(value: &Value) -> Option<bool> {
    if let Value::Bool(value) = value {
        return Some(*value);
    }
    let word = match value {
        Value::String(text) => text.trim().to_ascii_lowercase(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    if TRUE_WORDS.contains(&word.as_str()) {
        Some(true)
    } else {
        FALSE_WORDS.contains(&word.as_str()).then_some(false)
    }
}

fn boolean(field: &Field, value: &Value) -> Result<bool, Fault> {
    boolean_of(value).ok_or_else(|| {
        let mut words = [TRUE_WORDS, FALSE_WORDS].concat();
        words.sort_unstable();
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let reason = format!("Unrecognized value, acceptable values are: {}", words.join(", "));
        invalid(field.name, value, &reason)
    })
}

/// What Magnum calls the type of labels.
const LABELS: &str = "{<class 'str'>: <class 'str'> | <class 'int'> | <class 'bool'> | <class 'float'>}";

fn labels(field: &Field, value: &Value, mode: Mode<'_>) -> Result<Value, Fault> {
    let Some(labels) = python::dictionary(value) else {
        return Err(match mode {
            Mode::Convert(argument, body) => {
                let reason = format!("Value not a valid dict: {}", str_of(value));
                invalid(argument, body, &reason)
            }
            Mode::AsIs => wrong_type(field, value, LABELS),
        });
    };
    let mut stored = Map::new();
    for (key, label) in labels {
        if label.is_null() || label.is_array() || python::dictionary(label).is_some() {
            let reason = format!(
                "Wrong type. Expected '(<class 'str'>, <class 'int'>, <class 'bool'>, <class 'float'>)', got '{}'",
                type_name(label)
            );
            return Err(invalid(field.name, value, &reason));
        }
        stored.insert(key.clone(), Value::String(str_of(label)));
    }
    check_size(field.name, &stored)?;
    Ok(Value::Object(stored))
}
