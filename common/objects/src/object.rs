//! Any versioned object: decoding, reading, changing, encoding.

use std::fmt;

use serde_json::{Map, Value, json};

use magnum_common::error::{Exception, Fault};

use super::coerce::coerce;
use super::schema::{FieldKind, Schema};
use super::{tables, version};

const NAME: &str = "magnum_object.name";
const NAMESPACE: &str = "magnum_object.namespace";
const VERSION: &str = "magnum_object.version";
const DATA: &str = "magnum_object.data";
const CHANGES: &str = "magnum_object.changes";

/// The namespace of all of Magnum's objects.
pub const MAGNUM_NAMESPACE: &str = "magnum";

/// Whether a value of a message is an object, as opposed to a plain map.
pub fn is_object(value: &Value) -> bool {
    value.get(NAME).is_some()
}

/// The class a value says it is of; nothing else about it is checked.
pub fn class_name(value: &Value) -> Option<&str> {
    value.get(NAME).and_then(Value::as_str)
}

/// An object of one of Magnum's classes: the fields that are set, and which of them were changed.
///
/// Every value in it has been through its field's coercion, so typed readers need not check again. `Debug`
/// shows names only, as values can be keys and passphrases.
#[derive(Clone, PartialEq)]
pub struct VersionedObject {
    schema: &'static Schema,
    version: String,
    data: Map<String, Value>,
    changes: Vec<&'static str>,
}

impl VersionedObject {
    /// An object with nothing set, at our version.
    pub fn new(schema: &'static Schema) -> Self {
        Self {
            schema,
            version: schema.version_text(),
            data: Map::new(),
            changes: Vec::new(),
        }
    }

    /// Reads an object from a message.
    ///
    /// # Errors
    /// `UnsupportedObjectError` for a class or namespace that is not ours, `IncompatibleObjectVersion` for a
    /// version we cannot read, `ValueError` for a value its field does not take.
    pub fn decode(value: &Value) -> Result<Self, Fault> {
        let Value::Object(envelope) = value else {
            return Err(malformed("it is not a map"));
        };
        let text = |key: &str| match envelope.get(key) {
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(_) => Err(malformed(&format!("'{key}' is not a string"))),
            None => Err(malformed(&format!("'{key}' is missing"))),
        };
        let (name, namespace) = (text(NAME)?, text(NAMESPACE)?);
        if namespace != MAGNUM_NAMESPACE {
            return Err(unsupported(&format!("{namespace}.{name}")));
        }
        let schema = tables::find(name).ok_or_else(|| unsupported(name))?;
        let version = version::accept(schema, text(VERSION)?)?;
        let Some(Value::Object(sent)) = envelope.get(DATA) else {
            return Err(malformed(&format!("'{DATA}' is missing or not a map")));
        };
        let mut data = Map::new();
        for field in schema.fields {
            if let Some(value) = sent.get(field.name) {
                data.insert(field.name.to_owned(), coerce(field, value)?);
            }
        }
        let mut object = Self {
            schema,
            version,
            data,
            changes: Vec::new(),
        };
        match envelope.get(CHANGES) {
            None => {}
            Some(Value::Array(names)) => names
                .iter()
                .filter_map(Value::as_str)
                .for_each(|name| object.mark_changed(name)),
            Some(_) => return Err(malformed(&format!("'{CHANGES}' is not a list"))),
        }
        Ok(object)
    }

    /// The form in which it travels: set fields in wire order; no key for changes when there are none.
    pub fn encode(&self) -> Value {
        let mut data = Map::new();
        for field in self.schema.fields {
            if let Some(value) = self.data.get(field.name) {
                data.insert(field.name.to_owned(), value.clone());
            }
        }
        let mut envelope = Map::new();
        envelope.insert(NAME.to_owned(), json!(self.schema.name));
        envelope.insert(NAMESPACE.to_owned(), json!(MAGNUM_NAMESPACE));
        envelope.insert(VERSION.to_owned(), json!(self.version));
        envelope.insert(DATA.to_owned(), Value::Object(data));
        if !self.changes.is_empty() {
            envelope.insert(CHANGES.to_owned(), json!(self.changes));
        }
        Value::Object(envelope)
    }

    /// The form for a peer that reads other versions, as its manifest (`{"Cluster": "1.23", …}`) says. Only the
    /// labels change: no class of Magnum removes fields for an older reader. A class the manifest does not name
    /// keeps its version.
    ///
    /// # Errors
    /// `InvalidTargetVersion` when the peer asks for a version newer than ours.
    pub fn encode_for(&self, manifest: &Map<String, Value>) -> Result<Value, Fault> {
        let mut relabelled = self.clone();
        if let Some(target) = manifest.get(self.schema.name).and_then(Value::as_str) {
            relabelled.version = version::accept_target(self.schema, target)?;
        }
        for field in self.schema.fields {
            if !matches!(field.kind, FieldKind::Object(_)) {
                continue;
            }
            if let Some(inner) = self.nested(field.name)? {
                relabelled
                    .data
                    .insert(field.name.to_owned(), inner.encode_for(manifest)?);
            }
        }
        Ok(relabelled.encode())
    }

