//! Objects from and to the domain's types.
//!
//! A received object can be read in three ways, and a caller has to say which one it means:
//! * [`Received::model`]: everything that is set (an object that was loaded from the database);
//! * [`Received::created`]: only what was changed (an object that is to be inserted: Magnum inserts changed
//!   fields only);
//! * [`Received::apply`]: what was changed, onto the row as it is now (an object that is to be saved).

use std::marker::PhantomData;

use serde_json::Value;

use magnum_common::error::{Exception, Fault};

use super::object::VersionedObject;
use super::schema::Schema;

/// A domain type that travels as a versioned object.
pub trait WireModel: Sized {
    /// Its class.
    const SCHEMA: &'static Schema;

    /// A value with everything at its default, and the identity that `object` gives.
    ///
    /// # Errors
    /// `ValueError` that names a field without which there is no such thing.
    fn blank(object: &VersionedObject) -> Result<Self, Fault>;

    /// A field's wire value; `None` for a field this type does not hold.
    fn field(&self, name: &str) -> Option<Value>;

    /// Takes a coerced wire value into a field; false for a field this type does not hold.
    ///
    /// # Errors
    /// `ValueError` for a value that the rows cannot hold.
    fn set_field(&mut self, name: &str, value: &Value) -> Result<bool, Fault>;
}

