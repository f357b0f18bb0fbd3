//! JSON patches: which ones are allowed, and their application.
//!
//! Magnum's patches are RFC 6902 with fewer operations (`add`, `replace`, `remove`) and more rules: internal
//! attributes cannot be touched, mandatory ones not removed, attributes not invented, and a dictionary is
//! replaced as a whole by a string that holds a Python literal. [`read`] checks what can be checked without the
//! object, so that a bad patch is a 400 before the object is looked up; [`apply`] does the rest.
//!
//! More is accepted than Magnum accepts: a dictionary's value may be a JSON object, and its keys may hold any
//! character (`/labels/app.kubernetes.io~1name`, escaped as in RFC 6901).
//!
//! Guarantee: all operations apply, in order, or none.

mod membership;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use magnum_common::error::{Exception, Fault};
use serde_json::{Map, Value, json};

use super::body::invalid;
use super::python::{dictionary, large_integer, parse_literal, repr, str_of, type_name};

pub use self::membership::Membership;

/// What a resource allows to be patched.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Attributes that only the service changes.
    pub internal: &'static [&'static str],
    /// Attributes that cannot be removed.
    pub mandatory: &'static [&'static str],
    /// Attributes that hold a dictionary.
    pub dictionaries: &'static [&'static str],
    /// Attributes that hold a list, and are replaced as a whole.
    pub lists: &'static [&'static str],
}

impl Rules {
    /// Every attribute that a patch may not touch.
    pub fn refused(&self) -> impl Iterator<Item = &'static str> {
        INTERNAL.into_iter().chain(self.internal.iter().copied())
    }
}

/// What an operation can do, as it is written.
pub const VERBS: &[&str] = &["add", "replace", "remove"];

/// Attributes that are internal for every resource.
const INTERNAL: [&str; 7] = [
    "created_at",
    "id",
    "links",
    "updated_at",
    "uuid",
    "project_id",
    "user_id",
];
const PATH_PATTERN: &str = "^(/[\\w-]+)+$";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Add,
    Replace,
    Remove,
}

#[derive(Debug, Clone, PartialEq)]
struct Operation {
    verb: Verb,
    path: String,
    value: Option<Value>,
}

impl Operation {
    /// The attribute at the root, and whether the path ends there.
    fn attribute(&self) -> (&str, bool) {
        attribute(&self.path)
    }
}

fn attribute(path: &str) -> (&str, bool) {
    let path = path.strip_prefix('/').unwrap_or(path);
    match path.split_once('/') {
        Some((attribute, _)) => (attribute, false),
        None => (path, true),
    }
}

/// A patch whose operations are well-formed and allowed.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    operations: Vec<Operation>,
    /// As it was sent, for error texts.
    shown: String,
}

/// Reads the body of a PATCH request.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn read(body: &Value, rules: &Rules) -> Result<Patch, Fault> {
    let Value::Array(items) = body else {
        let reason = format!("Value not a valid list: {}", str_of(body));
        return Err(invalid("patch", body, &reason));
    };
    let shown = shown(items);
    if let Some(reason) = items.iter().find_map(null_member) {
        return Err(not_applied(&shown, reason));
    }
    let operations = items
        .iter()
        .map(|item| operation(item, rules))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Patch { operations, shown })
}

/// What an explicit null for one of the two that are needed is called.
fn null_member(item: &Value) -> Option<&'static str> {
    let is_null = |key| item.get(key).is_some_and(Value::is_null);
    match (is_null("path"), is_null("op")) {
        (true, _) => Some("Invalid 'path'"),
        (false, true) => Some("Operation's op must be a string"),
        (false, false) => None,
    }
}

fn not_applied(shown: &str, reason: &str) -> Fault {
    Fault::new(
        Exception::PatchError,
        format!("Couldn't apply patch '{shown}'. Reason: {reason}"),
    )
}

/// The patch as Magnum's error text prints it: its keys in a fixed order.
fn shown(items: &[Value]) -> String {
    let ordered = |item: &Value| {
        let keys = ["path", "op", "value"].into_iter();
        let pairs = keys.filter_map(|key| Some((key.to_owned(), item.get(key)?.clone())));
        Value::Object(pairs.collect())
    };
    repr(&Value::Array(items.iter().map(ordered).collect()))
}

