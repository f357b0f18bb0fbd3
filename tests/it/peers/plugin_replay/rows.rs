//! The rows of a case: as they are given, as they are in the database.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use diesel::prelude::*;
use magnum_common::ids::ClusterUuid;
use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup, X509KeyPair};
use magnum_conductor::store::objects::Table as _;
use magnum_conductor::store::{clusters, key_pairs, node_groups};
use magnum_db::{AnyConnection, Database, DbError, schema};
pub use magnum_tests::plugin_requests::{PROJECT, USER};
use serde_json::{Map, Value};

use super::super::replay::Columns;
use super::looks::{Look, schedule};

pub const CLUSTER: &str = "c0000000-0000-4000-8000-000000000001";
pub const TEMPLATE: &str = "d0000000-0000-4000-8000-000000000001";
pub const NEWER_TEMPLATE: &str = "d0000000-0000-4000-8000-000000000002";

/// Columns that a driver, or what a call ends in, may change. The others are compared by what the driver does with them.
const CLUSTER_COLUMNS: &[&str] = &[
    "name",
    "status",
    "status_reason",
    "stack_id",
    "api_address",
    "coe_version",
    "container_version",
    "user_id",
    "cluster_template_id",
    "labels",
    "health_status",
    "health_status_reason",
];
const GROUP_COLUMNS: &[&str] = &[
    "status",
    "status_reason",
    "stack_id",
    "node_count",
    "min_node_count",
    "max_node_count",
    "image_id",
    "labels",
    "role",
    "version",
    "node_addresses",
];

/// The rows of a cluster.
#[derive(Debug, Clone)]
pub struct Rows {
    pub cluster: Cluster,
    pub groups: Vec<NodeGroup>,
    pub templates: Vec<ClusterTemplate>,
    pub key_pairs: Vec<X509KeyPair>,
}

impl Rows {
    /// The group of this name.
    pub fn group(&mut self, name: &str) -> Result<&mut NodeGroup> {
        let mut groups = self.groups.iter_mut();
        groups
            .find(|group| group.name == name)
            .with_context(|| format!("no group {name}"))
    }

    /// Writes them, and nothing else, to a database whose conductor then leaves the cluster alone.
    pub async fn put(&self, db: &Database) -> Result<()> {
        let rows = self.clone();
        let written = db
            .transaction(move |conn| {
                wipe(conn)?;
                let mut all = rows.cluster.insert(conn)?;
                for group in &rows.groups {
                    all &= group.insert(conn)?;
                }
                for template in &rows.templates {
                    magnum_db::write::cluster_templates::insert(conn, template)?;
                }
                for pair in &rows.key_pairs {
                    all &= key_pairs::insert_unless_exists(conn, pair)?;
                }
                schedule(conn, Look::Never)?;
                Ok::<_, DbError>(all)
            })
            .await?;
        ensure!(written, "some rows were there already");
        Ok(())
    }

    /// Writes the templates.
    pub async fn put_templates(&self, db: &Database) -> Result<()> {
        let templates = self.templates.clone();
        let written = db.transaction(move |conn| {
            let mut templates = templates.iter();
            templates.try_for_each(|template| magnum_db::write::cluster_templates::insert(conn, template))
        });
        Ok(written.await?)
    }

    /// Writes them in the place of those that a create has made. The cluster keeps its row number and its certificates,
    /// all but that of the column `missing`.
    pub async fn replace(&mut self, db: &Database, missing: Option<&str>) -> Result<()> {
        let before = row(db).await?.context("the row of the cluster")?;
        self.cluster.id = before.id;
        self.refer_to(&before);
        if let Some(missing) = missing {
            ensure!(
                missing == "etcd_ca_cert_ref",
                "no case was known without {missing}"
            );
            self.cluster.etcd_ca_cert_ref = None;
        }
        let rows = self.clone();
        let written = db
            .transaction(move |conn| {
                let mut all = rows.cluster.update(&before, conn)?;
                diesel::delete(schema::nodegroup::table).execute(conn)?;
                for group in &rows.groups {
                    all &= group.insert(conn)?;
                }
                schedule(conn, Look::Never)?;
                Ok::<_, DbError>(all)
            })
            .await?;
        ensure!(written, "some rows could not be replaced");
        Ok(())
    }

