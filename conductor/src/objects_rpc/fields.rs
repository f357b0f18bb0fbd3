//! Reading the fields by which an object that a caller sent is found, with Magnum's exceptions for those that are not set.

use magnum_common::error::{Exception, Fault};
use magnum_objects::VersionedObject;
use uuid::Uuid;

use super::identity;

/// The text of a field by which an object is found.
///
/// # Errors
/// What Magnum's classes raise for a field that is not set.
pub(super) fn text<'a>(object: &'a VersionedObject, field: &str) -> Result<&'a str, Fault> {
    match object.get(field) {
        None => Err(not_set(object, field)),
        Some(value) => value
            .as_str()
            .ok_or_else(|| identity::invalid(&identity::python_str(value))),
    }
}

/// The uuid of an object that is to be written.
///
/// # Errors
/// `InvalidIdentity` for what is no uuid.
pub(super) fn uuid(object: &VersionedObject) -> Result<&str, Fault> {
    let uuid = text(object, "uuid")?;
    if Uuid::try_parse(uuid).is_ok() {
        Ok(uuid)
    } else {
        Err(identity::invalid(uuid))
    }
}

/// The row number of an object.
///
/// # Errors
/// What Magnum's classes raise for a field that is not set; `None` for a number that no row can have.
pub(super) fn number(object: &VersionedObject, field: &str) -> Result<Option<i32>, Fault> {
    object
        .get(field)
        .map(identity::number)
        .ok_or_else(|| not_set(object, field))
}

fn not_set(object: &VersionedObject, field: &str) -> Fault {
    match object.name() {
        "Cluster" => Fault::new(
            Exception::ObjectError,
            format!("Field `{field}' of Cluster is not set, and cannot be loaded."),
        ),
        _ => Fault::new(
            Exception::NotImplementedError,
            format!("Cannot load '{field}' in the base class"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use magnum_objects::tables;
    use serde_json::{Value, json};

    use super::*;

    fn cluster(data: Value) -> VersionedObject {
        let mut object = json!({"magnum_object.name": "Cluster", "magnum_object.namespace": "magnum",
                                "magnum_object.version": "1.24"});
        object["magnum_object.data"] = data;
        VersionedObject::decode(&object).unwrap()
    }

    #[test]
    fn unset_field_raises_the_exception_of_its_class() {
        let nothing = VersionedObject::new(&tables::CLUSTER);
        assert_eq!(uuid(&nothing).unwrap_err().exception, Exception::ObjectError);
        let nothing = VersionedObject::new(&tables::FEDERATION);
        assert_eq!(
            uuid(&nothing).unwrap_err().exception,
            Exception::NotImplementedError
        );
        let null = cluster(json!({"uuid": null}));
        assert_eq!(uuid(&null).unwrap_err().exception, Exception::InvalidIdentity);
        let odd = cluster(json!({"uuid": "x"}));
        assert_eq!(
            uuid(&odd).unwrap_err().message,
            "Expected an uuid or int but received x."
        );
    }
}
