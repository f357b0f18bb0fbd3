//! `ClusterTemplate`. Everybody sees the public ones; one that clusters were made from hardly changes.

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::TemplateUuid;
use magnum_common::model::ClusterTemplate;
use magnum_db::AnyConnection;
use magnum_db::DbError;
use magnum_db::read::SortKey;
use magnum_db::read::cluster_templates::{self as read, Visibility};
use magnum_db::write::cluster_templates::{self as write, Written};
use magnum_objects::{VersionedObject, tables};
use serde_json::json;

use super::arguments::Bound;
use super::class::{Class, Outcome, class_methods, instance_methods};
use super::failure::{Failure, fault};
use super::instance::{self, Stored};
use super::listing;
use super::lookup::{self, Lookup, LookupByName, Scope};

pub(super) const CLASS: Class = Class {
    schema: &tables::CLUSTER_TEMPLATE,
    class_methods: class_methods! { "ClusterTemplate";
        reads "get" (cluster_template_id;) lookup::get_or_by_name::<ClusterTemplate>,
        reads "get_by_id" (cluster_template_id;) lookup::get_by_id::<ClusterTemplate>,
        reads "get_by_uuid" (uuid;) lookup::get_by_uuid::<ClusterTemplate>,
        reads "get_by_name" (name;) lookup::get_by_name::<ClusterTemplate>,
        reads "list" (; limit marker sort_key sort_dir) list,
    },
    instance_methods: instance_methods! { "ClusterTemplate";
        changes "create" instance::create::<ClusterTemplate>,
        changes "save" instance::save::<ClusterTemplate>,
        reads "refresh" instance::refresh::<ClusterTemplate>,
        changes "destroy" instance::destroy::<ClusterTemplate>,
    },
};

fn list(conn: &mut AnyConnection, context: &RequestContext, mut args: Bound) -> Result<Outcome, Failure> {
    let page = listing::page(&mut args, CLASS.schema, SortKey::of_cluster_template)?;
    let found = read::list(conn, &Visibility::of(context), &page)?;
    Ok(Outcome::all(&listing::checked(conn, &page, found)?))
}

/// A refusal of the writes.
fn done(written: Written, uuid: &TemplateUuid) -> Result<(), Failure> {
    match written {
        Written::Done => Ok(()),
        Written::Absent => Err(ClusterTemplate::not_found(uuid.as_str())),
        Written::Referenced => {
            let text = format!("ClusterTemplate {uuid} is referenced by one or multiple clusters.");
            let kwargs = [("clustertemplate", uuid.as_str())];
            Err(fault(Exception::ClusterTemplateReferenced, text, &kwargs).into())
        }
    }
}

impl Lookup for ClusterTemplate {
    fn by_id(conn: &mut AnyConnection, scope: Scope<'_>, id: i32) -> Result<Option<Self>, DbError> {
        read::find_by_id(conn, &scope.visibility(), id)
    }

    fn by_uuid(conn: &mut AnyConnection, scope: Scope<'_>, uuid: &str) -> Result<Option<Self>, DbError> {
        read::find_by_uuid(conn, &scope.visibility(), &uuid.into())
    }

    fn not_found(text: &str) -> Failure {
        let mut fault = Fault::cluster_template_not_found(text);
        fault.kwargs.insert("clustertemplate".into(), json!(text));
        fault.into()
    }
}

impl LookupByName for ClusterTemplate {
    const NOUNS: (&'static str, &'static str) = ("ClusterTemplate", "ClusterTemplates");

    fn by_name(conn: &mut AnyConnection, scope: Scope<'_>, name: &str) -> Result<Vec<Self>, DbError> {
        read::find_by_name(conn, &scope.visibility(), name)
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
            Err(DbError::UniqueViolation { .. }) => return Err(Failure::Retry),
            written => written?,
        }
        lookup::with_uuid(conn, Scope::All, new.uuid.as_str())
    }

    fn find(conn: &mut AnyConnection, scope: Scope<'_>, object: &VersionedObject) -> Result<Self, Failure> {
        lookup::of_object(conn, scope, object)
    }

    fn write(conn: &mut AnyConnection, before: &Self, after: Self, _changed: &[&str]) -> Result<(), Failure> {
        done(write::update(conn, before, &after)?, &before.uuid)
    }

    fn delete(conn: &mut AnyConnection, found: &Self) -> Result<(), Failure> {
        done(write::delete(conn, &found.uuid)?, &found.uuid)
    }
}
