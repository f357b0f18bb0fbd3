//! Rows of `cluster_template`.

use super::json::{Place, string_map, to_text};
use super::{RowTime, row, time};
use crate::error::DbError;
use magnum_common::ids::TemplateUuid;
use magnum_common::model::ClusterTemplate;

row! {
    /// A cluster template's row.
    ClusterTemplateRow, ClusterTemplateChanges, cluster_template {
        uuid: String,
        project_id: String,
        user_id: String,
        name: String,
        image_id: String,
        flavor_id: String,
        master_flavor_id: String,
        keypair_id: String,
        external_network_id: String,
        fixed_network: String,
        fixed_subnet: String,
        network_driver: String,
        volume_driver: String,
        dns_nameserver: String,
        apiserver_port: i32,
        docker_volume_size: i32,
        docker_storage_driver: String,
        cluster_distro: String,
        coe: String,
        http_proxy: String,
        https_proxy: String,
        no_proxy: String,
        registry_enabled: bool,
        labels: String,
        tls_disabled: bool,
        public: bool,
        server_type: String,
        insecure_registry: String,
        master_lb_enabled: bool,
        floating_ip_enabled: bool,
        hidden: bool,
        tags: String,
        driver: String,
    }
}

const TABLE: &str = "cluster_template";

impl TryFrom<ClusterTemplateRow> for ClusterTemplate {
    type Error = DbError;

    fn try_from(row: ClusterTemplateRow) -> Result<Self, DbError> {
        let uuid = Place::uuid(TABLE, row.id, row.uuid.clone())?;
        let place = |column| Place {
            table: TABLE,
            column,
            row: &uuid,
        };
        Ok(Self {
            id: Some(row.id),
            uuid: TemplateUuid::new(uuid.clone()),
            project_id: row.project_id,
            user_id: row.user_id,
            name: row.name,
            image_id: row.image_id,
            flavor_id: row.flavor_id,
            master_flavor_id: row.master_flavor_id,
            keypair_id: row.keypair_id,
            external_network_id: row.external_network_id,
            fixed_network: row.fixed_network,
            fixed_subnet: row.fixed_subnet,
            network_driver: row.network_driver,
            volume_driver: row.volume_driver,
            dns_nameserver: row.dns_nameserver,
            apiserver_port: row.apiserver_port,
            docker_volume_size: row.docker_volume_size,
            docker_storage_driver: row.docker_storage_driver,
            cluster_distro: row.cluster_distro,
            coe: row.coe,
            http_proxy: row.http_proxy,
            https_proxy: row.https_proxy,
            no_proxy: row.no_proxy,
            registry_enabled: row.registry_enabled.unwrap_or(false),
            labels: string_map(row.labels.as_deref(), place("labels"))?,
            tls_disabled: row.tls_disabled.unwrap_or(false),
            public: row.public.unwrap_or(false),
            server_type: row.server_type,
            insecure_registry: row.insecure_registry,
            master_lb_enabled: row.master_lb_enabled.unwrap_or(false),
            floating_ip_enabled: row.floating_ip_enabled.unwrap_or(true),
            hidden: row.hidden.unwrap_or(false),
            tags: row.tags,
            driver: row.driver,
            created_at: time(row.created_at),
            updated_at: time(row.updated_at),
        })
    }
}

impl From<&ClusterTemplate> for ClusterTemplateRow {
    /// The row to insert: `created_at` is now unless it is set, the number is the database's to give.
    fn from(m: &ClusterTemplate) -> Self {
        Self {
            id: m.id.unwrap_or_default(),
            uuid: Some(m.uuid.to_string()),
            project_id: m.project_id.clone(),
            user_id: m.user_id.clone(),
            name: m.name.clone(),
            image_id: m.image_id.clone(),
            flavor_id: m.flavor_id.clone(),
            master_flavor_id: m.master_flavor_id.clone(),
            keypair_id: m.keypair_id.clone(),
            external_network_id: m.external_network_id.clone(),
            fixed_network: m.fixed_network.clone(),
            fixed_subnet: m.fixed_subnet.clone(),
            network_driver: m.network_driver.clone(),
            volume_driver: m.volume_driver.clone(),
            dns_nameserver: m.dns_nameserver.clone(),
            apiserver_port: m.apiserver_port,
            docker_volume_size: m.docker_volume_size,
            docker_storage_driver: m.docker_storage_driver.clone(),
            cluster_distro: m.cluster_distro.clone(),
            coe: m.coe.clone(),
            http_proxy: m.http_proxy.clone(),
            https_proxy: m.https_proxy.clone(),
            no_proxy: m.no_proxy.clone(),
            registry_enabled: Some(m.registry_enabled),
            labels: Some(to_text(&m.labels)),
            tls_disabled: Some(m.tls_disabled),
            public: Some(m.public),
            server_type: m.server_type.clone(),
            insecure_registry: m.insecure_registry.clone(),
            master_lb_enabled: Some(m.master_lb_enabled),
            floating_ip_enabled: Some(m.floating_ip_enabled),
            hidden: Some(m.hidden),
            tags: m.tags.clone(),
            driver: m.driver.clone(),
            created_at: Some(m.created_at.map_or_else(RowTime::now, RowTime)),
            updated_at: m.updated_at.map(RowTime),
        }
    }
}