fn operation(item: &Value, rules: &Rules) -> Result<Operation, Fault> {
    let Some(given) = dictionary(item) else {
        return Err(invalid(
            "patch",
            item,
            "Each element of a patch should be an object",
        ));
    };
    if let Some(key) = given
        .keys()
        .find(|key| !["path", "op", "value"].contains(&key.as_str()))
    {
        return Err(refusal(format!("Unknown attribute for argument patch: {key}")));
    }
    let path = path(given.get("path"), rules)?;
    let verb = verb(given.get("op"))?;
    let value = given.get("value").filter(|value| !value.is_null()).cloned();
    if let Some(value) = &value {
        check_value(value, &path, rules)?;
    }

    let (name, whole) = attribute(&path);
    // What is inside of an internal attribute (`/links/0`) is internal too.
    if INTERNAL.contains(&name) || rules.internal.contains(&name) {
        return Err(refusal(format!(
            "'{path}' is an internal attribute and can not be updated"
        )));
    }
    if verb == Verb::Remove && whole && rules.mandatory.contains(&name) {
        return Err(refusal(format!(
            "'{path}' is a mandatory attribute and can not be removed"
        )));
    }
    if verb != Verb::Remove && value.is_none() {
        return Err(refusal("'add' and 'replace' operations needs value".to_owned()));
    }
    Ok(Operation { verb, path, value })
}

fn refusal(text: String) -> Fault {
    Fault::new(Exception::Invalid, text)
}

fn path(given: Option<&Value>, rules: &Rules) -> Result<String, Fault> {
    let Some(value) = given else {
        return Err(invalid("path", &Value::Null, "Mandatory field missing."));
    };
    let Some(path) = value.as_str() else {
        return Err(invalid("path", value, "Value should be string"));
    };
    let plain = |segment: &str| {
        !segment.is_empty()
            && segment
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
    };
    let matches = path.strip_prefix('/').is_some_and(|rest| {
        let mut segments = rest.split('/');
        let first = segments.next().unwrap_or_default();
        let dictionary = rules.dictionaries.contains(&first);
        plain(first)
            && segments.all(|segment| {
                if dictionary {
                    !segment.is_empty()
                } else {
                    plain(segment)
                }
            })
    });
    if !matches || PointerBuf::parse(path).is_err() {
        return Err(invalid(
            "path",
            value,
            &format!("Value should match the pattern {PATH_PATTERN}"),
        ));
    }
    Ok(path.to_owned())
}

fn verb(given: Option<&Value>) -> Result<Verb, Fault> {
    match given {
        None => Err(invalid("op", &Value::Null, "Mandatory field missing.")),
        Some(Value::String(text)) if text == "add" => Ok(Verb::Add),
        Some(Value::String(text)) if text == "replace" => Ok(Verb::Replace),
        Some(Value::String(text)) if text == "remove" => Ok(Verb::Remove),
        Some(other) => Err(invalid(
            "op",
            other,
            "Value should be one of: add, replace, remove",
        )),
    }
}

fn check_value(value: &Value, path: &str, rules: &Rules) -> Result<(), Fault> {
    let (name, whole) = attribute(path);
    let fits = match value {
        _ if large_integer(value).is_some() => true,
        Value::String(_) | Value::Bool(_) => true,
        Value::Number(number) => !number.is_f64(),
        Value::Object(_) => whole && rules.dictionaries.contains(&name),
        Value::Array(_) => whole && rules.lists.contains(&name),
        Value::Null => false,
    };
    if fits {
        return Ok(());
    }
    let reason = format!(
        "Wrong type. Expected '(<class 'str'>, <class 'int'>)', got '{}'",
        type_name(value)
    );
    Err(invalid("value", value, &reason))
}

