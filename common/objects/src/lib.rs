//! Versioned objects: how a cluster, a template or a node group travels in a message.
//!
//! oslo.versionedobjects sends an object as a JSON object of five keys: class name, namespace, version, the
//! fields that are *set*, and the names of those that were *changed*. The distinction between "not set" and
//! null matters (an insert or an update touches only changed fields), so [`VersionedObject`] keeps it, and the
//! typed conversions ([`Received`]) say which of the two readings they use.
//!
//! | module | topic |
//! |---|---|
//! | [`schema`], [`tables`] | what fields each class has, in wire order; the fingerprint that pins them |
//! | [`coerce`] | which wire values a field takes, and what it makes of them |
//! | [`version`] | which versions of a sender we read |
//! | [`object`] | decoding and encoding of any object |
//! | [`convert`], [`wire_value`], [`records`] | objects from and to the types of [`magnum_common::model`] |
//! | [`cluster`], [`cluster_template`], [`node_group`] | the short way for the three that most calls carry |
//!
//! Guarantees: what Python sent re-encodes equal; unknown fields are dropped, also from the list of changes; the
//! sender's version is echoed; no input can make decoding panic, and every refusal is a [`magnum_common::error::Fault`]
//! that names the field. Not guaranteed: that a uuid looks like one (Magnum only warns).
//!
//! Where we differ from Magnum: an enumeration error names the field and the allowed values; a malformed
//! envelope is a `ValueError` with a sentence where Python raises whatever its expression happened to raise; a
//! text where a list is wanted is refused instead of being cut into letters.

pub mod cluster;
pub mod cluster_template;
pub mod coerce;
pub mod convert;
pub mod node_group;
pub mod object;
pub mod records;
pub mod schema;
pub mod tables;
pub mod version;
pub mod wire_value;

pub use convert::{
    Received, WireModel, changed_fields, encode, encode_changed, encode_with_changes, object_of,
};
pub use object::{VersionedObject, class_name, is_object};
pub use schema::{Field, FieldKind, Schema};
