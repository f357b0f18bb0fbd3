//! What may be asked about certificates.

use magnum_common::error::Fault;
use serde_json::{Map, Value};

use super::body::{Field, Kind, NAME, invalid};

/// The body's name in error texts.
pub const ARGUMENT: &str = "certificate";

/// The CAs of a cluster. The third and fourth are one.
pub const KINDS: &[&str] = &["kubernetes", "etcd", "front-proxy", "front_proxy"];

/// The attributes, in the order of the contract.
pub const FIELDS: &[Field] = &[
    Field::mandatory("cluster_uuid", NAME),
    Field::read_only("links"),
    Field::mandatory("csr", Kind::Text { min: 1, max: 65_535 }),
    // Taken and ignored.
    Field::ignored("pem", Kind::Any),
    Field::new("ca_cert_type", Kind::Choice(KINDS)),
    Field::read_only("created_at"),
    Field::read_only("updated_at"),
];

/// A signature that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The cluster's uuid or name.
    pub cluster: String,
    /// The request, as PEM.
    pub csr: String,
    /// The CA that signs it.
    pub kind: Option<String>,
}

/// Reads a request for a signature that was read by its fields.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn wanted(given: &Map<String, Value>) -> Result<Wanted, Fault> {
    let text = |name: &str| given.get(name).and_then(Value::as_str).map(str::to_owned);
    let needed = |name| text(name).ok_or_else(|| invalid(name, &Value::Null, "Mandatory field missing."));
    Ok(Wanted {
        cluster: needed("cluster_uuid")?,
        csr: needed("csr")?,
        kind: text("ca_cert_type"),
    })
}

/// Refuses a CA that no cluster has.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn check_kind(kind: Option<&str>) -> Result<(), Fault> {
    match kind {
        Some(kind) if !KINDS.contains(&kind) => {
            let mut kinds = KINDS.to_vec();
            kinds.sort_unstable();
            let reason = format!("Value should be one of: {}", kinds.join(", "));
            Err(invalid("ca_cert_type", &Value::String(kind.to_owned()), &reason))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::body;

    #[test]
    fn a_signature_needs_a_cluster_and_a_request() {
        let read = |given: Value| body::read(ARGUMENT, &given, FIELDS).and_then(|given| wanted(&given));
        let asked = read(json!({"cluster_uuid": "c", "csr": "x", "pem": 1, "ca_cert_type": null})).unwrap();
        assert_eq!(
            (asked.cluster.as_str(), asked.csr.as_str(), asked.kind),
            ("c", "x", None)
        );
        for given in [
            json!({"csr": "x"}),
            json!({"cluster_uuid": null, "csr": "x"}),
            json!({"cluster_uuid": "c"}),
            json!({"cluster_uuid": "c", "csr": null}),
        ] {
            let fault = read(given).unwrap_err();
            assert!(
                fault.message.ends_with("Mandatory field missing."),
                "{}",
                fault.message
            );
        }
    }

    #[test]
    fn unknown_ca_error_lists_the_known_ones() {
        for kind in [
            None,
            Some("etcd"),
            Some("front_proxy"),
            Some("front-proxy"),
            Some("kubernetes"),
        ] {
            assert_eq!(check_kind(kind), Ok(()));
        }
        let fault = check_kind(Some("nope")).unwrap_err();
        assert!(
            fault
                .message
                .ends_with("one of: etcd, front-proxy, front_proxy, kubernetes")
        );
        let given = json!({"cluster_uuid": "c", "csr": "x", "ca_cert_type": "nope"});
        let of_body = body::read(ARGUMENT, &given, FIELDS).unwrap_err();
        assert_eq!(of_body.message, fault.message);
    }
}
