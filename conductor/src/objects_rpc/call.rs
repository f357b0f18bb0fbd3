//! What a message of the objects RPC asks for: which method of which object, and in which version the answer is
//! wanted.
//!
//! | method | arguments | answer |
//! |---|---|---|
//! | `object_class_action_versions` | objname, objmethod, object_versions, args, kwargs | an object in the version of the caller's manifest; a list as it is here; or plain |
//! | `object_class_action` | objname, objmethod, objver, args, kwargs | the same, from callers of before the manifest |
//! | `object_action` | objinst, objmethod, args, kwargs | `[updates, null]` |
//! | `object_backport_versions` | objinst, object_versions | the object with other labels |
//! | `object_backport` | objinst, target_version | the same |

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_db::AnyConnection;
use magnum_objects::{Schema, VersionedObject, is_object, tables, version};
use serde_json::{Map, Value, json};

use super::arguments::{Bound, Signature};
use super::class::{ClassMethod, InstanceMethod, Outcome};
use super::failure::Failure;
use super::instance::updates;
use super::key_pairs;
use super::methods::{class_method, instance_method};
use super::unsealing;
use crate::certificates::manager::Sealing;

/// The methods on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A method of a class, with the versions that the caller reads.
    ClassActionVersions,
    /// The same with one version, from older callers.
    ClassAction,
    /// A method of an object.
    Action,
    /// An object in versions that the caller reads.
    BackportVersions,
    /// The same with one version, from older callers.
    Backport,
}

const fn handler(name: &'static str, required: &'static [&'static str]) -> Signature {
    Signature {
        owner: "Handler",
        name,
        required,
        optional: &[],
    }
}

impl Method {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::ClassActionVersions,
        Self::ClassAction,
        Self::Action,
        Self::BackportVersions,
        Self::Backport,
    ];

    /// The method of that name on the wire.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|method| method.signature().name == name)
    }

    pub(super) fn signature(self) -> Signature {
        match self {
            Self::ClassActionVersions => handler(
                "object_class_action_versions",
                &["objname", "objmethod", "object_versions", "args", "kwargs"],
            ),
            Self::ClassAction => handler(
                "object_class_action",
                &["objname", "objmethod", "objver", "args", "kwargs"],
            ),
            Self::Action => handler("object_action", &["objinst", "objmethod", "args", "kwargs"]),
            Self::BackportVersions => handler("object_backport_versions", &["objinst", "object_versions"]),
            Self::Backport => handler("object_backport", &["objinst", "target_version"]),
        }
    }
}

/// A call with valid arguments.
#[derive(Debug)]
pub(super) enum Call {
    /// A method of a class.
    Class {
        method: &'static ClassMethod,
        arguments: Bound,
        /// Versions that the caller reads, by class.
        manifest: Map<String, Value>,
    },
    /// A method of an object.
    Instance {
        method: &'static InstanceMethod,
        object: Box<VersionedObject>,
        /// Seals a private key that is written.
        sealing: Option<Sealing>,
    },
    /// The result of a method that needs no database.
    Answered(Value),
}

