//! The conductor's reads and writes of `x509keypair`. Without a tenant filter: who asks has been checked against
//! the cluster whose certificates these are.

use diesel::prelude::*;
use magnum_common::model::{Timestamp, X509KeyPair};
use magnum_common::secret::Secret;
use magnum_db::rows::{RowTime, X509KeyPairRow};
use magnum_db::write::unless_exists;
use magnum_db::{AnyConnection, DbError, schema};

use schema::x509keypair::dsl as k;

/// The key pair with this uuid.
///
/// # Errors
/// The database failed.
pub fn find(conn: &mut AnyConnection, uuid: &str) -> Result<Option<X509KeyPair>, DbError> {
    Ok(k::x509keypair
        .filter(k::uuid.eq(uuid))
        .select(X509KeyPairRow::as_select())
        .first(conn)
        .optional()?
        .map(X509KeyPair::from))
}

/// A new key pair. `false`: there is one with this uuid already, and it stays.
///
/// # Errors
/// The database failed.
pub fn insert_unless_exists(conn: &mut AnyConnection, pair: &X509KeyPair) -> Result<bool, DbError> {
    let row = X509KeyPairRow::from(pair);
    unless_exists(conn, |conn| {
        diesel::insert_into(k::x509keypair).values(&row).execute(conn)
    })
}

/// Removes a key pair, if it is there.
///
/// # Errors
/// The database failed.
pub fn delete(conn: &mut AnyConnection, uuid: &str) -> Result<(), DbError> {
    diesel::delete(k::x509keypair.filter(k::uuid.eq(uuid))).execute(conn)?;
    Ok(())
}

/// How a sealed private key begins in its column. PEM begins otherwise.
pub const SEALED: &str = "magnum-sealed-v1:";

/// A row: its uuid, and when it was made.
pub type MadeRow = (Option<String>, Option<Timestamp>);

/// Rows whose private key is there and not sealed.
///
/// # Errors
/// The database failed.
pub fn plain(conn: &mut AnyConnection) -> Result<Vec<MadeRow>, DbError> {
    let rows: Vec<(Option<String>, Option<RowTime>)> = k::x509keypair
        .filter(k::private_key.not_like(format!("{SEALED}%")))
        .select((k::uuid, k::created_at))
        .load(conn)?;
    Ok(rows
        .into_iter()
        .map(|(uuid, made)| (uuid, made.map(Timestamp::from)))
        .collect())
}

/// All uuids.
///
/// # Errors
/// The database failed.
pub fn uuids(conn: &mut AnyConnection) -> Result<Vec<String>, DbError> {
    let uuids: Vec<Option<String>> = k::x509keypair.select(k::uuid).load(conn)?;
    Ok(uuids.into_iter().flatten().collect())
}

/// Writes the private key in another form, if it has this one still.
///
/// # Errors
/// The database failed.
pub fn renew(conn: &mut AnyConnection, uuid: &str, before: &Secret, after: &Secret) -> Result<bool, DbError> {
    let row = k::x509keypair
        .filter(k::uuid.eq(uuid))
        .filter(k::private_key.eq(before.expose()));
    let renewed = diesel::update(row).set(k::private_key.eq(after.expose()));
    Ok(renewed.execute(conn)? == 1)
}
