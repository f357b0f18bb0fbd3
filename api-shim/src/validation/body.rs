//! The types of a JSON body, attribute by attribute.
//!
//! A resource's attributes are a table of [`Field`]s. [`read`] takes the body of a create request: it refuses
//! unknown, read-only and missing attributes, converts what the contract converts (numeric texts, words for
//! booleans, label values to text) and checks lengths, ranges and choices. [`check`] takes a whole object, as
//! it is after a patch, and converts nothing but words for booleans.
//!
//! Explicit null passes as null: what it means is each attribute's business.

mod value;

use std::fmt;

use magnum_common::error::{Exception, Fault};
use serde_json::{Map, Value};

use self::value::{Mode, typed};
use super::python::{dictionary, str_of};
use crate::microversion::Version;

/// One attribute of a body.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The key.
    pub name: &'static str,
    /// What its value must be.
    pub kind: Kind,
    /// Whether clients may set it.
    pub access: Access,
    /// The first version in which a client may give it.
    pub since: Version,
    /// What it means, where that is not what the glossary says of its name.
    pub about: Option<&'static str>,
}

impl Field {
    /// An attribute that a client may give.
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            access: Access::Optional,
            since: Version::MIN,
            about: None,
        }
    }

    /// An attribute that a client may give, and that is not looked at further.
    pub const fn ignored(name: &'static str, kind: Kind) -> Self {
        Self {
            access: Access::Ignored,
            ..Self::new(name, kind)
        }
    }

    /// The same from a version on.
    pub const fn since(self, since: Version) -> Self {
        Self { since, ..self }
    }

    /// The same with a meaning of its own.
    pub const fn about(self, about: &'static str) -> Self {
        Self {
            about: Some(about),
            ..self
        }
    }

    /// Whether a client may give it in this version.
    pub fn is_given(&self, version: Version) -> bool {
        self.access != Access::ReadOnly && version >= self.since
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
    Ignored,
}

/// What an attribute's value must be.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Text of so many characters.
    Text {
        /// Minimum.
        min: usize,
        /// Maximum.
        max: usize,
    },
    /// Text of 1 to so many characters, in one line: without control characters.
    Line {
        /// Maximum.
        max: usize,
    },
    /// Text of which the contract says nothing more; refused in other words when it is none.
    Plain {
        /// Characters at most: what its column holds.
        max: usize,
    },
    /// A cluster's name: at most 242 characters, a letter first, then letters, digits, `_`, `.` and `-`.
    ClusterName,
    /// A whole number.
    Integer {
        /// Minimum.
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
    /// A dictionary of texts.
    Strings,
    /// A list of dictionaries of texts. Nulls pass: what reads it says what is missing.
    ListOfStrings,
    /// A list of texts.
    Texts,
    /// IPv4 addresses, separated by commas.
    DnsServers,
    /// Taken as it is, because it is ignored or read-only.
    Any,
}

/// As the contract shows it in texts.
pub const CLUSTER_NAME_PATTERN: &str = "^[a-zA-Z][a-zA-Z0-9_.-]*$";
/// Text without control characters.
pub const ONE_LINE_PATTERN: &str = r"^[^\x00-\x1f\x7f-\x9f]*$";

/// In words, for documents.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { min, max } => write!(f, "text of {min} to {max} characters"),
            Self::Line { max } => {
                write!(
                    f,
                    "text of 1 to {max} characters, no control characters among them"
                )
            }
            Self::Plain { max: usize::MAX } => f.write_str("text"),
            Self::Plain { max } => write!(f, "text of at most {max} characters"),
            Self::ClusterName => write!(
                f,
                "text that matches `{CLUSTER_NAME_PATTERN}`, at most 242 characters"
            ),
            Self::Integer { min, max } if *max == i64::from(i32::MAX) => {
                write!(f, "whole number of at least {min}")
            }
            Self::Integer { min, max } => write!(f, "whole number from {min} to {max}"),
            Self::Boolean => f.write_str("true or false"),
            Self::Choice(choices) => write!(f, "one of `{}`", choices.join("`, `")),
            Self::Uuid => f.write_str("uuid"),
            Self::Labels => f.write_str("dictionary of texts, numbers and booleans"),
            Self::Strings => f.write_str("dictionary of texts"),
            Self::ListOfStrings => f.write_str("list of dictionaries of texts"),
            Self::Texts => f.write_str("list of texts"),
            Self::DnsServers => f.write_str("IPv4 addresses, separated by commas"),
            Self::Any => f.write_str("anything"),
        }
    }
}

pub use self::value::boolean_of;