/// Applies a patch to an object whose every attribute is present (unset ones as null). Removed attributes are
/// absent from the result; the caller gives them their defaults and checks the whole.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn apply(patch: &Patch, object: Map<String, Value>, rules: &Rules) -> Result<Map<String, Value>, Fault> {
    for operation in patch
        .operations
        .iter()
        .filter(|operation| operation.verb == Verb::Add)
    {
        refuse_add(operation, &object)?;
    }
    let failed = |reason: &str| not_applied(&patch.shown, reason);
    let operations = patch
        .operations
        .iter()
        .map(|operation| rfc6902(operation, rules).map_err(|reason| failed(&reason)))
        .collect::<Result<Vec<_>, _>>()?;
    let mut document = Value::Object(object);
    if let Err(error) = json_patch::patch(&mut document, &operations) {
        let operation = &patch.operations[error.operation];
        let member = operation.path.rsplit('/').next().unwrap_or_default();
        return Err(failed(&match operation.verb {
            Verb::Replace => format!("can't replace a non-existent object '{member}'"),
            Verb::Remove => format!("can't remove a non-existent object '{member}'"),
            Verb::Add => format!("there is nothing at '{}' to add a member to", operation.path),
        }));
    }
    match document {
        Value::Object(object) => Ok(object),
        _ => Err(failed("the result is no object")),
    }
}

fn refuse_add(operation: &Operation, object: &Map<String, Value>) -> Result<(), Fault> {
    let (name, whole) = operation.attribute();
    let path = &operation.path;
    match object.get(name) {
        _ if !whole => Ok(()),
        None => Err(refusal(format!(
            "Adding a new attribute {path} to the root of the resource is not allowed."
        ))),
        Some(Value::Null) => Ok(()),
        Some(_) => Err(refusal(format!(
            "The attribute {path} has existed, please use 'replace' operation instead."
        ))),
    }
}