    /// The cluster has the certificates of `other`.
    pub fn refer_to(&mut self, other: &Cluster) {
        let cluster = &mut self.cluster;
        cluster.ca_cert_ref.clone_from(&other.ca_cert_ref);
        cluster.magnum_cert_ref.clone_from(&other.magnum_cert_ref);
        cluster.etcd_ca_cert_ref.clone_from(&other.etcd_ca_cert_ref);
        cluster
            .front_proxy_ca_cert_ref
            .clone_from(&other.front_proxy_ca_cert_ref);
    }

    /// What is compared of them.
    pub fn columns(&self) -> Columns {
        columns(Some(&self.cluster), &self.groups)
    }

    /// The cluster's certificates by their columns, as the database has them.
    fn references(&self) -> Vec<(&'static str, Option<String>)> {
        let cluster = &self.cluster;
        vec![
            ("ca_cert_ref", cluster.ca_cert_ref.clone()),
            ("magnum_cert_ref", cluster.magnum_cert_ref.clone()),
            ("etcd_ca_cert_ref", cluster.etcd_ca_cert_ref.clone()),
            ("front_proxy_ca_cert_ref", cluster.front_proxy_ca_cert_ref.clone()),
        ]
    }

    /// Reads the key pairs that the cluster refers to, and returns the certificates by their columns.
    pub async fn load_certificates(&mut self, db: &Database) -> Result<BTreeMap<String, String>> {
        let mut certificates = BTreeMap::new();
        self.key_pairs.clear();
        for (column, reference) in self.references() {
            let Some(reference) = reference else { continue };
            let found = db.run(move |conn| key_pairs::find(conn, &reference)).await?;
            let pair = found.with_context(|| format!("no key pair of {column}"))?;
            certificates.insert(column.to_owned(), pair.certificate.clone().unwrap_or_default());
            self.key_pairs.push(pair);
        }
        Ok(certificates)
    }
}

impl Columns {
    /// Those in the database.
    pub async fn read(db: &Database) -> Result<Self> {
        let (cluster, groups) = db
            .run(|conn| {
                let uuid = ClusterUuid::from(CLUSTER);
                Ok::<_, DbError>((clusters::find(conn, &uuid)?, node_groups::of(conn, &uuid)?))
            })
            .await?;
        Ok(columns(cluster.as_ref(), &groups))
    }
}

/// The cluster, as it is in the database.
pub async fn row(db: &Database) -> Result<Option<Cluster>> {
    Ok(db.run(|conn| clusters::find(conn, &CLUSTER.into())).await?)
}

/// Removes what a case has left.
pub fn wipe(conn: &mut AnyConnection) -> Result<(), DbError> {
    macro_rules! empty {
        ($($table:ident)*) => {$(diesel::delete(schema::$table::table).execute(conn)?;)*};
    }
    empty!(
        cluster nodegroup cluster_template x509keypair conductor_operation_event conductor_operation
        conductor_cluster_poll conductor_cluster_health conductor_cluster_driver conductor_certificate_removal
        conductor_object_answer
    );
    Ok(())
}

fn columns(cluster: Option<&Cluster>, groups: &[NodeGroup]) -> Columns {
    let some = |object: Value, wanted: &[&str]| -> Map<String, Value> {
        let data = &object["magnum_object.data"];
        wanted
            .iter()
            .map(|name| ((*name).to_owned(), data[*name].clone()))
            .collect()
    };
    Columns {
        cluster: cluster.map(|cluster| some(magnum_objects::cluster::encode(cluster), CLUSTER_COLUMNS)),
        groups: groups
            .iter()
            .map(|group| {
                (
                    group.name.clone(),
                    some(magnum_objects::node_group::encode(group), GROUP_COLUMNS),
                )
            })
            .collect(),
    }
}
