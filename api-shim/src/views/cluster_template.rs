//! A cluster template, the same everywhere: create, show, list, detail, patch.

use magnum_common::model::ClusterTemplate;
use serde_json::{Value, json};

use super::{links, time};
use crate::microversion::Version;

/// The template as a client of `version` sees it.
pub fn show(template: &ClusterTemplate, base: &str, version: Version) -> Value {
    let uuid = template.uuid.as_str();
    let mut view = json!({
        "uuid": uuid,
        "name": template.name,
        "coe": template.coe,
        "image_id": template.image_id,
        "flavor_id": template.flavor_id,
        "master_flavor_id": template.master_flavor_id,
        "dns_nameserver": template.dns_nameserver,
        "keypair_id": template.keypair_id,
        "external_network_id": template.external_network_id,
        "fixed_network": template.fixed_network,
        "fixed_subnet": template.fixed_subnet,
        "network_driver": template.network_driver,
        "apiserver_port": template.apiserver_port,
        "docker_volume_size": template.docker_volume_size,
        "cluster_distro": template.cluster_distro,
        "links": links::pair(base, &format!("clustertemplates/{uuid}")),
        "http_proxy": template.http_proxy,
        "https_proxy": template.https_proxy,
        "no_proxy": template.no_proxy,
        "volume_driver": template.volume_driver,
        "registry_enabled": template.registry_enabled,
        "labels": template.labels,
        "tls_disabled": template.tls_disabled,
        "public": template.public,
        "server_type": template.server_type,
        "insecure_registry": template.insecure_registry,
        "docker_storage_driver": template.docker_storage_driver,
        "master_lb_enabled": template.master_lb_enabled,
        "floating_ip_enabled": template.floating_ip_enabled,
        "project_id": template.project_id,
        "user_id": template.user_id,
        "hidden": template.hidden,
        "tags": template.tags,
    });
    if version >= Version::TEMPLATE_DRIVER {
        view["driver"] = json!(template.driver);
    }
    view["created_at"] = time(template.created_at);
    view["updated_at"] = time(template.updated_at);
    view
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_shown_from_its_version_on() {
        let mut template = ClusterTemplate::new("u".into());
        template.driver = Some("disk".into());
        assert_eq!(show(&template, "", Version::MAX)["driver"], "disk");
        assert_eq!(show(&template, "", Version::CLUSTER_ID).get("driver"), None);
    }
}
