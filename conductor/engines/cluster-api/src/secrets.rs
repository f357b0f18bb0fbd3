//! The secrets of a cluster: its credential for the cloud, and its certificates (reference drivers.md 4.2).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use magnum_common::secret::Secret;
use magnum_driver_api::{Authorities, KeyPair};
use serde_json::{Value, json};

use crate::names::Named;

/// In whose name objects are applied: the package's, whose objects they are as well.
pub const MANAGER: &str = "magnum";

/// A credential of Keystone's, with what its holder needs besides.
#[derive(Debug)]
pub struct CloudAccess<'a> {
    /// The credential's id.
    pub id: &'a str,
    /// Its secret.
    pub secret: &'a Secret,
    /// Where Keystone is for everybody.
    pub auth_url: &'a str,
    /// The region.
    pub region: &'a str,
    /// `[capi_helm] app_cred_interface_type`
    pub interface: &'a str,
    /// `[drivers] verify_ca`
    pub verify: bool,
    /// The certificates to believe.
    pub ca: &'a str,
}

/// The secret with the credential.
pub fn cloud_credentials(named: Named<'_>, access: &CloudAccess<'_>) -> Value {
    let clouds = json!({"clouds": {"openstack": {
        "identity_api_version": 3,
        "region_name": access.region,
        "interface": access.interface,
        "verify": access.verify,
        "auth": {
            "auth_url": access.auth_url,
            "application_credential_id": access.id,
            "application_credential_secret": access.secret.expose(),
        },
        "auth_type": "v3applicationcredential",
    }}});
    // JSON is YAML.
    json!({
        "metadata": {"labels": labels(named)},
        "stringData": {"cacert": access.ca, "clouds.yaml": clouds.to_string()},
    })
}

/// The id of the credential in such a secret, as the management cluster has it.
pub fn credential_id(secret: &Value) -> Option<String> {
    let encoded = secret["data"]["clouds.yaml"].as_str()?;
    let text = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let clouds: Value = serde_saphyr::from_str(&text).ok()?;
    let id = &clouds["clouds"]["openstack"]["auth"]["application_credential_id"];
    id.as_str().map(str::to_owned)
}

/// The secrets with certificates, each with the end of its name. With the key of the conductor's own certificate the cluster signs
/// the tokens of its service accounts.
pub fn certificates<'a>(
    named: Named<'a>,
    authorities: &'a Authorities,
) -> impl Iterator<Item = (String, Value)> + 'a {
    let pairs = [
        ("ca", &authorities.kubernetes),
        ("etcd", &authorities.etcd),
        ("proxy", &authorities.front_proxy),
        ("sa", &authorities.client),
    ];
    pairs
        .into_iter()
        .map(move |(suffix, pair)| (named.secret(suffix), certificate(named, pair)))
}

fn certificate(named: Named<'_>, pair: &KeyPair) -> Value {
    json!({
        "metadata": {"labels": labels(named)},
        "type": "cluster.x-k8s.io/secret",
        "stringData": {"tls.crt": pair.certificate, "tls.key": pair.key.expose()},
    })
}

fn labels(named: Named<'_>) -> Value {
    let labels = named.secret_labels();
    labels
        .into_iter()
        .map(|(name, value)| (name.to_owned(), Value::String(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
