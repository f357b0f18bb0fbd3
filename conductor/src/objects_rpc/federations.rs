//! `Federation`: rows that may be there, of a feature that never was.

use magnum_common::context::RequestContext;
use magnum_common::db::AnyConnection;
use magnum_common::db::read::{SortKey, Tenancy, federations as read};
use magnum_common::error::{Exception, Fault};
use magnum_common::model::Federation;
use magnum_common::objects::{VersionedObject, tables};
use serde_json::json;
use uuid::Uuid;

use super::arguments::Bound;
use super::failure::{Failure, fault};
use super::identity::{self, Identity, shown};
use super::instance::{self, Stored};
use super::listing::{self, Filters};
use super::methods::{Class, Outcome, class_methods, instance_methods};
use crate::store::objects::Table;

pub(super) const CLASS: Class = Class {
    schema: &tables::FEDERATION,
    class_methods: class_methods! { "Federation";
        reads "get" (federation_id;) get,
        reads "get_by_id" (federation_id;) get_by_id,
        reads "get_by_uuid" (uuid;) get_by_uuid,
        reads "get_by_name" (name;) get_by_name,
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

fn not_found(federation: &str) -> Failure {
    let text = format!("Federation {federation} could not be found.");
    fault(Exception::FederationNotFound, text, &[("federation", federation)]).into()
}

fn by_id(
    conn: &mut AnyConnection,
    context: &RequestContext,
    id: Option<i32>,
    text: &str,
) -> Result<Outcome, Failure> {
    let found = match id {
        Some(id) => read::find_by_id(conn, &Tenancy::of(context), id)?,
        None => None,
    };
    found
        .map(|federation| Outcome::of(&federation))
        .ok_or_else(|| not_found(text))
}

fn by_uuid(conn: &mut AnyConnection, context: &RequestContext, uuid: &str) -> Result<Outcome, Failure> {
    read::find_by_uuid(conn, &Tenancy::of(context), uuid)?
        .map(|federation| Outcome::of(&federation))
        .ok_or_else(|| not_found(uuid))
}

fn get(conn: &mut AnyConnection, context: &RequestContext, mut args: Bound) -> Result<Outcome, Failure> {
    match Identity::of(&args.take("federation_id")) {
        Identity::Number(id, text) => by_id(conn, context, id, &text),
        Identity::Uuid(uuid) => by_uuid(conn, context, &uuid),
        Identity::Name(text) => Err(identity::invalid(&text).into()),
    }
}

fn get_by_id(
    conn: &mut AnyConnection,
    context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let id = args.take("federation_id");
    by_id(conn, context, identity::number(&id), &shown(&id))
}

fn get_by_uuid(
    conn: &mut AnyConnection,
    context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    by_uuid(conn, context, &shown(&args.take("uuid")))
}

fn get_by_name(
    conn: &mut AnyConnection,
    context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let name = shown(&args.take("name"));
    match read::find_by_name(conn, &Tenancy::of(context), &name)?.as_slice() {
        [] => Err(not_found(&name)),
        [federation] => Ok(Outcome::of(federation)),
        _ => Err(Fault::new(
            Exception::Conflict,
            "Multiple federations exist with same name. Please use the federation uuid instead.",
        )
        .into()),
    }
}

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
        read::find_by_uuid(conn, &Tenancy::All, &uuid)?.ok_or_else(|| not_found(&uuid))
    }

    fn find(conn: &mut AnyConnection, object: &VersionedObject) -> Result<Self, Failure> {
        let uuid = instance::uuid(object)?;
        read::find_by_uuid(conn, &Tenancy::All, uuid)?.ok_or_else(|| not_found(uuid))
    }

    fn find_visible(
        conn: &mut AnyConnection,
        context: &RequestContext,
        object: &VersionedObject,
    ) -> Result<Self, Failure> {
        let uuid = instance::text(object, "uuid")?;
        read::find_by_uuid(conn, &Tenancy::of(context), uuid)?.ok_or_else(|| not_found(uuid))
    }

    fn write(conn: &mut AnyConnection, before: &Self, after: Self, _changed: &[&str]) -> Result<(), Failure> {
        if after.update(before, conn)? {
            Ok(())
        } else {
            Err(not_found(before.uuid.as_deref().unwrap_or_default()))
        }
    }

    fn delete(conn: &mut AnyConnection, found: &Self) -> Result<(), Failure> {
        // Gone meanwhile is gone.
        Table::delete(found, conn).map(drop).map_err(Failure::from)
    }
}
