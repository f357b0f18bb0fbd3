//! `X509KeyPair`: private keys and their passphrases. Only callers in the tenant scope of a row get them; they are
//! never logged nor stored with a reply.

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::model::X509KeyPair;
use magnum_db::read::{SortKey, Tenancy, key_pairs as read};
use magnum_db::{AnyConnection, DbError};
use magnum_objects::{VersionedObject, tables};
use uuid::Uuid;

use super::arguments::Bound;
use super::class::{Class, Outcome, class_methods, instance_methods};
use super::failure::{Failure, fault};
use super::instance::{self, Stored};
use super::listing::{self, Filters};
use super::lookup::{self, Lookup, Scope};
use crate::store::objects::Table;

/// Fields that are not stored with a reply. After `create` they have the values of the request.
pub(super) const SECRETS: &[&str] = &["private_key", "private_key_passphrase"];

pub(super) const CLASS: Class = Class {
    schema: &tables::X509_KEY_PAIR,
    class_methods: class_methods! { "X509KeyPair";
        reads "get" (x509keypair_id;) lookup::get::<X509KeyPair>,
        reads "get_by_id" (x509keypair_id;) lookup::get_by_id::<X509KeyPair>,
        reads "get_by_uuid" (uuid;) lookup::get_by_uuid::<X509KeyPair>,
        reads "list" (; limit marker sort_key sort_dir filters) list,
    },
    instance_methods: instance_methods! { "X509KeyPair";
        changes "create" instance::create::<X509KeyPair>,
        changes "save" instance::save::<X509KeyPair>,
        reads "refresh" instance::refresh::<X509KeyPair>,
        changes "destroy" instance::destroy::<X509KeyPair>,
    },
};

fn filter(args: &mut Bound) -> Result<read::Filter, Fault> {
    let filters = Filters::take(args)?;
    Ok(read::Filter {
        project_id: filters.text("project_id")?,
        user_id: filters.text("user_id")?,
    })
}

fn list(conn: &mut AnyConnection, context: &RequestContext, mut args: Bound) -> Result<Outcome, Failure> {
    let page = listing::page(&mut args, CLASS.schema, SortKey::of_key_pair)?;
    let found = read::list(conn, &Tenancy::of(context), &filter(&mut args)?, &page)?;
    Ok(Outcome::all(&listing::checked(conn, &page, found)?))
}

impl Lookup for X509KeyPair {
    fn by_id(conn: &mut AnyConnection, scope: Scope<'_>, id: i32) -> Result<Option<Self>, DbError> {
        read::find_by_id(conn, &scope.tenancy(), id)
    }

    fn by_uuid(conn: &mut AnyConnection, scope: Scope<'_>, uuid: &str) -> Result<Option<Self>, DbError> {
        read::find_by_uuid(conn, &scope.tenancy(), uuid)
    }

    fn not_found(text: &str) -> Failure {
        let message = format!("A key pair {text} could not be found.");
        fault(Exception::X509KeyPairNotFound, message, &[("x509keypair", text)]).into()
    }
}

impl Stored for X509KeyPair {
    const UUID_IS_FIXED: bool = true;

    fn create(conn: &mut AnyConnection, new: &Self) -> Result<Self, Failure> {
        let uuid = match &new.uuid {
            Some(uuid) if !uuid.is_empty() => uuid.clone(),
            _ => Uuid::new_v4().to_string(),
        };
        let new = Self {
            uuid: Some(uuid.clone()),
            ..new.clone()
        };
        if !new.insert(conn)? {
            let text = format!("A key pair with UUID {uuid} already exists.");
            return Err(fault(Exception::X509KeyPairAlreadyExists, text, &[("uuid", &uuid)]).into());
        }
        lookup::with_uuid(conn, Scope::All, &uuid)
    }

    fn find(conn: &mut AnyConnection, scope: Scope<'_>, object: &VersionedObject) -> Result<Self, Failure> {
        lookup::of_object(conn, scope, object)
    }

    fn write(conn: &mut AnyConnection, before: &Self, after: Self, _changed: &[&str]) -> Result<(), Failure> {
        if after.update(before, conn)? {
            Ok(())
        } else {
            Err(Self::not_found(before.uuid.as_deref().unwrap_or_default()))
        }
    }

    fn delete(conn: &mut AnyConnection, found: &Self) -> Result<(), Failure> {
        // Gone meanwhile is gone.
        Table::delete(found, conn).map(drop).map_err(Failure::from)
    }
}
