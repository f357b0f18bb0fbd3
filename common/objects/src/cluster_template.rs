//! The `ClusterTemplate` object.

use serde_json::Value;

use magnum_common::error::Fault;
use magnum_common::ids::TemplateUuid;
use magnum_common::model::ClusterTemplate;

use super::convert::{Received, wanted, wire_model};
use super::tables::CLUSTER_TEMPLATE;

/// A template that arrived.
pub type TemplateObject = Received<ClusterTemplate>;

wire_model!(
    ClusterTemplate,
    CLUSTER_TEMPLATE,
    |object| {
        let uuid = object.text("uuid").map_or_else(TemplateUuid::random, TemplateUuid::from);
        let mut blank = ClusterTemplate::new(uuid);
        // The class has no default here, unlike the REST API's form.
        blank.server_type = None;
        Ok(blank)
    },
    [id uuid project_id user_id name image_id flavor_id master_flavor_id keypair_id dns_nameserver
     external_network_id fixed_network fixed_subnet network_driver volume_driver apiserver_port
     docker_volume_size docker_storage_driver cluster_distro coe http_proxy https_proxy no_proxy
     registry_enabled labels tls_disabled public server_type insecure_registry master_lb_enabled
     floating_ip_enabled hidden tags driver created_at updated_at]
);

impl Received<ClusterTemplate> {
    /// The template's uuid.
    ///
    /// # Errors
    /// `ValueError` when it is not set.
    pub fn uuid(&self) -> Result<TemplateUuid, Fault> {
        wanted(self.object(), "uuid").map(TemplateUuid::from)
    }
}

/// A template as a row that was just read: all fields set, nothing changed. A COE that Magnum no longer has is
/// left out, as no peer could read an object with it.
pub fn encode(template: &ClusterTemplate) -> Value {
    super::encode(template)
}

/// Reads a template from a message.
///
/// # Errors
/// As [`super::VersionedObject::decode`].
pub fn decode(value: &Value) -> Result<TemplateObject, Fault> {
    Received::decode(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_survives_the_wire() {
        let mut template = ClusterTemplate::new("t-1".into());
        template.coe = Some("kubernetes".into());
        template.driver = Some("heat".into());
        template.hidden = true;
        let read = decode(&encode(&template)).unwrap().model().unwrap();
        assert_eq!(read, template);
    }

    #[test]
    fn a_coe_of_an_old_row_does_not_make_the_object_unreadable() {
        let mut template = ClusterTemplate::new("t-1".into());
        template.coe = Some("swarm".into());
        let sent = encode(&template);
        assert_eq!(sent["magnum_object.data"].get("coe"), None);
        assert!(decode(&sent).is_ok());
    }
}