impl Call {
    /// Reads the arguments of a method.
    ///
    /// # Errors
    /// What Python's conductor raises for the same: `TypeError` for arguments, `AttributeError` for a method,
    /// `UnsupportedObjectError` and `IncompatibleObjectVersion` for a class, `ValueError` for an object.
    pub(super) fn decode(method: Method, args: Map<String, Value>) -> Result<Self, Fault> {
        let mut args = method.signature().bind(Vec::new(), args)?;
        match method {
            Method::ClassActionVersions => {
                let class = text(&mut args, "objname")?;
                let manifest = map(&mut args, "object_versions")?;
                let version = version_for(&manifest, &class)?;
                Self::class_action(&class, &version, manifest, args)
            }
            Method::ClassAction => {
                let class = text(&mut args, "objname")?;
                let version = text(&mut args, "objver")?;
                Self::class_action(&class, &version, Map::new(), args)
            }
            Method::Action => {
                let object = object(&mut args)?;
                let method = instance_method(object.schema(), &text(&mut args, "objmethod")?)?;
                method
                    .signature
                    .bind(list(&mut args, "args")?, map(&mut args, "kwargs")?)?;
                Ok(Self::Instance {
                    method,
                    object: Box::new(object),
                    sealing: None,
                })
            }
            Method::BackportVersions => {
                let object = object(&mut args)?;
                let manifest = map(&mut args, "object_versions")?;
                version_for(&manifest, object.name())?;
                object.encode_for(&manifest).map(Self::Answered)
            }
            Method::Backport => {
                let object = object(&mut args)?;
                let target = args.take("target_version");
                let manifest = Map::from_iter([(object.name().to_owned(), target)]);
                version_for(&manifest, object.name())?;
                object.encode_for(&manifest).map(Self::Answered)
            }
        }
    }

    fn class_action(
        class: &str,
        version: &str,
        mut manifest: Map<String, Value>,
        mut args: Bound,
    ) -> Result<Self, Fault> {
        let schema = class_of(class)?;
        // As text: the third part of a version means nothing to either side.
        let kept = version::accept(schema, version)?;
        manifest.insert(class.to_owned(), json!(kept));
        let method = class_method(schema, &text(&mut args, "objmethod")?)?;
        let arguments = method
            .signature
            .bind(list(&mut args, "args")?, map(&mut args, "kwargs")?)?;
        Ok(Self::Class {
            method,
            arguments,
            manifest,
        })
    }

    /// The same, sealing private keys that it writes.
    pub(super) fn with_sealing(mut self, with: Option<&Sealing>) -> Self {
        if let Self::Instance { sealing, .. } = &mut self {
            *sealing = with.cloned();
        }
        self
    }

    /// Whether it changes rows.
    pub(super) fn changes(&self) -> bool {
        match self {
            Self::Class { method, .. } => method.changes,
            Self::Instance { method, .. } => method.changes,
            Self::Answered(_) => false,
        }
    }

    /// The class and the method, for the log.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Class { method, .. } => format!("{}.{}", method.signature.owner, method.signature.name),
            Self::Instance { method, .. } => format!("{}.{}", method.signature.owner, method.signature.name),
            Self::Answered(_) => "backport".to_owned(),
        }
    }

    /// Carries out the call, once. May be repeated after its transaction was rolled back.
    ///
    /// # Errors
    /// The caller gets a fault, or the database failed: see [`Failure`].
    pub(super) fn run(&self, conn: &mut AnyConnection, context: &RequestContext) -> Result<Value, Failure> {
        self.run_with(conn, context, |object, _| Ok(object.encode()))
    }

    /// The same for a plug-in host: the objects of a list come in the versions that it reads, too.
    ///
    /// # Errors
    /// As those of [`Call::run`].
    pub(super) fn run_for_host(
        &self,
        conn: &mut AnyConnection,
        context: &RequestContext,
    ) -> Result<Value, Failure> {
        self.run_with(conn, context, VersionedObject::encode_for)
    }

    fn run_with(
        &self,
        conn: &mut AnyConnection,
        context: &RequestContext,
        listed: impl Fn(&VersionedObject, &Map<String, Value>) -> Result<Value, Fault>,
    ) -> Result<Value, Failure> {
        match self {
            Self::Class {
                method,
                arguments,
                manifest,
            } => Ok(match (method.run)(conn, context, arguments.clone())? {
                Outcome::Object(object) => object.encode_for(manifest)?,
                Outcome::Objects(objects) => {
                    let encoded: Result<Value, Fault> =
                        objects.iter().map(|object| listed(object, manifest)).collect();
                    encoded?
                }
                Outcome::Plain(value) => value,
            }),
            Self::Instance {
                method,
                object,
                sealing,
            } => {
                let mut after = (**object).clone();
                if let Some(sealing) = sealing.as_ref().filter(|_| method.changes) {
                    unsealing::close(&mut after, sealing)?;
                }
                (method.run)(conn, context, &mut after)?;
                Ok(json!([updates(object, &after), null]))
            }
            Self::Answered(value) => Ok(value.clone()),
        }
    }

    /// The reply as it may be stored for a redelivery: without private keys.
    pub(super) fn storable(&self, answer: &Value) -> Value {
        let mut storable = answer.clone();
        if let Self::Instance { object, .. } = self
            && object.name() == key_pairs::CLASS.schema.name
            && let Some(updates) = storable.get_mut(0).and_then(Value::as_object_mut)
        {
            for field in key_pairs::SECRETS {
                updates.shift_remove(*field);
            }
        }
        storable
    }
}

