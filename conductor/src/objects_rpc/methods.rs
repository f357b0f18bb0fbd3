//! The tables of the methods of each class, and the outcome of a method.

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_db::AnyConnection;
use magnum_objects::{Schema, VersionedObject, WireModel, object_of};
use serde_json::Value;

use super::arguments::{Bound, Signature};
use super::failure::Failure;
use super::{clusters, federations, key_pairs, node_groups, quotas, services, stats, templates};

/// A class and its methods.
#[derive(Debug)]
pub struct Class {
    /// Its fields and version.
    pub schema: &'static Schema,
    /// Methods of the class itself.
    pub class_methods: &'static [ClassMethod],
    /// Methods of an object.
    pub instance_methods: &'static [InstanceMethod],
}

/// A method of a class.
#[derive(Debug)]
pub struct ClassMethod {
    /// Name and parameters.
    pub signature: Signature,
    /// Whether it changes rows: then its reply is stored, and sent again for a redelivery.
    pub changes: bool,
    pub(super) run: fn(&mut AnyConnection, &RequestContext, Bound) -> Result<Outcome, Failure>,
}

/// A method of an object. None takes arguments.
#[derive(Debug)]
pub struct InstanceMethod {
    /// Name, without parameters.
    pub signature: Signature,
    /// As [`ClassMethod::changes`].
    pub changes: bool,
    pub(super) run: fn(&mut AnyConnection, &RequestContext, &mut VersionedObject) -> Result<(), Failure>,
}

/// What a class method returns.
#[derive(Debug)]
pub(super) enum Outcome {
    /// An object, encoded in the version that the caller reads.
    Object(VersionedObject),
    /// Objects, encoded in the version of this release.
    Objects(Vec<VersionedObject>),
    /// Anything else.
    Plain(Value),
}

impl Outcome {
    /// A row that was read: everything set, nothing changed.
    pub(super) fn of<M: WireModel>(model: &M) -> Self {
        Self::Object(object_of(model, |_| true, &[]))
    }

    /// Rows that were read.
    pub(super) fn all<M: WireModel>(models: &[M]) -> Self {
        Self::Objects(
            models
                .iter()
                .map(|model| object_of(model, |_| true, &[]))
                .collect(),
        )
    }
}

/// Every class that has methods. `Certificate` has none.
pub const CLASSES: &[&Class] = &[
    &clusters::CLASS,
    &templates::CLASS,
    &node_groups::CLASS,
    &key_pairs::CLASS,
    &services::CLASS,
    &quotas::CLASS,
    &federations::CLASS,
    &stats::CLASS,
];

fn methods_of(schema: &Schema) -> Option<&'static Class> {
    CLASSES
        .iter()
        .copied()
        .find(|class| class.schema.name == schema.name)
}

/// The method of that name of a class.
///
/// # Errors
/// `AttributeError`, with Python's text.
pub(super) fn class_method(schema: &Schema, name: &str) -> Result<&'static ClassMethod, Fault> {
    methods_of(schema)
        .and_then(|class| {
            class
                .class_methods
                .iter()
                .find(|method| method.signature.name == name)
        })
        .ok_or_else(|| {
            let text = format!("type object '{}' has no attribute '{name}'", schema.name);
            Fault::new(Exception::AttributeError, text)
        })
}

/// The method of that name of an object.
///
/// # Errors
/// `AttributeError`, with Python's text.
pub(super) fn instance_method(schema: &Schema, name: &str) -> Result<&'static InstanceMethod, Fault> {
    methods_of(schema)
        .and_then(|class| {
            class
                .instance_methods
                .iter()
                .find(|method| method.signature.name == name)
        })
        .ok_or_else(|| {
            let text = format!("'{}' object has no attribute '{name}'", schema.name);
            Fault::new(Exception::AttributeError, text)
        })
}

/// A table of class methods: `reads` or `changes`, name, parameters without and with a default, function.
macro_rules! class_methods {
    ($class:literal; $($effect:ident $name:literal ($($required:ident)* ; $($optional:ident)*) $run:expr,)*) => {
        &[$($crate::objects_rpc::methods::ClassMethod {
            signature: $crate::objects_rpc::arguments::Signature {
                owner: $class,
                name: $name,
                required: &[$(stringify!($required)),*],
                optional: &[$(stringify!($optional)),*],
            },
            changes: $crate::objects_rpc::methods::changes!($effect),
            run: $run,
        }),*]
    };
}

/// A table of instance methods: `reads` or `changes`, name, function.
macro_rules! instance_methods {
    ($class:literal; $($effect:ident $name:literal $run:expr,)*) => {
        &[$($crate::objects_rpc::methods::InstanceMethod {
            signature: $crate::objects_rpc::arguments::Signature {
                owner: $class,
                name: $name,
                required: &[],
                optional: &[],
            },
            changes: $crate::objects_rpc::methods::changes!($effect),
            run: $run,
        }),*]
    };
}

/// Whether a method changes rows, by the word in the tables.
macro_rules! changes {
    (reads) => {
        false
    };
    (changes) => {
        true
    };
}

pub(super) use {changes, class_methods, instance_methods};

#[cfg(test)]
mod tests {
    use magnum_objects::tables;

    use super::*;

    #[test]
    fn only_methods_of_the_tables_can_be_called() {
        assert!(class_method(&tables::CLUSTER, "get_by_uuid").is_ok());
        assert!(instance_method(&tables::CLUSTER, "save").is_ok());
        for name in ["obj_name", "create", "__init__", "_from_db_object", "paint"] {
            let fault = class_method(&tables::CLUSTER, name).unwrap_err();
            assert_eq!(fault.exception, Exception::AttributeError);
            assert_eq!(
                fault.message,
                format!("type object 'Cluster' has no attribute '{name}'")
            );
        }
        let fault = instance_method(&tables::CERTIFICATE, "create").unwrap_err();
        assert_eq!(fault.message, "'Certificate' object has no attribute 'create'");
    }

    #[test]
    fn every_method_names_its_own_class_and_no_name_stands_twice() {
        for class in CLASSES {
            let classes = class.class_methods.iter().map(|method| method.signature);
            let instances = class.instance_methods.iter().map(|method| method.signature);
            let mut names = Vec::new();
            for signature in classes.chain(instances) {
                assert_eq!(signature.owner, class.schema.name);
                assert!(!names.contains(&signature.name), "{}", signature.name);
                names.push(signature.name);
            }
        }
    }
}
