//! `ClusterTemplate`. Everybody sees the public ones; one that clusters were made from hardly changes.

use magnum_common::context::RequestContext;
use magnum_common::db::AnyConnection;
use magnum_common::db::DbError;
use magnum_common::db::read::SortKey;
use magnum_common::db::read::cluster_templates::{self as read, Visibility};
use magnum_common::db::write::cluster_templates::{self as write, Written};
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::TemplateUuid;
use magnum_common::model::ClusterTemplate;
use magnum_common::objects::{VersionedObject, tables};
use serde_json::json;

use super::arguments::Bound;
use super::failure::{Failure, fault};
use super::identity::{self, Identity, shown};
use super::instance::{self, Stored};
use super::listing;
use super::methods::{Class, Outcome, class_methods, instance_methods};

pub(super) const CLASS: Class = Class {
    schema: &tables::CLUSTER_TEMPLATE,
    class_methods: class_methods! { "ClusterTemplate";
        reads "get" (cluster_template_id;) get,
        reads "get_by_id" (cluster_template_id;) get_by_id,
        reads "get_by_uuid" (uuid;) get_by_uuid,
        reads "get_by_name" (name;) get_by_name,
        reads "list" (; limit marker sort_key sort_dir) list,
    },
    instance_methods: instance_methods! { "ClusterTemplate";
        changes "create" instance::create::<ClusterTemplate>,
        changes "save" instance::save::<ClusterTemplate>,
        reads "refresh" instance::refresh::<ClusterTemplate>,
        changes "destroy" instance::destroy::<ClusterTemplate>,
    },
};

fn not_found(template: &str) -> Failure {
    let mut fault = Fault::cluster_template_not_found(template);
    fault.kwargs.insert("clustertemplate".into(), json!(template));
    fault.into()
}

fn by_id(
    conn: &mut AnyConnection,
    context: &RequestContext,
    id: Option<i32>,
    text: &str,
) -> Result<Outcome, Failure> {
    let found = match id {
        Some(id) => read::find_by_id(conn, &Visibility::of(context), id)?,
        None => None,
    };
    found
        .map(|template| Outcome::of(&template))
        .ok_or_else(|| not_found(text))
}

fn by_uuid(conn: &mut AnyConnection, context: &RequestContext, uuid: &str) -> Result<Outcome, Failure> {
    read::find_by_uuid(conn, &Visibility::of(context), &TemplateUuid::from(uuid))?
        .map(|template| Outcome::of(&template))
        .ok_or_else(|| not_found(uuid))
}

fn by_name(conn: &mut AnyConnection, context: &RequestContext, name: &str) -> Result<Outcome, Failure> {
    match read::find_by_name(conn, &Visibility::of(context), name)?.as_slice() {
        [] => Err(not_found(name)),
        [template] => Ok(Outcome::of(template)),
        _ => Err(Fault::new(
            Exception::Conflict,
            "Multiple ClusterTemplates exist with same name. Please use the ClusterTemplate uuid instead.",
        )
        .into()),
    }
}

fn get(conn: &mut AnyConnection, context: &RequestContext, mut args: Bound) -> Result<Outcome, Failure> {
    match Identity::of(&args.take("cluster_template_id")) {
        Identity::Number(id, text) => by_id(conn, context, id, &text),
        Identity::Uuid(uuid) => by_uuid(conn, context, &uuid),
        Identity::Name(name) => by_name(conn, context, &name),
    }
}

fn get_by_id(
    conn: &mut AnyConnection,
    context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let id = args.take("cluster_template_id");
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
    by_name(conn, context, &shown(&args.take("name")))
}

fn list(conn: &mut AnyConnection, context: &RequestContext, mut args: Bound) -> Result<Outcome, Failure> {
    let page = listing::page(&mut args, CLASS.schema, SortKey::of_cluster_template)?;
    let found = read::list(conn, &Visibility::of(context), &page)?;
    Ok(Outcome::all(&listing::checked(conn, &page, found)?))
}

/// A refusal of the writes.
fn done(written: Written, uuid: &TemplateUuid) -> Result<(), Failure> {
    match written {
        Written::Done => Ok(()),
        Written::Absent => Err(not_found(uuid.as_str())),
        Written::Referenced => {
            let text = format!("ClusterTemplate {uuid} is referenced by one or multiple clusters.");
            let kwargs = [("clustertemplate", uuid.as_str())];
            Err(fault(Exception::ClusterTemplateReferenced, text, &kwargs).into())
        }
    }
}

impl Stored for ClusterTemplate {
    const UUID_IS_FIXED: bool = true;

    fn create(conn: &mut AnyConnection, new: &Self) -> Result<Self, Failure> {
        // Looked for first: an insert that fails would end PostgreSQL's transaction. One that comes in between
        // fails the insert, and is seen when the work is done again.
        if read::find_by_uuid(conn, &Visibility::all(), &new.uuid)?.is_some() {
            let text = format!("A ClusterTemplate with UUID {} already exists.", new.uuid);
            let kwargs = [("uuid", new.uuid.as_str())];
            return Err(fault(Exception::ClusterTemplateAlreadyExists, text, &kwargs).into());
        }
        match write::insert(conn, new) {
            Err(DbError::UniqueViolation { .. }) => return Err(Failure::Again),
            written => written?,
        }
        read::find_by_uuid(conn, &Visibility::all(), &new.uuid)?.ok_or_else(|| not_found(new.uuid.as_str()))
    }

    fn find(conn: &mut AnyConnection, object: &VersionedObject) -> Result<Self, Failure> {
        let uuid = instance::uuid(object)?;
        read::find_by_uuid(conn, &Visibility::all(), &uuid.into())?.ok_or_else(|| not_found(uuid))
    }

    fn find_visible(
        conn: &mut AnyConnection,
        context: &RequestContext,
        object: &VersionedObject,
    ) -> Result<Self, Failure> {
        let uuid = instance::text(object, "uuid")?;
        read::find_by_uuid(conn, &Visibility::of(context), &uuid.into())?.ok_or_else(|| not_found(uuid))
    }

    fn write(conn: &mut AnyConnection, before: &Self, after: Self, _changed: &[&str]) -> Result<(), Failure> {
        done(write::update(conn, before, &after)?, &before.uuid)
    }

    fn delete(conn: &mut AnyConnection, found: &Self) -> Result<(), Failure> {
        done(write::delete(conn, &found.uuid)?, &found.uuid)
    }
}
