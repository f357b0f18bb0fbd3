//! A cluster.

use crate::ids::{ClusterUuid, TemplateUuid};

use super::{ClusterStatus, HealthStatus, StringMap, Timestamp};

/// A cluster as Magnum's table holds it. Node counts and addresses are not here: they are sums over its node
/// groups ([`super::NodeGroup`]).
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are Magnum's; db-schema documents them")]
pub struct Cluster {
    /// Row number; `None` until inserted.
    pub id: Option<i32>,
    pub uuid: ClusterUuid,
    pub name: Option<String>,
    pub project_id: Option<String>,
    pub user_id: Option<String>,
    pub cluster_template_id: TemplateUuid,
    pub keypair: Option<String>,
    /// Size in GB.
    pub docker_volume_size: Option<i32>,
    pub labels: StringMap,
    pub master_flavor_id: Option<String>,
    pub flavor_id: Option<String>,
    /// What the driver calls the cluster in its cloud.
    pub stack_id: Option<String>,
    pub status: Option<ClusterStatus>,
    pub status_reason: Option<String>,
    pub health_status: Option<HealthStatus>,
    pub health_status_reason: StringMap,
    /// Time limit of the creation, in minutes; 0: no limit.
    pub create_timeout: Option<i32>,
    pub api_address: Option<String>,
    pub discovery_url: Option<String>,
    pub ca_cert_ref: Option<String>,
    pub magnum_cert_ref: Option<String>,
    pub etcd_ca_cert_ref: Option<String>,
    pub front_proxy_ca_cert_ref: Option<String>,
    pub coe_version: Option<String>,
    pub container_version: Option<String>,
    pub fixed_network: Option<String>,
    pub fixed_subnet: Option<String>,
    pub floating_ip_enabled: bool,
    pub master_lb_enabled: bool,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
}

impl Cluster {
    /// A new cluster with everything unset and the defaults of Magnum's object.
    pub fn new(uuid: ClusterUuid, cluster_template_id: TemplateUuid) -> Self {
        Self {
            id: None,
            uuid,
            name: None,
            project_id: None,
            user_id: None,
            cluster_template_id,
            keypair: None,
            docker_volume_size: None,
            labels: StringMap::new(),
            master_flavor_id: None,
            flavor_id: None,
            stack_id: None,
            status: None,
            status_reason: None,
            health_status: None,
            health_status_reason: StringMap::new(),
            create_timeout: None,
            api_address: None,
            discovery_url: None,
            ca_cert_ref: None,
            magnum_cert_ref: None,
            etcd_ca_cert_ref: None,
            front_proxy_ca_cert_ref: None,
            coe_version: None,
            container_version: None,
            fixed_network: None,
            fixed_subnet: None,
            floating_ip_enabled: true,
            master_lb_enabled: false,
            created_at: None,
            updated_at: None,
        }
    }
}
