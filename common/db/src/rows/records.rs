//! Rows of the small tables: `quotas`, `magnum_service`, `x509keypair`, `federation`.

use super::json::{Place, string_list, string_map, to_text};
use super::{FreeText, RowTime, row, time};
use crate::error::DbError;
use magnum_common::model::{Federation, MagnumService, Quota, X509KeyPair};
use magnum_common::secret::Secret;

row! {
    /// A quota's row.
    QuotaRow, QuotaChanges, quotas {
        project_id: String,
        resource: String,
        hard_limit: i32,
    }
}

impl From<QuotaRow> for Quota {
    fn from(row: QuotaRow) -> Self {
        Self {
            id: Some(row.id),
            project_id: row.project_id,
            resource: row.resource,
            hard_limit: row.hard_limit.unwrap_or_default(),
            created_at: time(row.created_at),
            updated_at: time(row.updated_at),
        }
    }
}

impl From<&Quota> for QuotaRow {
    fn from(m: &Quota) -> Self {
        Self {
            id: m.id.unwrap_or_default(),
            project_id: m.project_id.clone(),
            resource: m.resource.clone(),
            hard_limit: Some(m.hard_limit),
            created_at: Some(m.created_at.map_or_else(RowTime::now, RowTime)),
            updated_at: m.updated_at.map(RowTime),
        }
    }
}

/// A service's row.
#[derive(Debug, Clone, PartialEq, diesel::Queryable, diesel::Selectable, diesel::Insertable)]
#[diesel(table_name = crate::schema::magnum_service, treat_none_as_default_value = false)]
#[expect(missing_docs, reason = "the names are the columns'")]
pub struct MagnumServiceRow {
    #[diesel(skip_insertion)]
    pub id: i32,
    pub host: Option<String>,
    pub binary: Option<String>,
    pub disabled: Option<bool>,
    pub disabled_reason: Option<String>,
    pub last_seen_up: Option<RowTime>,
    pub forced_down: Option<bool>,
    pub report_count: i32,
    pub created_at: Option<RowTime>,
    pub updated_at: Option<RowTime>,
}

impl From<MagnumServiceRow> for MagnumService {
    fn from(row: MagnumServiceRow) -> Self {
        Self {
            id: Some(row.id),
            host: row.host,
            binary: row.binary,
            disabled: row.disabled.unwrap_or(false),
            disabled_reason: row.disabled_reason,
            last_seen_up: time(row.last_seen_up),
            forced_down: row.forced_down.unwrap_or(false),
            report_count: row.report_count,
            created_at: time(row.created_at),
            updated_at: time(row.updated_at),
        }
    }
}

impl From<&MagnumService> for MagnumServiceRow {
    fn from(m: &MagnumService) -> Self {
        Self {
            id: m.id.unwrap_or_default(),
            host: m.host.clone(),
            binary: m.binary.clone(),
            disabled: Some(m.disabled),
            disabled_reason: m.disabled_reason.clone(),
            last_seen_up: m.last_seen_up.map(RowTime),
            forced_down: Some(m.forced_down),
            report_count: m.report_count,
            created_at: Some(m.created_at.map_or_else(RowTime::now, RowTime)),
            updated_at: m.updated_at.map(RowTime),
        }
    }
}

/// A key pair's row. No `Debug`: it holds a private key and its passphrase.
#[derive(Clone, PartialEq, diesel::Queryable, diesel::Selectable, diesel::Insertable)]
#[diesel(table_name = crate::schema::x509keypair, treat_none_as_default_value = false)]
#[expect(missing_docs, reason = "the names are the columns'")]
pub struct X509KeyPairRow {
    #[diesel(skip_insertion)]
    pub id: i32,
    pub uuid: Option<String>,
    pub certificate: Option<String>,
    pub private_key: Option<String>,
    pub private_key_passphrase: Option<String>,
    pub intermediates: Option<String>,
    pub project_id: Option<String>,
    pub user_id: Option<String>,
    pub created_at: Option<RowTime>,
    pub updated_at: Option<RowTime>,
}

impl From<X509KeyPairRow> for X509KeyPair {
    fn from(row: X509KeyPairRow) -> Self {
        Self {
            id: Some(row.id),
            uuid: row.uuid,
            certificate: row.certificate,
            private_key: row.private_key.map(Secret::new),
            intermediates: row.intermediates,
            private_key_passphrase: row.private_key_passphrase.map(Secret::new),
            project_id: row.project_id,
            user_id: row.user_id,
            created_at: time(row.created_at),
            updated_at: time(row.updated_at),
        }
    }
}

impl From<&X509KeyPair> for X509KeyPairRow {
    fn from(m: &X509KeyPair) -> Self {
        let text = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.expose().to_owned());
        Self {
            id: m.id.unwrap_or_default(),
            uuid: m.uuid.clone(),
            certificate: m.certificate.clone(),
            private_key: text(&m.private_key),
            private_key_passphrase: text(&m.private_key_passphrase),
            intermediates: m.intermediates.clone(),
            project_id: m.project_id.clone(),
            user_id: m.user_id.clone(),
            created_at: Some(m.created_at.map_or_else(RowTime::now, RowTime)),
            updated_at: m.updated_at.map(RowTime),
        }
    }
}

row! {
    /// A federation's row.
    FederationRow, FederationChanges, federation {
        project_id: String,
        uuid: String,
        name: String,
        hostcluster_id: String,
        member_ids: String,
        status: String,
        status_reason: FreeText,
        properties: String,
    }
}

impl TryFrom<FederationRow> for Federation {
    type Error = DbError;

    fn try_from(row: FederationRow) -> Result<Self, DbError> {
        let name = row.uuid.clone().unwrap_or_else(|| row.id.to_string());
        let place = |column| Place {
            table: "federation",
            column,
            row: &name,
        };
        Ok(Self {
            id: Some(row.id),
            uuid: row.uuid,
            name: row.name,
            project_id: row.project_id,
            hostcluster_id: row.hostcluster_id,
            member_ids: string_list(row.member_ids.as_deref(), place("member_ids"))?,
            status: row.status,
            status_reason: row.status_reason.map(|text| text.0),
            properties: string_map(row.properties.as_deref(), place("properties"))?,
            created_at: time(row.created_at),
            updated_at: time(row.updated_at),
        })
    }
}

impl From<&Federation> for FederationRow {
    fn from(m: &Federation) -> Self {
        Self {
            id: m.id.unwrap_or_default(),
            project_id: m.project_id.clone(),
            uuid: m.uuid.clone(),
            name: m.name.clone(),
            hostcluster_id: m.hostcluster_id.clone(),
            member_ids: Some(to_text(&m.member_ids)),
            status: m.status.clone(),
            status_reason: m.status_reason.clone().map(FreeText),
            properties: Some(to_text(&m.properties)),
            created_at: Some(m.created_at.map_or_else(RowTime::now, RowTime)),
            updated_at: m.updated_at.map(RowTime),
        }
    }
}
