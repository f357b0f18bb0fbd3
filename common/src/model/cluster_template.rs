//! A cluster template.

use crate::ids::TemplateUuid;

use super::{StringMap, Timestamp};

/// A cluster template as Magnum's table holds it. `coe` is text, because rows of older releases hold values
/// that Magnum no longer knows (`swarm`, `mesos`) and must stay readable.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are Magnum's; db-schema documents them")]
pub struct ClusterTemplate {
    /// Row number; `None` until inserted.
    pub id: Option<i32>,
    pub uuid: TemplateUuid,
    pub project_id: Option<String>,
    pub user_id: Option<String>,
    pub name: Option<String>,
    pub image_id: Option<String>,
    pub flavor_id: Option<String>,
    pub master_flavor_id: Option<String>,
    pub keypair_id: Option<String>,
    pub dns_nameserver: Option<String>,
    pub external_network_id: Option<String>,
    pub fixed_network: Option<String>,
    pub fixed_subnet: Option<String>,
    pub network_driver: Option<String>,
    pub volume_driver: Option<String>,
    pub apiserver_port: Option<i32>,
    /// Size in GB.
    pub docker_volume_size: Option<i32>,
    pub docker_storage_driver: Option<String>,
    pub cluster_distro: Option<String>,
    pub coe: Option<String>,
    pub http_proxy: Option<String>,
    pub https_proxy: Option<String>,
    pub no_proxy: Option<String>,
    pub registry_enabled: bool,
    pub labels: StringMap,
    pub tls_disabled: bool,
    pub public: bool,
    pub server_type: Option<String>,
    pub insecure_registry: Option<String>,
    pub master_lb_enabled: bool,
    pub floating_ip_enabled: bool,
    pub hidden: bool,
    pub tags: Option<String>,
    pub driver: Option<String>,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
}

impl ClusterTemplate {
    /// A new template with everything unset and the defaults of Magnum's object.
    pub fn new(uuid: TemplateUuid) -> Self {
        Self {
            id: None,
            uuid,
            project_id: None,
            user_id: None,
            name: None,
            image_id: None,
            flavor_id: None,
            master_flavor_id: None,
            keypair_id: None,
            dns_nameserver: None,
            external_network_id: None,
            fixed_network: None,
            fixed_subnet: None,
            network_driver: None,
            volume_driver: None,
            apiserver_port: None,
            docker_volume_size: None,
            docker_storage_driver: None,
            cluster_distro: None,
            coe: None,
            http_proxy: None,
            https_proxy: None,
            no_proxy: None,
            registry_enabled: false,
            labels: StringMap::new(),
            tls_disabled: false,
            public: false,
            server_type: Some("vm".to_owned()),
            insecure_registry: None,
            master_lb_enabled: false,
            floating_ip_enabled: true,
            hidden: false,
            tags: None,
            driver: None,
            created_at: None,
            updated_at: None,
        }
    }
}