fn class_of(name: &str) -> Result<&'static Schema, Fault> {
    tables::find(name).ok_or_else(|| {
        let mut fault = Fault::new(
            Exception::UnsupportedObjectError,
            format!("Unsupported object type {name}"),
        );
        fault.kwargs.insert("objtype".into(), json!(name));
        fault.kwargs.insert("code".into(), json!(500));
        fault
    })
}

/// The version of a class that the caller reads, from its manifest.
fn version_for(manifest: &Map<String, Value>, class: &str) -> Result<String, Fault> {
    match manifest.get(class) {
        None => Err(Fault::new(Exception::KeyError, format!("'{class}'"))),
        Some(Value::String(version)) => Ok(version.clone()),
        Some(_) => Err(Fault::new(
            Exception::TypeError,
            format!("the version of {class} must be a string like 1.24"),
        )),
    }
}

fn object(args: &mut Bound) -> Result<VersionedObject, Fault> {
    let value = args.take("objinst");
    if is_object(&value) {
        VersionedObject::decode(&value)
    } else {
        Err(Fault::new(
            Exception::AttributeError,
            "objinst must be a versioned object",
        ))
    }
}

fn wrong(name: &str, expected: &str) -> Fault {
    Fault::new(Exception::TypeError, format!("{name} must be {expected}"))
}

fn text(args: &mut Bound, name: &str) -> Result<String, Fault> {
    match args.take(name) {
        Value::String(text) => Ok(text),
        _ => Err(wrong(name, "a string")),
    }
}

fn list(args: &mut Bound, name: &str) -> Result<Vec<Value>, Fault> {
    match args.take(name) {
        Value::Array(items) => Ok(items),
        _ => Err(wrong(name, "a list")),
    }
}

