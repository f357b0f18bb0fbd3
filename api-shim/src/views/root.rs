//! Version discovery: `/` and `/v1`.
//!
//! Differs from Magnum: `/v1` has the list of versions as well. Clients that ask a version's own document for its
//! microversions find them there (keystoneauth, gophercloud).

use serde_json::{Map, Value, json};

use super::links;
use crate::microversion::Version;

/// `GET /`.
pub fn versions(base: &str) -> Value {
    json!({
        "name": "OpenStack Magnum API",
        "description": "Magnum is an OpenStack project which aims to provide container cluster management.",
        "versions": [version(base)],
    })
}

fn version(base: &str) -> Value {
    json!({
        "id": "v1",
        "links": [{"href": format!("{base}/v1/"), "rel": "self"}],
        "status": "CURRENT",
        "max_version": Version::MAX.to_string(),
        "min_version": Version::MIN.to_string(),
    })
}

/// `GET /v1`.
pub fn v1(base: &str) -> Value {
    let mut document = Map::new();
    document.insert("id".into(), json!("v1"));
    document.insert(
        "media_types".into(),
        json!([{"base": "application/json", "type": "application/vnd.openstack.magnum.v1+json"}]),
    );
    document.insert(
        "links".into(),
        json!([
            {"href": format!("{base}/v1/"), "rel": "self"},
            {
                "href": "http://docs.openstack.org/developer/magnum/dev/api-spec-v1.html",
                "rel": "describedby",
                "type": "text/html",
            },
        ]),
    );
    for name in [
        "clustertemplates",
        "clusters",
        "quotas",
        "certificates",
        "mservices",
        "stats",
        "federations",
    ] {
        document.insert(name.into(), json!(links::pair(base, format!("{name}/"))));
    }
    document.insert(
        "nodegroups".into(),
        json!(links::pair(base, "clusters/{cluster_id}/nodegroups".to_owned())),
    );
    document.insert(
        "credentials".into(),
        json!(links::pair(base, "credentials/".to_owned())),
    );
    document.insert("versions".into(), json!([version(base)]));
    Value::Object(document)
}
