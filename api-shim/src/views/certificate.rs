//! A certificate, with the request that it answers where there was one.

use magnum_common::ids::ClusterUuid;
use magnum_common::objects::records::Certificate;
use serde_json::{Map, Value, json};

use super::links;

/// The certificate of this cluster. What it does not have is left out.
pub fn show(certificate: &Certificate, cluster: &ClusterUuid, base: &str) -> Value {
    let mut view = Map::new();
    view.insert("cluster_uuid".into(), json!(cluster));
    view.insert(
        "links".into(),
        links::pair(base, &format!("certificates/{cluster}")),
    );
    for (name, value) in [
        ("csr", &certificate.csr),
        ("pem", &certificate.pem),
        ("ca_cert_type", &certificate.ca_cert_type),
    ] {
        if let Some(value) = value {
            view.insert(name.into(), json!(value));
        }
    }
    Value::Object(view)
}
