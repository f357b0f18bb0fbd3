//! The rows of a case: as the recording gives them, and as they are in the database.

use anyhow::{Context as _, Result, ensure};
use diesel::prelude::*;
use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup};
use magnum_common::secret::Secret;
use magnum_conductor::seal::JournalKey;
use magnum_conductor::store::objects::Table as _;
use magnum_conductor::store::{clusters, node_groups};
use magnum_conductor::trusts;
use magnum_db::{AnyConnection, Database, DbError, schema};
use magnum_objects::WireModel;
use magnum_objects::convert::Received;
use serde_json::{Map, Value, json};

use super::super::replay::Columns;
use super::case::Case;
use super::fixtures::Scene;
use super::words;

/// The driver in the environment of the replay.
pub const DRIVER: &str = "k8s_fedora_coreos_replay";

/// Columns that a recording does not tell: numbers of rows, times, uuids that a request does not bring, and the references
/// to certificates, which are made by the conductor.
const UNTOLD: &[&str] = &[
    "id",
    "uuid",
    "created_at",
    "updated_at",
    "ca_cert_ref",
    "magnum_cert_ref",
    "etcd_ca_cert_ref",
    "front_proxy_ca_cert_ref",
];

/// The rows of a cluster, with the template of an upgrade.
#[derive(Debug, Clone)]
pub struct Rows {
    pub cluster: Cluster,
    pub groups: Vec<NodeGroup>,
    pub template: ClusterTemplate,
    pub newer_template: ClusterTemplate,
    trust: Value,
}

impl Rows {
    /// As given.
    pub fn given(scene: &Scene) -> Result<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned).context("a text");
        let of = &scene.cluster;
        let (uuid, template) = (text(&of["uuid"])?, text(&of["cluster_template_id"])?);
        let cluster = Cluster::new(uuid.as_str().into(), template.as_str().into());
        let groups = scene.groups.iter().map(|group| {
            let blank = NodeGroup::new(
                text(&group["uuid"])?.as_str().into(),
                &text(&group["name"])?,
                uuid.as_str().into(),
                &text(&of["project_id"])?,
                &text(&group["role"])?,
            );
            filled(&blank, group)
        });
        let template = |fields: &Value| {
            let blank = ClusterTemplate::new(text(&fields["uuid"])?.as_str().into());
            let mut template = filled(&blank, fields)?;
            template.driver = Some(DRIVER.to_owned());
            Ok::<_, anyhow::Error>(template)
        };
        Ok(Self {
            cluster: filled(&cluster, of)?,
            groups: groups.collect::<Result<_>>()?,
            template: template(&scene.template)?,
            newer_template: template(&scene.newer_template)?,
            trust: of.clone(),
        })
    }

    /// The group of this name.
    pub fn group(&mut self, name: &str) -> Result<&mut NodeGroup> {
        let mut groups = self.groups.iter_mut();
        groups
            .find(|group| group.name == name)
            .with_context(|| format!("no group {name}"))
    }

    /// What the default groups are to have, and do not get from a request for the cluster.
    pub fn unrequested(&self) -> Map<String, Value> {
        let mut all = Map::new();
        for group in self.groups.iter().filter(|group| group.is_default) {
            let mut made = group.clone();
            let flavors = if group.is_master() {
                (&self.cluster.master_flavor_id, &self.template.master_flavor_id)
            } else {
                (&self.cluster.flavor_id, &self.template.flavor_id)
            };
            made.flavor_id = flavors.0.clone().or_else(|| flavors.1.clone());
            made.image_id.clone_from(&self.template.image_id);
            made.labels = self.cluster.labels.clone();
            made.docker_volume_size = self
                .cluster
                .docker_volume_size
                .or(self.template.docker_volume_size);
            let lowest = self
                .cluster
                .labels
                .get("min_node_count")
                .filter(|_| !group.is_master());
            made.min_node_count = lowest.and_then(|label| label.parse().ok()).unwrap_or_default();
            made.max_node_count = None;
            let (made, given) = (columns_of(&made), columns_of(group));
            let fields: Map<String, Value> = given
                .into_iter()
                .filter(|(name, value)| made[name] != *value)
                .collect();
            if !fields.is_empty() {
                all.insert(group.name.clone(), json!(fields));
            }
        }
        all
    }

    /// Writes the templates and the trust; the cluster with its groups, too, unless a request brings them.
    pub async fn put(&self, db: &Database, key: &JournalKey, is_created: bool) -> Result<()> {
        let (rows, sealed) = (self.clone(), self.sealed_password(key)?);
        let written = db
            .transaction(move |conn| {
                magnum_db::write::cluster_templates::insert(conn, &rows.template)?;
                magnum_db::write::cluster_templates::insert(conn, &rows.newer_template)?;
                rows.put_trust(conn, &sealed)?;
                let mut all = true;
                if !is_created {
                    all &= rows.cluster.insert(conn)?;
                    for group in &rows.groups {
                        all &= group.insert(conn)?;
                    }
                }
                Ok::<_, DbError>(all)
            })
            .await?;
        ensure!(written, "some rows were there already");
        Ok(())
    }

    fn sealed_password(&self, key: &JournalKey) -> Result<Vec<u8>> {
        let password = self.trust["trustee_password"].as_str().unwrap_or_default();
        Ok(trusts::seal(
            key,
            &self.cluster.uuid,
            &Secret::new(password.to_owned()),
        )?)
    }

    /// The trust as an earlier attempt, or the conductor that had the cluster before, has left it: nothing is left to be
    /// done in Keystone.
    fn put_trust(&self, conn: &mut AnyConnection, sealed_password: &[u8]) -> Result<(), DbError> {
        use schema::conductor_cluster_trust::dsl as t;
        let Some(trust) = self.trust["trust_id"].as_str() else {
            return Ok(());
        };
        let now = magnum_db::now_ms_expr(conn);
        let row = (
            t::cluster_uuid.eq(self.cluster.uuid.as_str()),
            t::trustee_username.eq(self.trust["trustee_username"].as_str().unwrap_or_default()),
            t::trustee_user_id.eq(self.trust["trustee_user_id"].as_str()),
            t::trust_id.eq(trust),
            t::sealed_password.eq(sealed_password),
            t::failures.eq(0),
            t::created_ms.eq(now),
        );
        diesel::insert_into(t::conductor_cluster_trust)
            .values(row)
            .execute(conn)?;
        Ok(())
    }

    /// What is compared of them, for the case of this number.
    pub fn columns(&self, number: usize) -> Result<Columns> {
        columns(Some(&self.cluster), &self.groups, number)
    }
}