    /// The class name.
    pub fn name(&self) -> &'static str {
        self.schema.name
    }

    /// The class.
    pub fn schema(&self) -> &'static Schema {
        self.schema
    }

    /// The version its sender wrote, or ours.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The value of a field that is set; null is a value.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.data.get(field)
    }

    /// The text of a field; `None` when it is not set or null.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.get(field).and_then(Value::as_str)
    }

    /// The object in a field, when it is set.
    ///
    /// # Errors
    /// What [`Self::decode`] says; cannot happen for a field that decoding or [`Self::set`] filled.
    pub fn nested(&self, field: &str) -> Result<Option<Self>, Fault> {
        match self.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => Self::decode(value).map(Some),
        }
    }

    /// The fields that are set, in wire order.
    pub fn set_fields(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.schema
            .fields
            .iter()
            .filter_map(|field| Some((field.name, self.data.get(field.name)?)))
    }

    /// The names of the changed fields, in the order of the message.
    pub fn changes(&self) -> &[&'static str] {
        &self.changes
    }

    /// Whether a field is among the changed ones.
    pub fn is_changed(&self, field: &str) -> bool {
        self.changes.contains(&field)
    }

    /// Sets a field without marking it changed, as reading from a row does.
    ///
    /// # Errors
    /// `ValueError` for a value the field does not take, `AttributeError` for a field the class does not have.
    pub fn load(&mut self, field: &str, value: &Value) -> Result<(), Fault> {
        let Some(known) = self.schema.field(field) else {
            return Err(Fault::new(
                Exception::AttributeError,
                format!("'{}' object has no attribute '{field}'", self.schema.name),
            ));
        };
        self.data.insert(known.name.to_owned(), coerce(known, value)?);
        Ok(())
    }

    /// Sets a field and marks it changed.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn set(&mut self, field: &str, value: &Value) -> Result<(), Fault> {
        self.load(field, value)?;
        self.mark_changed(field);
        Ok(())
    }

    /// Marks a set field as changed; a field that is not set or unknown is left out, as Python leaves it out.
    pub fn mark_changed(&mut self, field: &str) {
        if !self.data.contains_key(field) || self.changes.contains(&field) {
            return;
        }
        if let Some(known) = self.schema.field(field) {
            self.changes.push(known.name);
        }
    }

    /// Forgets which fields were changed: they are stored now.
    pub fn clear_changes(&mut self) {
        self.changes.clear();
    }
}

impl fmt::Debug for VersionedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set: Vec<_> = self.set_fields().map(|(name, _)| name).collect();
        f.debug_struct(self.schema.name)
            .field("version", &self.version)
            .field("set", &set)
            .field("changes", &self.changes)
            .finish()
    }
}

fn malformed(why: &str) -> Fault {
    Fault::new(
        Exception::ValueError,
        format!("Malformed versioned object: {why}"),
    )
}

