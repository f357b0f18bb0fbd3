//! `Federation`: rows that may be there, of a feature that never was.

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::model::Federation;
use magnum_db::read::{SortKey, Tenancy, federations as read};
use magnum_db::{AnyConnection, DbError};
use magnum_objects::{VersionedObject, tables};
use serde_json::json;
use uuid::Uuid;

use super::arguments::Bound;
use super::class::{Class, Outcome, class_methods, instance_methods};
use super::failure::{Failure, fault};
use super::instance::{self, Stored};
use super::listing::{self, Filters};
use super::lookup::{self, Lookup, LookupByName, Scope};
use crate::store::objects::Table;

pub(super) const CLASS: Class = Class {
    schema: &tables::FEDERATION,
    class_methods: class_methods! { "Federation";
        reads "get" (federation_id;) lookup::get::<Federation>,
        reads "get_by_id" (federation_id;) lookup::get_by_id::<Federation>,
        reads "get_by_uuid" (uuid;) lookup::get_by_uuid::<Federation>,
        reads "get_by_name" (name;) lookup::get_by_name::<Federation>,
        reads "get_count_all" (; filters) get_count_all,
        reads "list" (; limit marker sort_key sort_dir filters) list,
    },
    instance_methods: instance_methods! { "Federation";
        changes "create" instance::create::<Federation>,
        changes "save" instance::save::<Federation>,
        reads "refresh" instance::refresh::<Federation>,
        changes "destroy" instance::destroy::<Federation>,
    },
};

fn filter(args: &mut Bound) -> Result<read::Filter, Fault> {
    let filters = Filters::take(args)?;
    Ok(read::Filter {
        name: filters.text("name")?,
        project_id: filters.text("project_id")?,
        hostcluster_id: filters.text("hostcluster_id")?,
        member_ids: filters.json("member_ids"),
        properties: filters.json("properties"),
        statuses: filters.statuses()?,
    })
}

/// Magnum's own calls a function that does not exist.
fn get_count_all(
    conn: &mut AnyConnection,
    context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let count = read::count_listed(conn, &Tenancy::of(context), &filter(&mut args)?)?;
    Ok(Outcome::Plain(json!(count)))
}

fn list(conn: &mut AnyConnection, context: &RequestContext, mut args: Bound) -> Result<Outcome, Failure> {
    let page = listing::page(&mut args, CLASS.schema, SortKey::of_federation)?;
    let found = read::list(conn, &Tenancy::of(context), &filter(&mut args)?, &page)?;
    Ok(Outcome::all(&listing::checked(conn, &page, found)?))
}

impl Lookup for Federation {
    fn by_id(conn: &mut AnyConnection, scope: Scope<'_>, id: i32) -> Result<Option<Self>, DbError> {
        read::find_by_id(conn, &scope.tenancy(), id)
    }

    fn by_uuid(conn: &mut AnyConnection, scope: Scope<'_>, uuid: &str) -> Result<Option<Self>, DbError> {
        read::find_by_uuid(conn, &scope.tenancy(), uuid)
    }

    fn not_found(text: &str) -> Failure {
        let message = format!("Federation {text} could not be found.");
        fault(Exception::FederationNotFound, message, &[("federation", text)]).into()
    }
}

impl LookupByName for Federation {
    const NOUNS: (&'static str, &'static str) = ("federation", "federations");

    fn by_name(conn: &mut AnyConnection, scope: Scope<'_>, name: &str) -> Result<Vec<Self>, DbError> {
        read::find_by_name(conn, &scope.tenancy(), name)
    }
}

impl Stored for Federation {
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
            let text = format!("A federation with UUID {uuid} already exists.");
            return Err(fault(Exception::FederationAlreadyExists, text, &[("uuid", &uuid)]).into());
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
