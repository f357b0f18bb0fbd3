//! Writes of the objects RPC: one row at a time, as a Python service asks for it.
//!
//! An insert says whether the row is new; an update writes the columns in which two states of a row differ, and
//! says whether the row is there; a delete says whether it was. Who may do what was decided where the request came
//! from: Magnum's instance methods have no tenant filter.

use diesel::prelude::*;
use magnum_common::model::{Cluster, Federation, MagnumService, NodeGroup, Quota, X509KeyPair};
use magnum_common::secret::Secret;
use magnum_db::rows::{
    ClusterRow, FederationRow, MagnumServiceRow, NodeGroupRow, QuotaRow, RowTime, X509KeyPairRow,
};
use magnum_db::write::unless_exists;
use magnum_db::{AnyConnection, DbError, schema};

use schema::{
    cluster, conductor_cluster_driver, conductor_cluster_health, conductor_cluster_poll, federation,
    magnum_service, nodegroup, quotas, x509keypair,
};

/// A table that is written row by row.
pub trait Table: Sized {
    /// A new row. `false`: there is one with this key, and nothing was written.
    ///
    /// # Errors
    /// When the database fails.
    fn insert(&self, conn: &mut AnyConnection) -> Result<bool, DbError>;

    /// Writes what differs from `before`, by the number of its row. `false`: the row is gone.
    ///
    /// # Errors
    /// When the database fails.
    fn update(&self, before: &Self, conn: &mut AnyConnection) -> Result<bool, DbError>;

    /// Removes the row with the number of this one. `false`: it is gone already.
    ///
    /// # Errors
    /// When the database fails.
    fn delete(&self, conn: &mut AnyConnection) -> Result<bool, DbError>;
}

macro_rules! insert {
    ($conn:expr, $table:ident, $row:expr) => {{
        let row = $row;
        unless_exists($conn, |conn| {
            diesel::insert_into($table::table).values(&row).execute(conn)
        })
    }};
}

macro_rules! delete {
    ($conn:expr, $table:ident, $id:expr) => {
        match $id {
            None => Ok(false),
            Some(id) => Ok(diesel::delete($table::table.filter($table::id.eq(id))).execute($conn)? > 0),
        }
    };
}

macro_rules! update {
    ($conn:expr, $table:ident, $id:expr, $changes:expr) => {
        match $id {
            None => Ok(false),
            Some(id) => Ok(diesel::update($table::table.filter($table::id.eq(id)))
                .set($changes)
                .execute($conn)?
                > 0),
        }
    };
}

macro_rules! tables {
    ($($model:ty, $row:ty, $table:ident;)*) => {
        $(impl Table for $model {
            fn insert(&self, conn: &mut AnyConnection) -> Result<bool, DbError> {
                insert!(conn, $table, <$row>::from(self))
            }

            fn update(&self, before: &Self, conn: &mut AnyConnection) -> Result<bool, DbError> {
                let changes = <$row>::from(self).changes_since(&<$row>::from(before));
                if changes.is_empty() {
                    return Ok(true);
                }
                update!(conn, $table, before.id, &changes)
            }

            fn delete(&self, conn: &mut AnyConnection) -> Result<bool, DbError> {
                delete!(conn, $table, self.id)
            }
        })*
    };
}

tables! {
    NodeGroup, NodeGroupRow, nodegroup;
    Quota, QuotaRow, quotas;
    Federation, FederationRow, federation;
}

impl Table for Cluster {
    fn insert(&self, conn: &mut AnyConnection) -> Result<bool, DbError> {
        insert!(conn, cluster, ClusterRow::from(self))
    }

    fn update(&self, before: &Self, conn: &mut AnyConnection) -> Result<bool, DbError> {
        let changes = ClusterRow::from(self).changes_since(&ClusterRow::from(before));
        if changes.is_empty() {
            return Ok(true);
        }
        update!(conn, cluster, before.id, &changes)
    }