/// Text that goes to a column of 255 characters and must not be empty.
pub const NAME: Kind = Kind::Text { min: 1, max: 255 };
/// The same without control characters: it gets into logs, files and names of machines.
pub const ONE_LINE: Kind = Kind::Line { max: 255 };
/// Text that goes to a column of 255 characters.
pub const FREE_TEXT: Kind = Kind::Text { min: 0, max: 255 };
/// Text that the contract says nothing more about, for a column of 255 characters.
pub const PLAIN: Kind = Kind::Plain { max: 255 };
/// The same for text that goes to no column, or to one without a limit.
pub const LONG: Kind = Kind::Plain { max: usize::MAX };

/// A whole number of at least `min`.
pub const fn at_least(min: i64) -> Kind {
    Kind::Integer {
        min,
        max: i32::MAX as i64,
    }
}

/// Reads a create body. `argument` is what the contract calls the whole body.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn read(argument: &str, body: &Value, fields: &[Field]) -> Result<Map<String, Value>, Fault> {
    let Some(given) = dictionary(body) else {
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
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIELDS: &[Field] = &[
        Field::new("name", NAME),
        Field::new("url", PLAIN),
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
        Field::new("line", ONE_LINE),
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
    fn a_line_has_no_control_characters() {
        assert_eq!(
            accepted(&json!({"line": "a [b] ü\u{2028}"}))["line"],
            "a [b] ü\u{2028}"
        );
        for (line, shown) in [
            ("a\n[b]", r"a\n[b]"),
            ("\t", r"\t"),
            ("a\u{7f}", r"a\u{7f}"),
            ("\u{85}", r"\u{85}"),
        ] {
            assert_eq!(
                refusal(&json!({"line": line})),
                format!(
                    "Invalid input for field/attribute line. Value: '{shown}'. Value should not have control characters"
                )
            );
        }
        assert!(refusal(&json!({"line": ""})).ends_with("minimum character requirement of 1"));
        assert!(refusal(&json!({"line": "x".repeat(256)})).ends_with("maximum character requirement of 255"));
    }

    #[test]
    fn a_text_without_bounds_in_the_contract_has_another_refusal() {
        assert!(
            refusal(&json!({"url": 7}))
                .ends_with("Value: '7'. Wrong type. Expected '<class 'str'>', got '<class 'int'>'")
        );
        assert_eq!(accepted(&json!({"url": ""}))["url"], "");
        assert!(refusal(&json!({"url": "x".repeat(256)})).ends_with("maximum character requirement of 255"));
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
    fn lists_and_dictionaries_of_texts_hold_nothing_but_texts() {
        const FIELDS: &[Field] = &[
            Field::new("map", Kind::Strings),
            Field::new("maps", Kind::ListOfStrings),
            Field::new("texts", Kind::Texts),
        ];
        let good = json!({"map": {"a": "b"}, "maps": [{"a": "b"}, {}], "texts": ["0", ""]});
        assert_eq!(Value::Object(read("thing", &good, FIELDS).unwrap()), good);
        for (body, told) in [
            (
                json!({"map": "x"}),
                "attribute thing. Value: '{'map': 'x'}'. Value not a valid dict: x",
            ),
            (
                json!({"map": {"a": 1}}),
                "attribute map. Value: '{'a': 1}'. Wrong type. Expected '<class 'str'>', got '<class 'int'>'",
            ),
            (json!({"maps": {}}), "Value not a valid list: {}"),
            (json!({"maps": ["k"]}), "Value not a valid dict: k"),
            (
                json!({"maps": [{"a": 1}]}),
                "attribute maps. Value: '[{'a': 1}]'. Wrong type.",
            ),
            (json!({"texts": "0"}), "Value not a valid list: 0"),
            (
                json!({"texts": [0]}),
                "attribute texts. Value: '[0]'. Wrong type.",
            ),
        ] {
            let fault = read("thing", &body, FIELDS).unwrap_err();
            assert!(fault.message.contains(told), "{}", fault.message);
        }
        for (name, value, told) in [
            ("map", json!("{}"), "{}"),
            ("maps", json!(["a", "b"]), "['a', 'b']"),
        ] {
            let mut patched = Map::from_iter([(name.to_owned(), value)]);
            let fault = check(&mut patched, &Map::new(), FIELDS).unwrap_err();
            let told = format!(
                "Value: '{told}'. Wrong type. Expected '{{<class 'str'>: <class 'str'>}}', got '<class 'str'>'"
            );
            assert!(fault.message.ends_with(&told), "{}", fault.message);
        }
    }

    #[test]
    fn patched_labels_are_a_dictionary() {
        let mut patched = Map::from_iter([("labels".to_owned(), json!([]))]);
        let fault = check(&mut patched, &Map::new(), FIELDS).unwrap_err();
        assert!(
            fault.message.ends_with(
                "labels. Value: '[]'. Wrong type. Expected '{<class 'str'>: <class 'str'> | <class 'int'> | \
                 <class 'bool'> | <class 'float'>}', got '<class 'list'>'"
            ),
            "{}",
            fault.message
        );
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
