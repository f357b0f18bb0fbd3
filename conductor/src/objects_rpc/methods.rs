//! All classes, and the look-up of their methods by name.

use magnum_common::error::{Exception, Fault};
use magnum_objects::Schema;

use super::class::{Class, ClassMethod, InstanceMethod};
use super::{clusters, federations, key_pairs, node_groups, quotas, services, stats, templates};

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
