//! The attributes of a federation, and what a patch may change of one: its members, one cluster at a time, and its
//! properties.

use magnum_common::error::{Exception, Fault};
use magnum_common::model::{Federation, StringMap};
use serde_json::{Map, Value, json};

use super::body::{Field, Kind, LONG, PLAIN, check};
use super::labels;
use super::patch::{Membership, Patch, Rules, apply};

/// The body's name in error texts.
pub const ARGUMENT: &str = "federation";

/// The attributes, in the order of the contract.
pub const FIELDS: &[Field] = &[
    Field::new("uuid", Kind::Uuid),
    Field::new("name", Kind::ClusterName),
    Field::new("hostcluster_id", PLAIN),
    Field::new("member_ids", Kind::Texts),
    Field::new("status", Kind::Choice(STATUSES)),
    Field::new("status_reason", LONG),
    Field::new("properties", Kind::Strings),
    Field::read_only("links"),
    Field::read_only("created_at"),
    Field::read_only("updated_at"),
];

const STATUSES: &[&str] = &[
    "CREATE_IN_PROGRESS",
    "CREATE_FAILED",
    "CREATE_COMPLETE",
    "UPDATE_IN_PROGRESS",
    "UPDATE_FAILED",
    "UPDATE_COMPLETE",
    "DELETE_IN_PROGRESS",
    "DELETE_FAILED",
    "DELETE_COMPLETE",
];

/// What a patch may not touch. Properties are patched one by one: a text does not stand for all of them here.
pub const PATCH_RULES: Rules = Rules {
    internal: &[],
    mandatory: &[],
    dictionaries: &[],
    lists: &[],
};

/// The host cluster that a create body names; it has to exist.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn host(given: &Map<String, Value>) -> Result<String, Fault> {
    let named = given.get("hostcluster_id").and_then(Value::as_str);
    named
        .map(str::to_owned)
        .ok_or_else(|| Fault::invalid_parameter("No hostcluster specified. Please specify a hostcluster_id."))
}

/// Whether a create body has the properties that a federation needs.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn check_properties(given: &Map<String, Value>) -> Result<(), Fault> {
    let Some(properties) = given.get("properties").and_then(Value::as_object) else {
        return Err(Fault::invalid_parameter(
            "Please specify a `properties` dict for the federation.",
        ));
    };
    if properties.get("dns-zone").is_none_or(Value::is_null) {
        return Err(Fault::invalid_parameter(
            "No DNS zone specified. Please specify a `dns-zone`.",
        ));
    }
    Ok(())
}

/// The answer to a wish for a federation.
pub fn not_implemented() -> Fault {
    Fault::new(
        Exception::NotImplementedError,
        "Federations cannot be created: no release of Magnum implements them.",
    )
}

/// Lets a cluster join or leave. `cluster` is its uuid.
///
/// # Errors
/// 409 for a cluster that has joined already, 404 for one that is to leave and is no member.
pub fn move_member(federation: &mut Federation, membership: &Membership, cluster: &str) -> Result<(), Fault> {
    let name = federation.name.as_deref().unwrap_or_default();
    let is_member = federation.member_ids.iter().any(|member| member == cluster);
    match membership {
        Membership::Join(_) if is_member => Err(Fault::new(
            Exception::MemberAlreadyExists,
            format!("A cluster with UUID {cluster} is already a member of the federation {name}."),
        )),
        Membership::Join(_) => {
            federation.member_ids.push(cluster.to_owned());
            Ok(())
        }
        Membership::Leave(_) if !is_member => Err(Fault::new(
            Exception::HTTPNotFound,
            format!("Cluster {cluster} is not a member of the federation {name}."),
        )),
        Membership::Leave(_) => {
            federation.member_ids.retain(|member| member != cluster);
            Ok(())
        }
    }
}

