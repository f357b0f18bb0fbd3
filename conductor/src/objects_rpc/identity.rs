//! The kind of an identifier: Magnum's methods called `get` take a number, a uuid or a name, and recognise it by its
//! form.

use magnum_common::error::{Exception, Fault};
use serde_json::{Value, json};
use uuid::Uuid;

/// The kind of an identifier, with its text for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Identity {
    /// A number; `None` when no row can have it.
    Number(Option<i32>, String),
    /// A uuid, in any of the ways in which one can be written.
    Uuid(String),
    /// Anything else.
    Name(String),
}

impl Identity {
    /// Recognises the kind by the form of the value.
    pub(super) fn of(value: &Value) -> Self {
        let text = python_str(value);
        if is_int_like(value, &text) {
            Self::Number(text.parse().ok(), text)
        } else if value.is_string() && Uuid::try_parse(&text).is_ok() {
            Self::Uuid(text)
        } else {
            Self::Name(text)
        }
    }
}

/// A number whose text is the same as that of the number it is read as: neither `01` nor `1.0`.
fn is_int_like(value: &Value, text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_canonical = digits == "0" && text == "0" || !digits.starts_with('0');
    (value.is_string() || value.is_number())
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && is_canonical
}

/// The row number that a caller names; `None` for what no row can have.
pub(super) fn number(value: &Value) -> Option<i32> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_i64().and_then(|number| i32::try_from(number).ok()),
    }
}

/// Python's `str()` of a value.
pub(super) fn python_str(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `Expected an uuid or int but received <identity>.`
pub(super) fn invalid(identity: &str) -> Fault {
    let mut fault = Fault::new(
        Exception::InvalidIdentity,
        format!("Expected an uuid or int but received {identity}."),
    );
    fault.kwargs.insert("identity".into(), json!(identity));
    fault
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds are those that `oslo_utils` 10.2 gives for the left column.
    #[test]
    fn numbers_uuids_and_names_are_recognised_by_their_form() {
        let number = |text: &str| Identity::Number(text.parse().ok(), text.into());
        for (value, identity) in [
            (json!(7), number("7")),
            (json!("7"), number("7")),
            (json!("-7"), number("-7")),
            (json!("0"), number("0")),
            (
                json!("99999999999999999999"),
                Identity::Number(None, "99999999999999999999".into()),
            ),
            (json!("07"), Identity::Name("07".into())),
            (json!("-0"), Identity::Name("-0".into())),
            (json!(" 7"), Identity::Name(" 7".into())),
            (json!(1.0), Identity::Name("1.0".into())),
            (json!(true), Identity::Name("True".into())),
            (json!(null), Identity::Name("None".into())),
            (json!(""), Identity::Name(String::new())),
            (
                json!("5d12f6fd-a196-4bf0-ae4c-1f639a523a52"),
                Identity::Uuid("5d12f6fd-a196-4bf0-ae4c-1f639a523a52".into()),
            ),
            (
                json!("5D12F6FDA1964BF0AE4C1F639A523A52"),
                Identity::Uuid("5D12F6FDA1964BF0AE4C1F639A523A52".into()),
            ),
            (json!("k8s"), Identity::Name("k8s".into())),
        ] {
            assert_eq!(Identity::of(&value), identity, "{value}");
        }
    }
}
