//! A class of Magnum's objects: the tables of its methods, and the outcome of a method.

use magnum_common::context::RequestContext;
use magnum_db::AnyConnection;
use magnum_objects::{Schema, VersionedObject, WireModel, object_of};
use serde_json::Value;

use super::arguments::{Bound, Signature};
use super::failure::Failure;

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

/// A table of class methods: `reads` or `changes`, name, parameters without and with a default, function.
macro_rules! class_methods {
    ($class:literal; $($effect:ident $name:literal ($($required:ident)* ; $($optional:ident)*) $run:expr,)*) => {
        &[$($crate::objects_rpc::class::ClassMethod {
            signature: $crate::objects_rpc::arguments::Signature {
                owner: $class,
                name: $name,
                required: &[$(stringify!($required)),*],
                optional: &[$(stringify!($optional)),*],
            },
            changes: $crate::objects_rpc::class::changes!($effect),
            run: $run,
        }),*]
    };
}

/// A table of instance methods: `reads` or `changes`, name, function.
macro_rules! instance_methods {
    ($class:literal; $($effect:ident $name:literal $run:expr,)*) => {
        &[$($crate::objects_rpc::class::InstanceMethod {
            signature: $crate::objects_rpc::arguments::Signature {
                owner: $class,
                name: $name,
                required: &[],
                optional: &[],
            },
            changes: $crate::objects_rpc::class::changes!($effect),
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