fn unsupported(class: &str) -> Fault {
    let mut fault = Fault::new(
        Exception::UnsupportedObjectError,
        format!("Unsupported object type {class}"),
    );
    fault.kwargs.insert("objtype".into(), json!(class));
    fault.kwargs.insert("code".into(), json!(500));
    fault
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "reads better with json!() as arguments"
    )]
    fn object(class: &str, version: &str, data: Value, changes: Option<Value>) -> Value {
        let mut value = json!({NAME: class, NAMESPACE: "magnum", VERSION: version, DATA: data});
        if let Some(changes) = changes {
            value[CHANGES] = changes;
        }
        value
    }

    fn fault(value: &Value) -> Fault {
        VersionedObject::decode(value).unwrap_err()
    }

    #[test]
    fn recorded_objects_encode_to_equal_bytes() {
        let sent = object(
            "NodeGroup",
            "1.2",
            json!({"uuid": "0a1b", "name": "extra", "node_count": 2, "role": "worker",
                   "node_taints": [{"key": "a", "effect": "NoSchedule"}], "created_at": "2026-01-02T03:04:05Z"}),
            Some(json!(["role", "uuid", "name"])),
        );
        let encoded = VersionedObject::decode(&sent).unwrap().encode();
        assert_eq!(encoded.to_string(), sent.to_string());
    }

    #[test]
    fn unknown_fields_are_dropped_also_from_the_changes() {
        let sent = object(
            "Cluster",
            "1.23",
            json!({"uuid": "u", "trust_id": "t"}),
            Some(json!(["uuid", "trust_id", "name", "uuid"])),
        );
        let encoded = VersionedObject::decode(&sent).unwrap().encode();
        assert_eq!(
            encoded,
            object("Cluster", "1.23", json!({"uuid": "u"}), Some(json!(["uuid"])))
        );
    }

    #[test]
    fn the_changes_key_is_absent_when_nothing_is_changed() {
        let sent = object("Cluster", "1.24", json!({}), Some(json!([])));
        let encoded = VersionedObject::decode(&sent).unwrap().encode();
        assert_eq!(encoded, object("Cluster", "1.24", json!({}), None));
    }

    #[test]
    fn not_set_and_null_differ() {
        let decoded =
            VersionedObject::decode(&object("Cluster", "1.24", json!({"name": null}), None)).unwrap();
        assert_eq!(decoded.get("name"), Some(&Value::Null));
        assert_eq!(decoded.get("keypair"), None);
        assert_eq!(decoded.text("name"), None);
    }

    #[test]
    fn foreign_classes_and_namespaces_are_unsupported() {
        let nope = fault(&object("Nope", "1.0", json!({}), None));
        assert_eq!(nope.exception, Exception::UnsupportedObjectError);
        assert_eq!(nope.message, "Unsupported object type Nope");
        assert_eq!(nope.kwargs["objtype"], "Nope");
        let mut nova = object("Cluster", "1.24", json!({}), None);
        nova[NAMESPACE] = json!("nova");
        assert_eq!(fault(&nova).message, "Unsupported object type nova.Cluster");
    }

    #[test]
    fn malformed_envelope_is_an_error_and_never_a_panic() {
        let good = object("Cluster", "1.24", json!({}), Some(json!(["x"])));
        for key in [NAME, NAMESPACE, VERSION, DATA] {
            let mut without = good.clone();
            without.as_object_mut().unwrap().remove(key);
            assert!(fault(&without).message.contains(key), "{key}");
            for wrong in [json!(null), json!(5), json!([]), json!("")] {
                let mut bad = good.clone();
                bad[key] = wrong;
                assert!(VersionedObject::decode(&bad).is_err(), "{key}");
            }
        }
        let mut bad = good;
        bad[CHANGES] = json!(null);
        assert!(fault(&bad).message.contains(CHANGES));
        for value in [json!(null), json!([]), json!("x"), json!({})] {
            assert_eq!(fault(&value).exception, Exception::ValueError);
        }
    }

    #[test]
    fn a_nested_object_keeps_its_own_version_and_is_checked() {
        let template = object(
            "ClusterTemplate",
            "1.20",
            json!({"coe": "kubernetes", "bogus": 1}),
            Some(json!(["coe", "bogus"])),
        );
        let sent = object("Cluster", "1.24", json!({"cluster_template": template}), None);
        let decoded = VersionedObject::decode(&sent).unwrap();
        let inner = decoded.nested("cluster_template").unwrap().unwrap();
        assert_eq!((inner.version(), inner.changes()), ("1.20", &["coe"][..]));
        assert_eq!(inner.get("bogus"), None);

        let other = object("NodeGroup", "1.2", json!({}), None);
        let wrong = object("Cluster", "1.24", json!({"cluster_template": other}), None);
        assert_eq!(
            fault(&wrong).message,
            "An object of type ClusterTemplate is required in field cluster_template, not a NodeGroup"
        );
        let newer = object("ClusterTemplate", "1.22", json!({}), None);
        let newer = object("Cluster", "1.24", json!({"cluster_template": newer}), None);
        assert_eq!(fault(&newer).exception, Exception::IncompatibleObjectVersion);
    }

    #[test]
    fn an_older_peer_gets_older_labels_also_on_nested_objects() {
        let template = object("ClusterTemplate", "1.21", json!({"driver": "x"}), None);
        let decoded = VersionedObject::decode(&object(
            "Cluster",
            "1.24",
            json!({"cluster_template": template}),
            None,
        ))
        .unwrap();
        let manifest = json!({"Cluster": "1.23", "ClusterTemplate": "1.20"});
        let sent = decoded.encode_for(manifest.as_object().unwrap()).unwrap();
        assert_eq!(sent[VERSION], "1.23");
        assert_eq!(sent[DATA]["cluster_template"][VERSION], "1.20");
        assert_eq!(sent[DATA]["cluster_template"][DATA]["driver"], "x");
        let newer = json!({"Cluster": "1.99"});
        let fault = decoded.encode_for(newer.as_object().unwrap()).unwrap_err();
        assert_eq!(fault.exception, Exception::InvalidTargetVersion);
    }

    #[test]
    fn setting_marks_a_change_and_loading_does_not() {
        let mut made = VersionedObject::new(&tables::CLUSTER);
        made.load("name", &json!("a")).unwrap();
        made.set("create_timeout", &json!("60")).unwrap();
        assert_eq!(made.changes(), ["create_timeout"]);
        assert_eq!(made.get("create_timeout"), Some(&json!(60)));
        assert_eq!(
            made.set("nope", &json!(1)).unwrap_err().exception,
            Exception::AttributeError
        );
        made.clear_changes();
        assert!(made.changes().is_empty());
    }

    #[test]
    fn debug_shows_no_values() {
        let mut pair = VersionedObject::new(&tables::X509_KEY_PAIR);
        pair.load("private_key", &json!("hunter2")).unwrap();
        assert!(!format!("{pair:?}").contains("hunter2"));
    }
}