/// The federation as the rest of a patch makes it.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn change(patch: &Patch, federation: &Federation) -> Result<Federation, Fault> {
    let before = document(federation);
    let mut patched = apply(patch, before.clone(), &PATCH_RULES)?;
    check(&mut patched, &before, FIELDS)?;
    let changed = |name: &&String| patched.get(*name).unwrap_or(&Value::Null) != &before[*name];
    let mut refused: Vec<&str> = before
        .keys()
        .filter(changed)
        .map(String::as_str)
        .filter(|name| !["member_ids", "properties"].contains(name))
        .collect();
    if !refused.is_empty() {
        refused.sort_unstable();
        return Err(Fault::invalid_parameter(format!(
            "cannot change federation property(ies) {}.",
            refused.join(", ")
        )));
    }
    let members = patched.get("member_ids").and_then(Value::as_array);
    let texts = members.into_iter().flatten().filter_map(Value::as_str);
    let properties = patched.get("properties").and_then(Value::as_object);
    Ok(Federation {
        member_ids: texts.map(str::to_owned).collect(),
        properties: properties.map_or_else(StringMap::new, labels::stored),
        ..federation.clone()
    })
}

fn document(federation: &Federation) -> Map<String, Value> {
    let pairs = [
        ("name", json!(federation.name)),
        ("hostcluster_id", json!(federation.hostcluster_id)),
        ("member_ids", json!(federation.member_ids)),
        ("status", json!(federation.status)),
        ("status_reason", json!(federation.status_reason)),
        ("properties", json!(federation.properties)),
    ];
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::patch;

    fn federation() -> Federation {
        Federation {
            id: Some(1),
            uuid: Some("f".into()),
            name: Some("fed".into()),
            project_id: Some("p".into()),
            hostcluster_id: Some("h".into()),
            member_ids: vec!["m".into()],
            status: Some("CREATE_COMPLETE".into()),
            status_reason: None,
            properties: StringMap::from_iter([("dns-zone".to_owned(), "a.".to_owned())]),
            created_at: None,
            updated_at: None,
        }
    }

    fn changed(operations: &Value) -> Result<Federation, String> {
        patch::read(operations, &PATCH_RULES)
            .and_then(|patch| change(&patch, &federation()))
            .map_err(|fault| fault.message)
    }

    #[test]
    fn clusters_join_and_leave_once() {
        let (join, leave) = (Membership::Join(String::new()), Membership::Leave(String::new()));
        let mut federation = federation();
        assert_eq!(move_member(&mut federation, &join, "n"), Ok(()));
        assert_eq!(federation.member_ids, ["m", "n"]);
        assert_eq!(move_member(&mut federation, &join, "n").unwrap_err().code(), 409);
        assert_eq!(move_member(&mut federation, &leave, "m"), Ok(()));
        let fault = move_member(&mut federation, &leave, "m").unwrap_err();
        assert_eq!(fault.code(), 404);
        assert_eq!(fault.message, "Cluster m is not a member of the federation fed.");
    }

    #[test]
    fn properties_change_one_by_one_and_nothing_else_does() {
        let after =
            changed(&json!([{"op": "replace", "path": "/properties/dns-zone", "value": "b."}])).unwrap();
        assert_eq!(after.properties["dns-zone"], "b.");
        assert_eq!(
            changed(&json!([{"op": "replace", "path": "/name", "value": "x"}])),
            Err("cannot change federation property(ies) name.".into())
        );
        assert_eq!(
            changed(&json!([{"op": "remove", "path": "/status"}])),
            Err("cannot change federation property(ies) status.".into())
        );
        let told = changed(&json!([{"op": "replace", "path": "/properties", "value": "{'dns-zone': 'y.'}"}]));
        assert!(
            told.unwrap_err()
                .contains("Expected '{<class 'str'>: <class 'str'>}', got '<class 'str'>'")
        );
        let emptied = changed(&json!([{"op": "remove", "path": "/member_ids"}])).unwrap();
        assert!(emptied.member_ids.is_empty());
    }

    #[test]
    fn a_federation_needs_a_host_and_a_zone() {
        let Value::Object(given) = json!({"properties": {"other": "x"}}) else {
            unreachable!()
        };
        assert!(host(&given).unwrap_err().message.contains("hostcluster_id"));
        assert!(check_properties(&given).unwrap_err().message.contains("dns-zone"));
        assert!(
            check_properties(&Map::new())
                .unwrap_err()
                .message
                .contains("`properties` dict")
        );
    }
}