fn rfc6902(operation: &Operation, rules: &Rules) -> Result<PatchOperation, String> {
    let path = PointerBuf::parse(operation.path.clone()).map_err(|error| error.to_string())?;
    let (name, whole) = operation.attribute();
    let holds_many = rules.dictionaries.contains(&name) || rules.lists.contains(&name);
    let value = match &operation.value {
        Some(Value::String(text)) if whole && holds_many => parse_literal(text)?,
        // A number or a boolean for a member of a dictionary of texts becomes what Python prints. Labels are not only texts.
        Some(value) if !whole && name != "labels" && rules.dictionaries.contains(&name) => {
            Value::String(str_of(value))
        }
        Some(value) => value.clone(),
        None => json!(null),
    };
    Ok(match operation.verb {
        Verb::Add => PatchOperation::Add(AddOperation { path, value }),
        Verb::Replace => PatchOperation::Replace(ReplaceOperation { path, value }),
        Verb::Remove => PatchOperation::Remove(RemoveOperation { path }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        internal: &["stack_id"],
        mandatory: &["image_id"],
        dictionaries: &["labels"],
        lists: &[],
    };

    fn object() -> Map<String, Value> {
        let Value::Object(object) = json!({
            "name": "n", "image_id": "i", "tags": null, "labels": {"a": "1", "x.y/z": "2"}, "stack_id": null,
        }) else {
            unreachable!()
        };
        object
    }

    fn patched(body: &Value) -> Result<Value, String> {
        read(body, &RULES)
            .and_then(|patch| apply(&patch, object(), &RULES))
            .map(Value::Object)
            .map_err(|fault| {
                assert_eq!(fault.code(), 400);
                fault.message
            })
    }

    fn one(op: &str, path: &str, value: &Value) -> Result<Value, String> {
        patched(&json!([{"op": op, "path": path, "value": value}]))
    }

    #[test]
    fn the_three_operations_apply_in_order() {
        let result = patched(&json!([
            {"op": "replace", "path": "/name", "value": "m"},
            {"op": "add", "path": "/tags", "value": "t"},
            {"op": "add", "path": "/labels/b", "value": 2},
            {"op": "replace", "path": "/labels/a", "value": true},
            {"op": "remove", "path": "/labels/x.y~1z"},
            {"op": "replace", "path": "/name", "value": "last"},
        ]))
        .unwrap();
        assert_eq!(result["name"], "last");
        assert_eq!(result["tags"], "t");
        assert_eq!(result["labels"], json!({"a": true, "b": 2}));
    }

    #[test]
    fn a_removed_attribute_is_absent() {
        assert_eq!(
            patched(&json!([{"op": "remove", "path": "/tags"}]))
                .unwrap()
                .get("tags"),
            None
        );
    }

    #[test]
    fn a_dictionary_is_replaced_by_a_python_literal_or_by_json() {
        for value in [json!("{'k': 'v'}"), json!("{\"k\": \"v\"}"), json!({"k": "v"})] {
            assert_eq!(
                one("replace", "/labels", &value).unwrap()["labels"],
                json!({"k": "v"})
            );
        }
        let told = one("replace", "/labels", &json!("boom(")).unwrap_err();
        assert!(
            told.starts_with(
                "Couldn't apply patch '[{'path': '/labels', 'op': 'replace', 'value': 'boom('}]'. Reason: "
            ),
            "{told}"
        );
    }

    #[test]
    fn patch_of_a_protected_path_is_refused_by_path() {
        for path in ["/uuid", "/created_at", "/stack_id"] {
            assert_eq!(
                one("replace", path, &json!("x")),
                Err(format!(
                    "'{path}' is an internal attribute and can not be updated"
                ))
            );
        }
        assert_eq!(
            patched(&json!([{"op": "remove", "path": "/image_id"}])),
            Err("'/image_id' is a mandatory attribute and can not be removed".into())
        );
        assert_eq!(
            one("add", "/foo", &json!("x")),
            Err("Adding a new attribute /foo to the root of the resource is not allowed.".into())
        );
        assert_eq!(
            one("add", "/name", &json!("x")),
            Err("The attribute /name has existed, please use 'replace' operation instead.".into())
        );
    }

    #[test]
    fn missing_members_are_named() {
        assert!(
            one("replace", "/foo", &json!("x"))
                .unwrap_err()
                .ends_with("Reason: can't replace a non-existent object 'foo'")
        );
        assert!(
            patched(&json!([{"op": "remove", "path": "/labels/no"}]))
                .unwrap_err()
                .ends_with("Reason: can't remove a non-existent object 'no'")
        );
        assert!(
            one("add", "/name/deeper", &json!("x"))
                .unwrap_err()
                .contains("nothing at '/name/deeper'")
        );
    }

    #[test]
    fn malformed_patches_are_reported_element_by_element() {
        let told = |body: Value| patched(&body).unwrap_err();
        assert_eq!(
            told(json!({"node_count": 3})),
            "Invalid input for field/attribute patch. Value: '{'node_count': 3}'. Value not a valid list: \
             {'node_count': 3}"
        );
        assert!(told(json!([1])).contains("should be an object"));
        assert!(
            told(json!([{"op": "move", "path": "/name", "value": "x"}]))
                .contains("one of: add, replace, remove")
        );
        assert!(
            told(json!([{"op": "replace", "value": "x"}]))
                .contains("attribute path. Value: 'None'. Mandatory")
        );
        assert!(
            told(json!([{"path": "/name", "value": "x"}])).contains("attribute op. Value: 'None'. Mandatory")
        );
        assert!(
            told(json!([{"op": "add", "path": "/a", "value": 1, "from": "/b"}])).ends_with("patch: from")
        );
        assert_eq!(
            told(json!([{"op": null, "path": "/name", "value": "x"}])),
            "Couldn't apply patch '[{'path': '/name', 'op': None, 'value': 'x'}]'. Reason: Operation's op must be a \
             string"
        );
        assert!(told(json!([{"op": null, "path": null}])).ends_with("Reason: Invalid 'path'"));
        for value in [json!(null), json!(1.5), json!([1]), json!({})] {
            assert!(one("replace", "/name", &value).is_err(), "{value}");
        }
        for path in [
            "name",
            "/",
            "",
            "//name",
            "/na me",
            "/labels/",
            "/labels/~2",
            "/name/x.y",
        ] {
            assert!(
                one("replace", path, &json!("x"))
                    .unwrap_err()
                    .contains("match the pattern"),
                "{path}"
            );
        }
    }
}
