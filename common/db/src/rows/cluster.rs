//! Rows of `cluster`.

use super::json::{Place, string_map, to_text};
use super::{FreeText, RowTime, lenient, row, time};
use crate::error::DbError;
use magnum_common::ids::{ClusterUuid, TemplateUuid};
use magnum_common::model::Cluster;

row! {
    /// A cluster's row.
    ClusterRow, ClusterChanges, cluster {
        uuid: String,
        name: String,
        project_id: String,
        user_id: String,
        cluster_template_id: String,
        keypair: String,
        docker_volume_size: i32,
        labels: String,
        master_flavor_id: String,
        flavor_id: String,
        stack_id: String,
        api_address: String,
        status: String,
        status_reason: FreeText,
        health_status: String,
        health_status_reason: String,
        create_timeout: i32,
        discovery_url: String,
        coe_version: String,
        container_version: String,
        ca_cert_ref: String,
        magnum_cert_ref: String,
        etcd_ca_cert_ref: String,
        front_proxy_ca_cert_ref: String,
        fixed_network: String,
        fixed_subnet: String,
        floating_ip_enabled: bool,
        master_lb_enabled: bool,
    }
}

const TABLE: &str = "cluster";

impl TryFrom<ClusterRow> for Cluster {
    type Error = DbError;

    fn try_from(row: ClusterRow) -> Result<Self, DbError> {
        let uuid = Place::uuid(TABLE, row.id, row.uuid.clone())?;
        let place = |column| Place {
            table: TABLE,
            column,
            row: &uuid,
        };
        Ok(Self {
            id: Some(row.id),
            uuid: ClusterUuid::new(uuid.clone()),
            name: row.name,
            project_id: row.project_id,
            user_id: row.user_id,
            cluster_template_id: TemplateUuid::new(row.cluster_template_id.unwrap_or_default()),
            keypair: row.keypair,
            docker_volume_size: row.docker_volume_size,
            labels: string_map(row.labels.as_deref(), place("labels"))?,
            master_flavor_id: row.master_flavor_id,
            flavor_id: row.flavor_id,
            stack_id: row.stack_id,
            api_address: row.api_address,
            status: lenient(row.status, TABLE, &uuid),
            status_reason: row.status_reason.map(|text| text.0),
            health_status: lenient(row.health_status, TABLE, &uuid),
            health_status_reason: string_map(
                row.health_status_reason.as_deref(),
                place("health_status_reason"),
            )?,
            create_timeout: row.create_timeout,
            discovery_url: row.discovery_url,
            coe_version: row.coe_version,
            container_version: row.container_version,
            ca_cert_ref: row.ca_cert_ref,
            magnum_cert_ref: row.magnum_cert_ref,
            etcd_ca_cert_ref: row.etcd_ca_cert_ref,
            front_proxy_ca_cert_ref: row.front_proxy_ca_cert_ref,
            fixed_network: row.fixed_network,
            fixed_subnet: row.fixed_subnet,
            floating_ip_enabled: row.floating_ip_enabled.unwrap_or(true),
            master_lb_enabled: row.master_lb_enabled.unwrap_or(false),
            created_at: time(row.created_at),
            updated_at: time(row.updated_at),
        })
    }
}

impl From<&Cluster> for ClusterRow {
    /// The row to insert: `created_at` is now unless it is set, the number is the database's to give.
    fn from(m: &Cluster) -> Self {
        Self {
            id: m.id.unwrap_or_default(),
            uuid: Some(m.uuid.to_string()),
            name: m.name.clone(),
            project_id: m.project_id.clone(),
            user_id: m.user_id.clone(),
            cluster_template_id: Some(m.cluster_template_id.to_string()),
            keypair: m.keypair.clone(),
            docker_volume_size: m.docker_volume_size,
            labels: Some(to_text(&m.labels)),
            master_flavor_id: m.master_flavor_id.clone(),
            flavor_id: m.flavor_id.clone(),
            stack_id: m.stack_id.clone(),
            api_address: m.api_address.clone(),
            status: m.status.map(|s| s.to_string()),
            status_reason: m.status_reason.clone().map(FreeText),
            health_status: m.health_status.map(|s| s.to_string()),
            health_status_reason: Some(to_text(&m.health_status_reason)),
            create_timeout: m.create_timeout,
            discovery_url: m.discovery_url.clone(),
            coe_version: m.coe_version.clone(),
            container_version: m.container_version.clone(),
            ca_cert_ref: m.ca_cert_ref.clone(),
            magnum_cert_ref: m.magnum_cert_ref.clone(),
            etcd_ca_cert_ref: m.etcd_ca_cert_ref.clone(),
            front_proxy_ca_cert_ref: m.front_proxy_ca_cert_ref.clone(),
            fixed_network: m.fixed_network.clone(),
            fixed_subnet: m.fixed_subnet.clone(),
            floating_ip_enabled: Some(m.floating_ip_enabled),
            master_lb_enabled: Some(m.master_lb_enabled),
            created_at: Some(m.created_at.map_or_else(RowTime::now, RowTime)),
            updated_at: m.updated_at.map(RowTime),
        }
    }
}
