//! What a database holds that matters before this release is started on it: read for `magnum-status`, and nothing
//! is written. Works on Magnum's tables at either revision that this release knows, and with or without ours.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use diesel::prelude::*;
use magnum_common::model::{Cluster, ClusterTemplate, Timestamp};
use magnum_db::migrate::Revision;
use magnum_db::read::announced_drivers::{self, AnnouncedDriver};
use magnum_db::read::{Page, Tenancy, clusters, records};
use magnum_db::{AnyConnection, DbError, schema};

use crate::workflows::DriverRef;

/// All of it.
pub struct Facts {
    /// Every cluster that can be read.
    pub clusters: Vec<Cluster>,
    /// Their templates, by uuid.
    pub templates: HashMap<String, ClusterTemplate>,
    /// The driver that built a cluster, by its uuid, when ours did.
    pub built_by: HashMap<String, DriverRef>,
    /// Clusters with a user or a trust of their own in Keystone, in columns that are going to be dropped.
    pub with_trust: i64,
    /// Rows of services without a host.
    pub services_without_host: usize,
    /// Uuids in `x509keypair`.
    pub key_pairs: HashSet<String>,
    /// What running conductors have announced.
    pub announced: Vec<AnnouncedDriver>,
    /// Keys that are ready in the pool, by type.
    pub key_pool: HashMap<String, u64>,
    /// Operations that have not ended.
    pub open: Vec<OpenContext>,
    /// What is agreed on about sealed values, and since when.
    pub sealing: Vec<super::sealing::SealingRow>,
    /// Rows of `x509keypair`: the uuid, and when it was made; those whose key is not sealed.
    pub plain_keys: Vec<(Option<String>, Option<Timestamp>)>,
}

/// An operation that has not ended.
#[derive(Debug, Clone, Queryable)]
pub struct OpenContext {
    /// The operation.
    pub operation: String,
    /// Its cluster.
    pub cluster: String,
    /// Its sealed context; `None`: erased.
    pub context: Option<Vec<u8>>,
    /// When it was accepted.
    pub created_ms: i64,
}

impl Facts {
    /// Reads them, but for what the journal knows: `open` is left empty. `has_ours`: whether our tables are there.
    /// `fresh`: how old an announcement may be.
    ///
    /// # Errors
    /// The database failed.
    pub fn read(
        conn: &mut AnyConnection,
        revision: Revision,
        has_ours: bool,
        fresh: Duration,
    ) -> Result<Self, DbError> {
        let all = clusters::list(
            conn,
            &Tenancy::All,
            &clusters::Filter::default(),
            &Page::default(),
        )?;
        let used: HashSet<&str> = all.iter().map(|one| one.cluster_template_id.as_str()).collect();
        let templates = super::clusters::templates(conn, &used.into_iter().collect::<Vec<_>>())?;
        let with_trust = match revision {
            Revision::C0f832afc4fd => super::former_trusts::count_unsaved(conn, has_ours)?,
            // The columns are gone, and with them what they said.
            Revision::B3e1cf4a2d5e => 0,
        };
        let services = records::services(conn)?;
        let key_pairs: Vec<Option<String>> = schema::x509keypair::table
            .select(schema::x509keypair::uuid)
            .load(conn)?;
        let mut facts = Self {
            clusters: all,
            templates,
            built_by: HashMap::new(),
            with_trust,
            services_without_host: services.iter().filter(|one| one.host.is_none()).count(),
            key_pairs: key_pairs.into_iter().flatten().collect(),
            announced: Vec::new(),
            key_pool: HashMap::new(),
            open: Vec::new(),
            sealing: Vec::new(),
            plain_keys: super::key_pairs::plain(conn)?,
        };
        if has_ours {
            facts.read_ours(conn, fresh)?;
        }
        Ok(facts)
    }

    fn read_ours(&mut self, conn: &mut AnyConnection, fresh: Duration) -> Result<(), DbError> {
        use schema::conductor_cluster_driver::dsl as d;
        let built: Vec<(String, String, String)> = d::conductor_cluster_driver
            .select((d::cluster_uuid, d::driver, d::version))
            .load(conn)?;
        self.built_by = built
            .into_iter()
            .map(|(cluster, name, version)| (cluster, DriverRef { name, version }))
            .collect();
        self.announced = announced_drivers::list(conn, fresh)?;
        self.key_pool = super::key_pool::depths(conn)?;
        self.sealing = super::sealing::list(conn)?;
        Ok(())
    }
}
