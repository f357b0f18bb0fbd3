//! One page of a list: sort key, direction, limit, and the row after which it starts.
//!
//! The order is total (`sort key, id`), and rows without a value come first going up and last going down, on
//! all three databases. The page starts after the marker's *row*, compared inside the database, so that its
//! collation decides both the order and where the page starts.

use diesel::RunQueryDsl as _;
use diesel::dsl::sql;
use diesel::expression::SqlLiteral;
use diesel::sql_types::{Bool, Untyped};

use crate::connection::AnyConnection;
use crate::error::DbError;

/// Direction of a sorted list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortDir {
    /// Smallest first.
    #[default]
    Asc,
    /// Largest first.
    Desc,
}

/// A column of a known table. Its text goes into SQL, so there is no way to make one of a caller's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKey {
    table: &'static str,
    column: &'static str,
}

/// The tables that can be listed page by page, with every column a caller may name.
const COLUMNS: &[(&str, &[&str])] = &[
    (
        "cluster",
        &[
            "id",
            "uuid",
            "name",
            "project_id",
            "user_id",
            "cluster_template_id",
            "keypair",
            "docker_volume_size",
            "labels",
            "master_flavor_id",
            "flavor_id",
            "stack_id",
            "api_address",
            "status",
            "status_reason",
            "health_status",
            "health_status_reason",
            "create_timeout",
            "discovery_url",
            "coe_version",
            "container_version",
            "ca_cert_ref",
            "magnum_cert_ref",
            "etcd_ca_cert_ref",
            "front_proxy_ca_cert_ref",
            "fixed_network",
            "fixed_subnet",
            "floating_ip_enabled",
            "master_lb_enabled",
            "created_at",
            "updated_at",
        ],
    ),
    (
        "cluster_template",
        &[
            "id",
            "uuid",
            "project_id",
            "user_id",
            "name",
            "image_id",
            "flavor_id",
            "master_flavor_id",
            "keypair_id",
            "external_network_id",
            "fixed_network",
            "fixed_subnet",
            "network_driver",
            "volume_driver",
            "dns_nameserver",
            "apiserver_port",
            "docker_volume_size",
            "docker_storage_driver",
            "cluster_distro",
            "coe",
            "http_proxy",
            "https_proxy",
            "no_proxy",
            "registry_enabled",
            "labels",
            "tls_disabled",
            "public",
            "server_type",
            "insecure_registry",
            "master_lb_enabled",
            "floating_ip_enabled",
            "hidden",
            "tags",
            "driver",
            "created_at",
            "updated_at",
        ],
    ),
    (
        "nodegroup",
        &[
            "id",
            "uuid",
            "name",
            "cluster_id",
            "project_id",
            "docker_volume_size",
            "labels",
            "flavor_id",
            "image_id",
            "node_addresses",
            "node_count",
            "role",
            "max_node_count",
            "min_node_count",
            "is_default",
            "stack_id",
            "status",
            "status_reason",
            "version",
            "node_labels",
            "node_taints",
            "created_at",
            "updated_at",
        ],
    ),
    (
        "quotas",
        &[
            "id",
            "project_id",
            "resource",
            "hard_limit",
            "created_at",
            "updated_at",
        ],
    ),
    (
        "x509keypair",
        &[
            "id",
            "uuid",
            "certificate",
            "private_key",
            "private_key_passphrase",
            "intermediates",
            "project_id",
            "user_id",
            "created_at",
            "updated_at",
        ],
    ),
    (
        "magnum_service",
        &[
            "id",
            "host",
            "binary",
            "disabled",
            "disabled_reason",
            "last_seen_up",
            "forced_down",
            "report_count",
            "created_at",
            "updated_at",
        ],
    ),
    (
        "federation",
        &[
            "id",
            "uuid",
            "name",
            "project_id",
            "hostcluster_id",
            "member_ids",
            "status",
            "status_reason",
            "properties",
            "created_at",
            "updated_at",
        ],
    ),
];

impl SortKey {
    fn of(table: &str, column: &str) -> Option<Self> {
        let (table, columns) = COLUMNS.iter().find(|(name, _)| *name == table)?;
        let column = columns.iter().find(|name| **name == column)?;
        Some(Self { table, column })
    }

    /// A column of `cluster`; `None`: it has no such column.
    pub fn of_cluster(column: &str) -> Option<Self> {
        Self::of("cluster", column)
    }