    /// The row and what we keep beside it. Node groups and certificates stay: their owner removes them.
    fn delete(&self, conn: &mut AnyConnection) -> Result<bool, DbError> {
        let uuid = self.uuid.as_str();
        let polls = conductor_cluster_poll::table.filter(conductor_cluster_poll::cluster_uuid.eq(uuid));
        diesel::delete(polls).execute(conn)?;
        let health = conductor_cluster_health::table.filter(conductor_cluster_health::cluster_uuid.eq(uuid));
        diesel::delete(health).execute(conn)?;
        let drivers = conductor_cluster_driver::table.filter(conductor_cluster_driver::cluster_uuid.eq(uuid));
        diesel::delete(drivers).execute(conn)?;
        delete!(conn, cluster, self.id)
    }
}

/// Columns of a key pair. No `Debug`: one of them is a private key.
#[derive(AsChangeset)]
#[diesel(table_name = x509keypair)]
struct KeyPairChanges {
    certificate: Option<Option<String>>,
    private_key: Option<Option<String>>,
    private_key_passphrase: Option<Option<String>>,
    intermediates: Option<Option<String>>,
    project_id: Option<Option<String>>,
    user_id: Option<Option<String>>,
    updated_at: RowTime,
}

impl Table for X509KeyPair {
    fn insert(&self, conn: &mut AnyConnection) -> Result<bool, DbError> {
        insert!(conn, x509keypair, X509KeyPairRow::from(self))
    }

    fn update(&self, before: &Self, conn: &mut AnyConnection) -> Result<bool, DbError> {
        if self == before {
            return Ok(true);
        }
        let text = |ours: &Option<String>, theirs: &Option<String>| (ours != theirs).then(|| ours.clone());
        let secret = |ours: &Option<Secret>, theirs: &Option<Secret>| {
            (ours != theirs).then(|| ours.as_ref().map(|secret| secret.expose().to_owned()))
        };
        let changes = KeyPairChanges {
            certificate: text(&self.certificate, &before.certificate),
            private_key: secret(&self.private_key, &before.private_key),
            private_key_passphrase: secret(&self.private_key_passphrase, &before.private_key_passphrase),
            intermediates: text(&self.intermediates, &before.intermediates),
            project_id: text(&self.project_id, &before.project_id),
            user_id: text(&self.user_id, &before.user_id),
            updated_at: RowTime::now(),
        };
        update!(conn, x509keypair, before.id, &changes)
    }

    fn delete(&self, conn: &mut AnyConnection) -> Result<bool, DbError> {
        delete!(conn, x509keypair, self.id)
    }
}

#[derive(AsChangeset)]
#[diesel(table_name = magnum_service)]
struct ServiceChanges {
    host: Option<Option<String>>,
    binary: Option<Option<String>>,
    disabled: Option<Option<bool>>,
    disabled_reason: Option<Option<String>>,
    last_seen_up: Option<Option<RowTime>>,
    forced_down: Option<Option<bool>>,
    report_count: Option<i32>,
    updated_at: Option<RowTime>,
}

impl Table for MagnumService {
    fn insert(&self, conn: &mut AnyConnection) -> Result<bool, DbError> {
        insert!(conn, magnum_service, MagnumServiceRow::from(self))
    }

    fn update(&self, before: &Self, conn: &mut AnyConnection) -> Result<bool, DbError> {
        if self == before {
            return Ok(true);
        }
        let text = |ours: &Option<String>, theirs: &Option<String>| (ours != theirs).then(|| ours.clone());
        let flag = |ours: bool, theirs: bool| (ours != theirs).then_some(Some(ours));
        let changes = ServiceChanges {
            host: text(&self.host, &before.host),
            binary: text(&self.binary, &before.binary),
            disabled: flag(self.disabled, before.disabled),
            disabled_reason: text(&self.disabled_reason, &before.disabled_reason),
            last_seen_up: (self.last_seen_up != before.last_seen_up).then(|| self.last_seen_up.map(RowTime)),
            forced_down: flag(self.forced_down, before.forced_down),
            report_count: (self.report_count != before.report_count).then_some(self.report_count),
            updated_at: Some(RowTime::now()),
        };
        update!(conn, magnum_service, before.id, &changes)
    }

    fn delete(&self, conn: &mut AnyConnection) -> Result<bool, DbError> {
        delete!(conn, magnum_service, self.id)
    }
}
