//! A cluster template, the same everywhere: create, show, list, detail, patch.

use magnum_common::model::ClusterTemplate;
use serde_json::Value;

use super::attribute::{self, Shown, View, attributes};
use super::links;
use crate::microversion::Version;

/// The only form.
pub const FULL: View = 1;

/// What a row of the table reads.
#[derive(Debug)]
pub struct ClusterTemplateSource<'a> {
    template: &'a ClusterTemplate,
    base: &'a str,
}

/// A cluster template as it is shown.
#[derive(Debug)]
pub struct TemplateView;

impl Shown for TemplateView {
    type Source<'a> = ClusterTemplateSource<'a>;
    attributes! { Self, seen;
        "uuid": Uuid => &seen.template.uuid;
        "name" or null: Text => &seen.template.name;
        "coe" or null: Text => &seen.template.coe;
        "image_id" or null: Text => &seen.template.image_id;
        "flavor_id" or null: Text => &seen.template.flavor_id;
        "master_flavor_id" or null: Text => &seen.template.master_flavor_id;
        "dns_nameserver" or null: Text => &seen.template.dns_nameserver;
        "keypair_id" or null: Text => &seen.template.keypair_id;
        "external_network_id" or null: Text => &seen.template.external_network_id;
        "fixed_network" or null: Text => &seen.template.fixed_network;
        "fixed_subnet" or null: Text => &seen.template.fixed_subnet;
        "network_driver" or null: Text => &seen.template.network_driver;
        "apiserver_port" or null: Integer => &seen.template.apiserver_port;
        "docker_volume_size" or null: Integer => &seen.template.docker_volume_size;
        "cluster_distro" or null: Text => &seen.template.cluster_distro;
        "links": Links => links::pair(seen.base, format!("clustertemplates/{}", seen.template.uuid));
        "http_proxy" or null: Text => &seen.template.http_proxy;
        "https_proxy" or null: Text => &seen.template.https_proxy;
        "no_proxy" or null: Text => &seen.template.no_proxy;
        "volume_driver" or null: Text => &seen.template.volume_driver;
        "registry_enabled": Boolean => &seen.template.registry_enabled;
        "labels": Strings => &seen.template.labels;
        "tls_disabled": Boolean => &seen.template.tls_disabled;
        "public": Boolean => &seen.template.public;
        "server_type" or null: Text => &seen.template.server_type;
        "insecure_registry" or null: Text => &seen.template.insecure_registry;
        "docker_storage_driver" or null: Text => &seen.template.docker_storage_driver;
        "master_lb_enabled" or null: Boolean => &seen.template.master_lb_enabled;
        "floating_ip_enabled" or null: Boolean => &seen.template.floating_ip_enabled;
        "project_id" or null: Text => &seen.template.project_id;
        "user_id" or null: Text => &seen.template.user_id;
        "hidden": Boolean => &seen.template.hidden;
        "tags" or null: Text => &seen.template.tags;
        "driver" or null: Text, since Version::TEMPLATE_DRIVER => &seen.template.driver;
        "created_at" or null: Time => &seen.template.created_at;
        "updated_at" or null: Time => &seen.template.updated_at;
    }
}

/// The template as a client of `version` sees it.
pub fn show(template: &ClusterTemplate, base: &str, version: Version) -> Value {
    attribute::render::<TemplateView>(ClusterTemplateSource { template, base }, FULL, version)
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