fn map(args: &mut Bound, name: &str) -> Result<Map<String, Value>, Fault> {
    match args.take(name) {
        Value::Object(entries) => Ok(entries),
        _ => Err(wrong(name, "a map")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(name: &str, args: Value) -> Result<Call, Fault> {
        let Value::Object(args) = args else {
            panic!("a map");
        };
        Call::decode(Method::of(name).unwrap(), args)
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers write JSON on the spot")]
    fn class_action(class: &str, method: &str, versions: Value) -> Result<Call, Fault> {
        decode(
            "object_class_action_versions",
            json!({"objname": class, "objmethod": method, "object_versions": versions, "args": ["u"], "kwargs": {}}),
        )
    }

    fn template(version: &str) -> Value {
        json!({"magnum_object.name": "ClusterTemplate", "magnum_object.namespace": "magnum",
               "magnum_object.version": version, "magnum_object.data": {"name": "t"}})
    }

    #[test]
    fn only_these_five_methods_exist() {
        for method in Method::ALL {
            assert_eq!(Method::of(method.signature().name), Some(*method));
        }
        assert_eq!(Method::of("object_class"), None);
    }

    #[test]
    fn a_class_and_its_version_are_checked_before_the_method() {
        let refused = |call: Result<Call, Fault>| {
            let fault = call.unwrap_err();
            (fault.exception, fault.message)
        };
        assert!(class_action("Cluster", "get_by_uuid", json!({"Cluster": "1.24"})).is_ok());
        assert!(class_action("Cluster", "get_by_uuid", json!({"Cluster": "1.20"})).is_ok());
        assert_eq!(
            refused(class_action("Cluster", "get_by_uuid", json!({"Quota": "1.0"}))),
            (Exception::KeyError, "'Cluster'".to_owned())
        );
        assert_eq!(
            refused(class_action("Bay", "get", json!({"Bay": "1.0"}))),
            (
                Exception::UnsupportedObjectError,
                "Unsupported object type Bay".to_owned()
            )
        );
        assert_eq!(
            refused(class_action("Cluster", "paint", json!({"Cluster": "1.25"}))).0,
            Exception::IncompatibleObjectVersion
        );
        assert_eq!(
            refused(class_action("Cluster", "paint", json!({"Cluster": "1.24"}))).0,
            Exception::AttributeError
        );
    }

    #[test]
    fn caller_without_a_manifest_names_one_version() {
        let call = decode(
            "object_class_action",
            json!({"objname": "Cluster", "objmethod": "get", "objver": "1.23", "args": [1], "kwargs": {}}),
        );
        let Call::Class { manifest, .. } = call.unwrap() else {
            panic!("a class method");
        };
        assert_eq!(Value::Object(manifest), json!({"Cluster": "1.23"}));
    }

    #[test]
    fn a_backport_is_answered_without_a_database() {
        let call = decode(
            "object_backport_versions",
            json!({"objinst": template("1.21"), "object_versions": {"ClusterTemplate": "1.20"}}),
        );
        let Call::Answered(answer) = call.unwrap() else {
            panic!("an answer");
        };
        assert_eq!(answer, template("1.20"));
        let call = decode(
            "object_backport",
            json!({"objinst": template("1.21"), "target_version": "1.19"}),
        );
        let Call::Answered(answer) = call.unwrap() else {
            panic!("an answer");
        };
        assert_eq!(answer, template("1.19"));
        let newer = decode(
            "object_backport",
            json!({"objinst": template("1.21"), "target_version": "1.22"}),
        );
        assert_eq!(newer.unwrap_err().exception, Exception::InvalidTargetVersion);
    }

    #[test]
    fn arguments_of_the_wrong_type_are_refused_by_name() {
        for (args, name) in [
            (
                json!({"objinst": template("1.21"), "objmethod": "save", "args": {}, "kwargs": {}}),
                "args",
            ),
            (
                json!({"objinst": template("1.21"), "objmethod": "save", "args": [], "kwargs": []}),
                "kwargs",
            ),
            (
                json!({"objinst": template("1.21"), "objmethod": 5, "args": [], "kwargs": {}}),
                "objmethod",
            ),
            (
                json!({"objinst": {}, "objmethod": "save", "args": [], "kwargs": {}}),
                "objinst",
            ),
            (json!({"objmethod": "save", "args": [], "kwargs": {}}), "objinst"),
            (
                json!({"objinst": template("1.21"), "objmethod": "save", "args": [1], "kwargs": {}}),
                "ClusterTemplate.save() takes 2 positional arguments but 3",
            ),
        ] {
            let fault = decode("object_action", args).unwrap_err();
            assert!(fault.message.contains(name), "{fault}");
        }
    }

    #[test]
    fn stored_reply_has_no_private_key() {
        let pair = json!({"magnum_object.name": "X509KeyPair", "magnum_object.namespace": "magnum",
                          "magnum_object.version": "1.2", "magnum_object.data": {}});
        let call = decode(
            "object_action",
            json!({"objinst": pair, "objmethod": "create", "args": [], "kwargs": {}}),
        );
        let answer = json!([{"id": 1, "private_key": "k", "private_key_passphrase": "p"}, null]);
        assert_eq!(call.unwrap().storable(&answer), json!([{"id": 1}, null]));
    }
}
