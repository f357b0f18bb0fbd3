//! The types of a JSON body, attribute by attribute.
//!
//! A resource's attributes are a table of [`Field`]s. [`read`] takes the body of a create request: it refuses
//! unknown, read-only and missing attributes, converts what the contract converts (numeric texts, words for
//! booleans, label values to text) and checks lengths, ranges and choices. [`check`] takes a whole object, as
//! it is after a patch, and converts nothing but words for booleans.
//!
//! Explicit null passes as null: what it means is each attribute's business.

use magnum_common::error::{Exception, Fault};
use serde_json::{Map, Value};

use super::python::{repr, str_of, type_name};

/// One attribute of a body.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The key.
    pub name: &'static str,
    /// What its value must be.
    pub kind: Kind,
    /// Who sets it.
    pub access: Access,
}

impl Field {
    /// An attribute that a client may give.
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            access: Access::Optional,
        }
    }

    /// An attribute that a client must give.
    pub const fn mandatory(name: &'static str, kind: Kind) -> Self {
        Self {
            access: Access::Mandatory,
            ..Self::new(name, kind)
        }
    }

    /// An attribute that only the service sets.
    pub const fn read_only(name: &'static str) -> Self {
        Self {
            access: Access::ReadOnly,
            ..Self::new(name, Kind::Any)
        }
    }
}

/// Who sets an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Access {
    Optional,
    Mandatory,
    ReadOnly,
}

/// What an attribute's value must be.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Text of so many characters.
    Text {
        /// At least.
        min: usize,
        /// At most.
        max: usize,
    },
    /// A cluster's name: at most 242 characters, a letter first, then letters, digits, `_`, `.` and `-`.
    ClusterName,
    /// A whole number.
    Integer {
        /// At least.
        min: i64,
        /// At most; columns hold 32 bits.
        max: i64,
    },
    /// A boolean, or one of the words for it.
    Boolean,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A uuid.
    Uuid,
    /// A dictionary whose values are texts, numbers or booleans, and are kept as texts.
    Labels,
    /// IPv4 addresses, separated by commas.
    DnsServers,
    /// Taken as it is, because it is ignored or read-only.
    Any,
}

/// Text that goes to a column of 255 characters and must not be empty.
pub const NAME: Kind = Kind::Text { min: 1, max: 255 };
/// Text that goes to a column of 255 characters.
pub const FREE_TEXT: Kind = Kind::Text { min: 0, max: 255 };

/// A whole number of at least `min`.
pub const fn at_least(min: i64) -> Kind {
    Kind::Integer {
        min,
        max: i32::MAX as i64,
    }
}

const CLUSTER_NAME_MAX: usize = 242;
const CLUSTER_NAME_PATTERN: &str = "^[a-zA-Z][a-zA-Z0-9_.-]*$";

/// How strictly a value's type is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode<'a> {
    /// A create body, whose argument name and content the error texts quote.
    Convert(&'a str, &'a Value),
    /// An object after a patch.
    AsIs,
}

/// Reads a create body. `argument` is what the contract calls the whole body.
pub fn read(argument: &str, body: &Value, fields: &[Field]) -> Result<Map<String, Value>, Fault> {
    let Value::Object(given) = body else {
        return Err(invalid(argument, body, "Value not a valid object"));
    };
    refuse_unknown(argument, given, fields)?;
    let mut object = Map::new();
    for field in fields {
        match given.get(field.name) {
            Some(value) if field.access == Access::ReadOnly => {
                let shown =
                    Value::String(str_of(value).replacen('T', " ", usize::from(field.name.ends_with("_at"))));
                return Err(invalid(field.name, &shown, "Cannot set read only field."));
            }
            Some(value) => {
                let value = typed(field, value, Mode::Convert(argument, body))?;
                object.insert(field.name.to_owned(), value);
            }
            None if field.access == Access::Mandatory => {
                return Err(invalid(field.name, &Value::Null, "Mandatory field missing."));
            }
            None => {}
        }
    }
    Ok(object)
}

