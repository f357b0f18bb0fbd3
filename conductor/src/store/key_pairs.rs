//! The conductor's reads and writes of `x509keypair`. Without a tenant filter: who asks has been checked against
//! the cluster whose certificates these are.

use diesel::prelude::*;
use magnum_common::model::X509KeyPair;
use magnum_db::rows::X509KeyPairRow;
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
