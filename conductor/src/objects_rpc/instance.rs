//! The methods that objects of most classes have: create, save, refresh, destroy.
//!
//! Guarantee: a method refuses before its first write, so that the refusal can be stored as the reply. Only changed fields
//! are written; after `create` all fields are those of the row; after `refresh` the fields that differed are
//! marked as changed, as Magnum leaves them.
//!
//! As in Magnum, only `refresh` has the caller's tenant scope: the API checks permissions before it calls the others.

use magnum_common::context::RequestContext;
use magnum_common::error::Fault;
use magnum_db::AnyConnection;
use magnum_objects::{Received, VersionedObject, WireModel, object_of};
use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::lookup::Scope;

/// A class whose objects are rows.
pub(super) trait Stored: WireModel + Clone {
    /// Whether `save` refuses an object whose uuid was changed, even to the same.
    const UUID_IS_FIXED: bool;

    /// Inserts a row and reads it again.
    fn create(conn: &mut AnyConnection, new: &Self) -> Result<Self, Failure>;

    /// The row of an object, if it is in the scope.
    fn find(conn: &mut AnyConnection, scope: Scope<'_>, object: &VersionedObject) -> Result<Self, Failure>;

    /// Writes the fields `changed`, in which `after` may differ from `before`.
    fn write(conn: &mut AnyConnection, before: &Self, after: Self, changed: &[&str]) -> Result<(), Failure>;

    /// Deletes the row.
    fn delete(conn: &mut AnyConnection, found: &Self) -> Result<(), Failure>;

    /// Reads the nested objects again.
    fn refresh_nested(
        &self,
        _conn: &mut AnyConnection,
        _context: &RequestContext,
        _object: &mut VersionedObject,
    ) -> Result<(), Failure> {
        Ok(())
    }
}

/// Inserts the changed fields, then takes all fields from the row.
pub(super) fn create<M: Stored>(
    conn: &mut AnyConnection,
    _context: &RequestContext,
    object: &mut VersionedObject,
) -> Result<(), Failure> {
    let new = Received::<M>::from_object(object.clone())?.created()?;
    let stored = object_of(&M::create(conn, &new)?, |_| true, &[]);
    for (name, value) in stored.set_fields() {
        object.load(name, value)?;
    }
    object.clear_changes();
    Ok(())
}

/// Writes the changed fields.
pub(super) fn save<M: Stored>(
    conn: &mut AnyConnection,
    _context: &RequestContext,
    object: &mut VersionedObject,
) -> Result<(), Failure> {
    if M::UUID_IS_FIXED && object.is_changed("uuid") {
        return Err(Fault::invalid_parameter(format!(
            "Cannot overwrite UUID for an existing {}.",
            M::SCHEMA.name
        ))
        .into());
    }
    let before = M::find(conn, Scope::All, object)?;
    let mut after = before.clone();
    let changed = Received::<M>::from_object(object.clone())?.apply(&mut after)?;
    M::write(conn, &before, after, &changed)?;
    object.clear_changes();
    Ok(())
}

/// Takes the fields that differ from the row.
pub(super) fn refresh<M: Stored>(
    conn: &mut AnyConnection,
    context: &RequestContext,
    object: &mut VersionedObject,
) -> Result<(), Failure> {
    let found = M::find(conn, Scope::Caller(context), object)?;
    let current = object_of(&found, |_| true, &[]);
    for (name, value) in current.set_fields() {
        if object.get(name).is_some_and(|ours| ours != value) {
            object.set(name, value)?;
        }
    }
    found.refresh_nested(conn, context, object)
}

/// Deletes the row; the fields stay.
pub(super) fn destroy<M: Stored>(
    conn: &mut AnyConnection,
    _context: &RequestContext,
    object: &mut VersionedObject,
) -> Result<(), Failure> {
    let found = M::find(conn, Scope::All, object)?;
    M::delete(conn, &found)?;
    object.clear_changes();
    Ok(())
}

/// The updates for the caller's object: the fields that differ from before, and the names of those still changed.
pub(super) fn updates(before: &VersionedObject, after: &VersionedObject) -> Map<String, Value> {
    let mut updates: Map<String, Value> = after
        .set_fields()
        .filter(|(name, value)| before.get(name) != Some(value))
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect();
    let changed: Vec<&str> = after
        .set_fields()
        .filter(|(name, value)| after.is_changed(name) || has_changes(value))
        .map(|(name, _)| name)
        .collect();
    updates.insert("obj_what_changed".to_owned(), json!(changed));
    updates
}

/// Whether a value is an object with changes of its own.
fn has_changes(value: &Value) -> bool {
    value.get("magnum_object.changes").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(data: Value, changes: Value) -> VersionedObject {
        let mut object = json!({"magnum_object.name": "Cluster", "magnum_object.namespace": "magnum",
                                "magnum_object.version": "1.24"});
        object["magnum_object.data"] = data;
        object["magnum_object.changes"] = changes;
        VersionedObject::decode(&object).unwrap()
    }

    #[test]
    fn updates_hold_the_fields_that_differ_and_those_still_changed() {
        let before = cluster(
            json!({"uuid": "u", "name": "a", "keypair": null}),
            json!(["name"]),
        );
        let mut after = before.clone();
        assert_eq!(
            Value::Object(updates(&before, &after)),
            json!({"obj_what_changed": ["name"]})
        );
        after.clear_changes();
        after.load("id", &json!(3)).unwrap();
        after.set("keypair", &json!("k")).unwrap();
        assert_eq!(
            Value::Object(updates(&before, &after)),
            json!({"id": 3, "keypair": "k", "obj_what_changed": ["keypair"]})
        );
    }

    #[test]
    fn changed_nested_object_counts_as_a_change() {
        let template = json!({"magnum_object.name": "ClusterTemplate", "magnum_object.namespace": "magnum",
                              "magnum_object.version": "1.21", "magnum_object.data": {"name": "t"},
                              "magnum_object.changes": ["name"]});
        let object = cluster(json!({"uuid": "u", "cluster_template": template}), json!([]));
        assert_eq!(
            updates(&object, &object)["obj_what_changed"],
            json!(["cluster_template"])
        );
    }
}