/// The rows in the database, of the case of this number.
pub async fn read(db: &Database, rows: &Rows, number: usize) -> Result<Columns> {
    let uuid = rows.cluster.uuid.clone();
    let (cluster, groups) = db
        .run(move |conn| Ok::<_, DbError>((clusters::find(conn, &uuid)?, node_groups::of(conn, &uuid)?)))
        .await?;
    columns(cluster.as_ref(), &groups, number)
}

/// The blank row with the fields that it knows.
fn filled<M: WireModel>(blank: &M, fields: &Value) -> Result<M> {
    let mut object = magnum_objects::encode(blank);
    for (name, value) in fields.as_object().into_iter().flatten() {
        if M::SCHEMA.field(name).is_some() {
            object["magnum_object.data"][name] = value.clone();
        }
    }
    Ok(Received::<M>::decode(&object)?.model()?)
}

fn columns_of<M: WireModel>(row: &M) -> Map<String, Value> {
    let mut object = magnum_objects::encode(row);
    let mut columns = object["magnum_object.data"]
        .as_object_mut()
        .map(std::mem::take)
        .unwrap_or_default();
    columns.retain(|name, _| !UNTOLD.contains(&name.as_str()));
    columns
}

fn columns(cluster: Option<&Cluster>, groups: &[NodeGroup], number: usize) -> Result<Columns> {
    let told = |columns: Map<String, Value>| -> Result<Map<String, Value>> {
        let told = words::shared(number, &Value::Object(columns))?;
        Ok(told.as_object().cloned().unwrap_or_default())
    };
    Ok(Columns {
        cluster: cluster.map(|cluster| told(columns_of(cluster))).transpose()?,
        groups: groups
            .iter()
            .map(|group| Ok((group.name.clone(), told(columns_of(group))?)))
            .collect::<Result<_>>()?,
    })
}

/// Whether the rows of a new cluster come from its request.
pub fn is_created(case: &Case) -> bool {
    case.operation() == "create"
}