/// Checks an object as a patch has made it. What the patch left as it was `before` is not checked again: a row of
/// an older release may hold what is no longer allowed, and stays patchable. Attributes that are no [`Field`] are
/// left alone.
pub fn check(
    object: &mut Map<String, Value>,
    before: &Map<String, Value>,
    fields: &[Field],
) -> Result<(), Fault> {
    for field in fields.iter().filter(|field| field.access != Access::ReadOnly) {
        match object.get_mut(field.name) {
            Some(value) if before.get(field.name) != Some(value) => {
                *value = typed(field, value, Mode::AsIs)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn refuse_unknown(argument: &str, given: &Map<String, Value>, fields: &[Field]) -> Result<(), Fault> {
    let known = |key: &str| fields.iter().any(|field| field.name == key);
    let mut unknown: Vec<&str> = given
        .keys()
        .map(String::as_str)
        .filter(|key| !known(key))
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    unknown.sort_unstable();
    let plural = if unknown.len() == 1 { "" } else { "s" };
    Err(Fault::new(
        Exception::Invalid,
        format!(
            "Unknown attribute{plural} for argument {argument}: {}",
            unknown.join(", ")
        ),
    ))
}

/// The contract's text for a value that an attribute cannot have.
pub fn invalid(attribute: &str, value: &Value, reason: &str) -> Fault {
    Fault::new(
        Exception::Invalid,
        format!(
            "Invalid input for field/attribute {attribute}. Value: '{}'. {reason}",
            str_of(value)
        ),
    )
}

fn wrong_type(field: &Field, value: &Value, expected: &str) -> Fault {
    invalid(
        field.name,
        value,
        &format!("Wrong type. Expected '{expected}', got '{}'", type_name(value)),
    )
}

fn typed(field: &Field, value: &Value, mode: Mode<'_>) -> Result<Value, Fault> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    match field.kind {
        Kind::Any => Ok(value.clone()),
        Kind::Text { min, max } => {
            length(field, text(field, value)?, min, max)?;
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
        Kind::DnsServers => {
            let servers = text(field, value)?;
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

fn text<'a>(field: &Field, value: &'a Value) -> Result<&'a str, Fault> {
    value
        .as_str()
        .ok_or_else(|| invalid(field.name, value, "Value should be string"))
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
    match (value, mode) {
        (Value::Number(number), _) if number.is_i64() || number.is_u64() => {
            // Larger than 64 bits is larger than every bound.
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
        (Value::String(text), Mode::Convert(argument, body)) => text.trim().parse().map_err(|_| {
            let reason = format!("invalid literal for int() with base 10: {}", repr(value));
            invalid(argument, body, &reason)
        }),
        (Value::Array(_) | Value::Object(_), Mode::Convert(argument, body)) => {
            let reason = format!("{} should be a whole number", field.name);
            Err(invalid(argument, body, &reason))
        }
        _ => Err(wrong_type(field, value, "<class 'int'>")),
    }
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

fn labels(field: &Field, value: &Value, mode: Mode<'_>) -> Result<Value, Fault> {
    let Value::Object(labels) = value else {
        let reason = format!("Value not a valid dict: {}", str_of(value));
        return Err(match mode {
            Mode::Convert(argument, body) => invalid(argument, body, &reason),
            Mode::AsIs => invalid(field.name, value, &reason),
        });
    };
    let mut stored = Map::new();
    for (key, label) in labels {
        if matches!(label, Value::Null | Value::Array(_) | Value::Object(_)) {
            let reason = format!(
                "Wrong type. Expected '(<class 'str'>, <class 'int'>, <class 'bool'>, <class 'float'>)', got '{}'",
                type_name(label)
            );
            return Err(invalid(field.name, value, &reason));
        }
        stored.insert(key.clone(), Value::String(str_of(label)));
    }
    Ok(Value::Object(stored))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIELDS: &[Field] = &[
        Field::new("name", NAME),
        Field::mandatory("image_id", NAME),
        Field::new(
            "port",
            Kind::Integer {
                min: 1024,
                max: 65535,
            },
        ),
        Field::new("public", Kind::Boolean),
        Field::new("server_type", Kind::Choice(&["vm", "bm"])),
        Field::new("labels", Kind::Labels),
        Field::new("dns", Kind::DnsServers),
        Field::new("uuid", Kind::Uuid),
        Field::new("cluster", Kind::ClusterName),
        Field::read_only("created_at"),
    ];

    fn refusal(extra: &Value) -> String {
        let mut body = json!({"image_id": "i"});
        let (Value::Object(all), Value::Object(extra)) = (&mut body, extra) else {
            unreachable!()
        };
        all.extend(extra.clone());
        read("thing", &body, FIELDS).unwrap_err().message
    }

    fn accepted(extra: &Value) -> Map<String, Value> {
        let Value::Object(mut body) = extra.clone() else {
            unreachable!()
        };
        body.insert("image_id".into(), "i".into());
        read("thing", &Value::Object(body), FIELDS).unwrap()
    }

    #[test]
    fn a_body_that_is_no_object_is_refused() {
        for body in [json!([]), json!("x"), json!(null), json!(1)] {
            let fault = read("thing", &body, FIELDS).unwrap_err();
            assert_eq!(fault.code(), 400);
            assert!(fault.message.contains("attribute thing."), "{}", fault.message);
        }
    }

    #[test]
    fn unknown_missing_and_read_only_attributes_are_named() {
        assert_eq!(
            refusal(&json!({"z": 1, "a": 2})),
            "Unknown attributes for argument thing: a, z"
        );
        assert_eq!(
            refusal(&json!({"z": 1})),
            "Unknown attribute for argument thing: z"
        );
        assert_eq!(
            read("thing", &json!({}), FIELDS).unwrap_err().message,
            "Invalid input for field/attribute image_id. Value: 'None'. Mandatory field missing."
        );
        assert_eq!(
            refusal(&json!({"created_at": "2026-01-01T00:00:00"})),
            "Invalid input for field/attribute created_at. Value: '2026-01-01 00:00:00'. Cannot set read only field."
        );
    }

    #[test]
    fn numbers_are_converted_and_bounded() {
        assert_eq!(accepted(&json!({"port": "6443"}))["port"], 6443);
        assert_eq!(accepted(&json!({"port": 2000.7}))["port"], 2000);
        assert!(refusal(&json!({"port": 80})).ends_with("'80'. Value should be greater or equal to 1024"));
        assert!(refusal(&json!({"port": 70000})).ends_with("Value should be lower or equal to 65535"));
        assert!(refusal(&json!({"port": 99_999_999_999_999_999_999_u128 as f64})).contains("lower or equal"));
        assert_eq!(
            refusal(&json!({"port": "x"})),
            "Invalid input for field/attribute thing. Value: '{'image_id': 'i', 'port': 'x'}'. invalid literal for \
             int() with base 10: 'x'"
        );
        assert!(refusal(&json!({"port": []})).contains("port should be a whole number"));
    }

    #[test]
    fn words_for_booleans_are_understood_and_others_refused() {
        for (word, truth) in [
            (json!("Yes"), true),
            (json!("off"), false),
            (json!(1), true),
            (json!("f"), false),
        ] {
            assert_eq!(accepted(&json!({"public": word}))["public"], truth);
        }
        assert!(refusal(&json!({"public": "maybe"})).contains("attribute public. Value: 'maybe'"));
        assert!(refusal(&json!({"public": {}})).contains("Unrecognized value"));
    }

    #[test]
    fn texts_have_lengths_and_types() {
        assert!(refusal(&json!({"name": ""})).ends_with("minimum character requirement of 1"));
        assert!(refusal(&json!({"name": "x".repeat(256)})).ends_with("maximum character requirement of 255"));
        assert!(refusal(&json!({"name": 7})).ends_with("Value: '7'. Value should be string"));
        assert_eq!(accepted(&json!({"name": null}))["name"], Value::Null);
    }

    #[test]
    fn choices_uuids_names_and_servers_are_checked() {
        assert!(refusal(&json!({"server_type": "lxc"})).ends_with("Value should be one of: bm, vm"));
        assert_eq!(refusal(&json!({"uuid": "x"})), "Expected a uuid but received x.");
        assert!(refusal(&json!({"cluster": "1abc"})).ends_with("pattern ^[a-zA-Z][a-zA-Z0-9_.-]*$"));
        assert!(refusal(&json!({"cluster": "a".repeat(243)})).ends_with("requirement of 242"));
        assert_eq!(accepted(&json!({"cluster": "a.b_c-1"}))["cluster"], "a.b_c-1");
        assert!(refusal(&json!({"dns": "8.8.8"})).contains("but received 8.8.8."));
        assert_eq!(
            accepted(&json!({"dns": "8.8.8.8, 1.1.1.1"}))["dns"],
            "8.8.8.8, 1.1.1.1"
        );
    }

    #[test]
    fn label_values_become_text_and_nested_ones_are_refused() {
        assert_eq!(
            accepted(&json!({"labels": {"n": 5, "t": true}}))["labels"],
            json!({"n": "5", "t": "True"})
        );
        assert!(refusal(&json!({"labels": {"a": null}})).contains("got '<class 'NoneType'>'"));
        assert!(refusal(&json!({"labels": {"a": []}})).contains("got '<class 'list'>'"));
        assert!(refusal(&json!({"labels": "x"})).contains("attribute thing. Value:"));
    }

    #[test]
    fn a_patched_object_is_checked_without_conversion_of_numbers() {
        let before = Map::from_iter([("port".to_owned(), json!(80))]);
        let patched = |value: Value| {
            let mut object = Map::from_iter([("port".to_owned(), value)]);
            check(&mut object, &before, FIELDS).map(|()| object["port"].clone())
        };
        assert_eq!(patched(json!(6443)), Ok(json!(6443)));
        assert!(patched(json!("6443")).unwrap_err().message.contains("Wrong type"));
        assert!(patched(json!(true)).is_err());
        assert_eq!(
            patched(json!(80)),
            Ok(json!(80)),
            "out of range, but not the patch's doing"
        );
    }
}