    /// A column of `cluster_template`.
    pub fn of_cluster_template(column: &str) -> Option<Self> {
        Self::of("cluster_template", column)
    }

    /// A column of `nodegroup`.
    pub fn of_node_group(column: &str) -> Option<Self> {
        Self::of("nodegroup", column)
    }

    /// A column of `quotas`.
    pub fn of_quota(column: &str) -> Option<Self> {
        Self::of("quotas", column)
    }

    /// A column of `x509keypair`.
    pub fn of_key_pair(column: &str) -> Option<Self> {
        Self::of("x509keypair", column)
    }

    /// A column of `magnum_service`.
    pub fn of_service(column: &str) -> Option<Self> {
        Self::of("magnum_service", column)
    }

    /// A column of `federation`.
    pub fn of_federation(column: &str) -> Option<Self> {
        Self::of("federation", column)
    }
}

/// Which part of a list. The default is all of it, by number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Page {
    /// Most rows; `None`: all.
    pub limit: Option<u32>,
    /// The *number* of the row after which the page starts (find the row by its uuid first: a marker that
    /// does not exist is the caller's 404).
    pub after: Option<i32>,
    /// The column to sort by; `None`: the primary key.
    pub sort_key: Option<SortKey>,
    /// Direction of the sort key and of the number.
    pub sort_dir: SortDir,
}

impl Page {
    /// `ORDER BY` for a list of `table`. A key of another table is ignored, like none.
    pub(super) fn order(&self, table: &'static str) -> SqlLiteral<Untyped> {
        let direction = match self.sort_dir {
            SortDir::Asc => "ASC",
            SortDir::Desc => "DESC",
        };
        sql(&match self.key(table) {
            None => format!("{table}.id {direction}"),
            Some(column) => format!(
                "CASE WHEN {table}.{column} IS NULL THEN 0 ELSE 1 END {direction}, {table}.{column} \
                 {direction}, {table}.id {direction}"
            ),
        })
    }

    /// `WHERE`: the rows after the marker.
    pub(super) fn start(&self, table: &'static str) -> Option<SqlLiteral<Bool>> {
        let marker = self.after?;
        let later = match self.sort_dir {
            SortDir::Asc => ">",
            SortDir::Desc => "<",
        };
        let condition = match self.key(table) {
            // The marker's row need not exist any more. A number cannot carry SQL, so it may stand in the text.
            None => return Some(sql(&format!("{table}.id {later} {marker}"))),
            Some(column) => {
                let ours = format!("{table}.{column}");
                let theirs = format!("marker.{column}");
                let (empty_first, empty_last) = match self.sort_dir {
                    SortDir::Asc => (&theirs, &ours),
                    SortDir::Desc => (&ours, &theirs),
                };
                format!(
                    "({empty_first} IS NULL AND {empty_last} IS NOT NULL) OR {ours} {later} {theirs} OR \
                     (({ours} = {theirs} OR ({ours} IS NULL AND {theirs} IS NULL)) AND \
                     {table}.id {later} marker.id)"
                )
            }
        };
        Some(sql(&format!(
            "EXISTS (SELECT 1 FROM {table} marker WHERE marker.id = {marker} AND ({condition}))"
        )))
    }

    /// Whether the page cannot be found because the row it starts after is gone, and with it the value of the sort
    /// key there. To be asked when a page turns out empty.
    ///
    /// # Errors
    /// When the database fails.
    pub fn lost_its_start(&self, conn: &mut AnyConnection) -> Result<bool, DbError> {
        let (Some(marker), Some(SortKey { table, .. })) = (self.after, self.sort_key) else {
            return Ok(false);
        };
        if self.key(table).is_none() {
            return Ok(false);
        }
        let exists = sql::<Bool>(&format!("EXISTS (SELECT 1 FROM {table} WHERE id = {marker})"));
        let exists: bool = diesel::select(exists).get_result(conn)?;
        Ok(!exists)
    }

    fn key(&self, table: &str) -> Option<&'static str> {
        self.sort_key
            .filter(|key| key.table == table && key.column != "id")
            .map(|key| key.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_columns_of_the_table_are_sort_keys() {
        assert!(SortKey::of_cluster("status").is_some());
        assert_eq!(SortKey::of_cluster("coe"), None);
        assert_eq!(SortKey::of_cluster("id; DROP TABLE cluster"), None);
        assert!(SortKey::of_cluster_template("coe").is_some());
    }
}
