//! The attributes of a quota. A body that names no limit means 1, in a change as well: as in Magnum.

use magnum_common::error::Fault;
use serde_json::{Map, Value};

use super::body::{Field, Kind, NAME, at_least, invalid};

/// The create body's name in error texts.
pub const ARGUMENT: &str = "quota";
/// The change body's name in error texts.
pub const PATCH_ARGUMENT: &str = "quotapatch";

/// The only resource that is limited.
pub const CLUSTER: &str = "Cluster";

/// The attributes, in the order of the contract.
pub const FIELDS: &[Field] = &[
    // Taken and ignored: the database chooses it.
    Field::ignored("id", Kind::Any),
    Field::new("hard_limit", at_least(0)),
    Field::new("project_id", NAME),
    Field::new("resource", Kind::Choice(&[CLUSTER])),
    Field::read_only("created_at"),
    Field::read_only("updated_at"),
];

/// The limit in a body that was read by its fields.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn hard_limit(given: &Map<String, Value>) -> Result<i32, Fault> {
    match given.get("hard_limit") {
        None => Ok(1),
        Some(value) => value
            .as_i64()
            .and_then(|limit| i32::try_from(limit).ok())
            .ok_or_else(|| invalid("hard_limit", value, "Value should be greater or equal to 0")),
    }
}

/// Whose limit a create body is about.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn project(given: &Map<String, Value>) -> Result<String, Fault> {
    given
        .get("project_id")
        .and_then(Value::as_str)
        .map(str::to_owned)
        .ok_or_else(|| Fault::invalid_parameter("Must provide a valid project ID."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::body;

    #[test]
    fn limit_defaults_to_one_and_is_never_null() {
        let read = |given: Value| body::read(ARGUMENT, &given, FIELDS).and_then(|given| hard_limit(&given));
        assert_eq!(read(json!({})), Ok(1));
        assert_eq!(read(json!({"hard_limit": "7"})), Ok(7));
        for given in [json!({"hard_limit": null}), json!({"hard_limit": -1})] {
            assert!(read(given).unwrap_err().message.contains("attribute hard_limit"));
        }
    }

    #[test]
    fn a_quota_is_somebodys() {
        let read = |given: Value| body::read(ARGUMENT, &given, FIELDS).and_then(|given| project(&given));
        assert_eq!(read(json!({"project_id": "p"})), Ok("p".into()));
        for given in [json!({}), json!({"project_id": null})] {
            assert_eq!(
                read(given).unwrap_err().message,
                "Must provide a valid project ID."
            );
        }
        let given = json!({"project_id": "p", "resource": "Node"});
        assert!(read(given).unwrap_err().message.ends_with("one of: Cluster"));
    }
}