/// Implements [`WireModel`] for a struct whose fields are called as on the wire.
macro_rules! wire_model {
    ($type:ty, $schema:expr, $blank:expr, [$($field:ident)*]) => {
        impl $crate::WireModel for $type {
            const SCHEMA: &'static $crate::Schema = &$schema;

            fn blank(
                object: &$crate::VersionedObject,
            ) -> Result<Self, magnum_common::error::Fault> {
                let blank: fn(&$crate::VersionedObject) -> Result<$type, magnum_common::error::Fault> =
                    $blank;
                blank(object)
            }

            fn field(&self, name: &str) -> Option<serde_json::Value> {
                use $crate::wire_value::WireValue as _;
                match name {
                    $(stringify!($field) => Some(self.$field.to_wire()),)*
                    _ => None,
                }
            }

            fn set_field(
                &mut self,
                name: &str,
                value: &serde_json::Value,
            ) -> Result<bool, magnum_common::error::Fault> {
                use $crate::wire_value::WireValue;
                match name {
                    $(stringify!($field) => self.$field = WireValue::from_wire(name, value)?,)*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }
    };
}
pub(super) use wire_model;

/// The object with every field set and nothing changed, as a row that was just read. A field that the class
/// wants and the value does not have (the `id` of what is not inserted yet) stays not set.
pub fn encode<M: WireModel>(model: &M) -> Value {
    object_of(model, |_| true, &[]).encode()
}

/// As [`encode`], with these fields marked as changed.
pub fn encode_with_changes<M: WireModel>(model: &M, changed: &[&str]) -> Value {
    object_of(model, |_| true, changed).encode()
}

/// The object with only these fields set, all of them changed: how an object that is to be created travels.
pub fn encode_changed<M: WireModel>(model: &M, changed: &[&str]) -> Value {
    object_of(model, |name| changed.contains(&name), changed).encode()
}

/// The names of the fields in which two values differ, in wire order.
pub fn changed_fields<M: WireModel>(before: &M, after: &M) -> Vec<&'static str> {
    M::SCHEMA
        .fields
        .iter()
        .map(|field| field.name)
        .filter(|name| before.field(name) != after.field(name))
        .collect()
}

/// The object with the fields that `wanted` picks, with `changed` marked.
pub fn object_of<M: WireModel>(
    model: &M,
    wanted: impl Fn(&str) -> bool,
    changed: &[&str],
) -> VersionedObject {
    let mut object = VersionedObject::new(M::SCHEMA);
    for field in M::SCHEMA.fields {
        if !wanted(field.name) {
            continue;
        }
        let Some(value) = model.field(field.name) else {
            continue;
        };
        if value.is_null() && !field.nullable {
            continue;
        }
        // A value the class refuses can only be text of an old row (a COE that is gone): the peer could not
        // read the object with it, and can without it.
        if let Err(fault) = object.load(field.name, &value) {
            tracing::warn!(
                object = M::SCHEMA.name,
                field = field.name,
                "left out of a versioned object: {fault}"
            );
        }
    }
    for field in M::SCHEMA.fields {
        if changed.contains(&field.name) {
            object.mark_changed(field.name);
        }
    }
    object
}

/// An object that arrived, of the class of `M`.
#[derive(Debug, Clone, PartialEq)]
pub struct Received<M> {
    object: VersionedObject,
    model: PhantomData<fn() -> M>,
}

impl<M: WireModel> Received<M> {
    /// Reads one from a message.
    ///
    /// # Errors
    /// As [`VersionedObject::decode`], and `ValueError` for an object of another class.
    pub fn decode(value: &Value) -> Result<Self, Fault> {
        Self::from_object(VersionedObject::decode(value)?)
    }

    /// From an object that is decoded already.
    ///
    /// # Errors
    /// `ValueError` for an object of another class.
    pub fn from_object(object: VersionedObject) -> Result<Self, Fault> {
        if object.name() != M::SCHEMA.name {
            return Err(Fault::new(
                Exception::ValueError,
                format!(
                    "An object of type {} is required, not a {}",
                    M::SCHEMA.name,
                    object.name()
                ),
            ));
        }
        Ok(Self {
            object,
            model: PhantomData,
        })
    }

    /// The object.
    pub fn object(&self) -> &VersionedObject {
        &self.object
    }

    /// The object, owned.
    pub fn into_object(self) -> VersionedObject {
        self.object
    }

    /// The text of a field; `None` when it is not set or null.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.object.text(field)
    }

    /// The names of the changed fields.
    pub fn changes(&self) -> &[&'static str] {
        self.object.changes()
    }

    /// The value with all set fields; the others have their defaults.
    ///
    /// # Errors
    /// `ValueError` that names a field which is missing or which the rows cannot hold.
    pub fn model(&self) -> Result<M, Fault> {
        self.fill(M::blank(&self.object)?, |_| true)
    }

    /// The value to insert: only changed fields are taken; the others, also set ones, have their defaults.
    ///
    /// # Errors
    /// As [`Self::model`].
    pub fn created(&self) -> Result<M, Fault> {
        self.fill(M::blank(&self.object)?, |name| self.object.is_changed(name))
    }

    /// Takes the changed fields onto `current`, and says which they were. `id`, `created_at` and `updated_at`
    /// belong to the database and are left alone.
    ///
    /// # Errors
    /// `InvalidParameterValue` when the uuid was changed; `ValueError` as [`Self::model`]. `current` may have
    /// been changed in part then.
    pub fn apply(&self, current: &mut M) -> Result<Vec<&'static str>, Fault> {
        let mut applied = Vec::new();
        for name in self.object.changes() {
            let Some(value) = self.object.get(name) else {
                continue;
            };
            match *name {
                "id" | "created_at" | "updated_at" => continue,
                "uuid" if current.field(name).as_ref() == Some(value) => continue,
                "uuid" => {
                    return Err(Fault::invalid_parameter(format!(
                        "Cannot overwrite UUID for an existing {}.",
                        M::SCHEMA.name
                    )));
                }
                _ => {}
            }
            if current.set_field(name, value)? {
                applied.push(*name);
            }
        }
        Ok(applied)
    }

    fn fill(&self, mut model: M, wanted: impl Fn(&str) -> bool) -> Result<M, Fault> {
        for (name, value) in self.object.set_fields() {
            if wanted(name) {
                model.set_field(name, value)?;
            }
        }
        Ok(model)
    }
}

/// The text of a field without which there is no such thing.
///
/// # Errors
/// `ValueError` that names the field.
pub(super) fn wanted<'a>(object: &'a VersionedObject, field: &str) -> Result<&'a str, Fault> {
    object.text(field).ok_or_else(|| {
        Fault::new(
            Exception::ValueError,
            format!("Field `{field}' of {} is not set", object.name()),
        )
    })
}
