//! `Quota`. Policy decides who may ask; there is no tenant filter.

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::model::Quota;
use magnum_db::AnyConnection;
use magnum_db::read::records::{self as read, QuotaFilter};
use magnum_db::read::{Page, SortKey};
use magnum_objects::{Received, VersionedObject, object_of, tables};
use serde_json::Value;

use super::arguments::Bound;
use super::class::{Class, Outcome, class_methods, instance_methods};
use super::failure::{Failure, fault};
use super::fields;
use super::identity::{self, python_str};
use super::listing::{self, Filters};
use crate::store::objects::Table;

pub(super) const CLASS: Class = Class {
    schema: &tables::QUOTA,
    class_methods: class_methods! { "Quota";
        reads "get_by_id" (quota_id;) get_by_id,
        reads "get_quota_by_project_id_resource" (project_id resource;) get_quota_by_project_id_resource,
        reads "quota_get_all_by_project_id" (project_id;) quota_get_all_by_project_id,
        reads "list" (; limit marker sort_key sort_dir filters) list,
        changes "update_quota" (project_id quota;) update_quota,
    },
    instance_methods: instance_methods! { "Quota";
        changes "create" create,
        changes "delete" delete,
    },
};

fn not_found(name: &str) -> Failure {
    let text = format!("Quota could not be found: {name}");
    fault(Exception::QuotaNotFound, text, &[("msg", name)]).into()
}

fn of_project(conn: &mut AnyConnection, project: &str, resource: &str) -> Result<Quota, Failure> {
    read::find_quota(conn, project, resource)?
        .ok_or_else(|| not_found(&format!("project_id {project} resource {resource}.")))
}

fn get_by_id(
    conn: &mut AnyConnection,
    _context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let id = args.take("quota_id");
    let found = match identity::number(&id) {
        Some(id) => read::find_quota_by_id(conn, id)?,
        None => None,
    };
    found
        .map(|quota| Outcome::of(&quota))
        .ok_or_else(|| not_found(&format!("quota id {} .", python_str(&id))))
}

fn get_quota_by_project_id_resource(
    conn: &mut AnyConnection,
    _context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let (project, resource) = (
        python_str(&args.take("project_id")),
        python_str(&args.take("resource")),
    );
    of_project(conn, &project, &resource).map(|quota| Outcome::of(&quota))
}

/// Magnum's own calls a function that does not exist.
fn quota_get_all_by_project_id(
    conn: &mut AnyConnection,
    _context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let project = python_str(&args.take("project_id"));
    Ok(Outcome::all(&read::quotas(
        conn,
        Some(&project),
        &Page::default(),
    )?))
}

fn list(conn: &mut AnyConnection, _context: &RequestContext, mut args: Bound) -> Result<Outcome, Failure> {
    let page = listing::page(&mut args, CLASS.schema, SortKey::of_quota)?;
    let filters = Filters::take(&mut args)?;
    let filter = QuotaFilter {
        project_id: filters.text("project_id")?,
        resource: filters.text("resource")?,
    };
    let found = read::quotas_filtered(conn, &filter, &page)?;
    Ok(Outcome::all(&listing::checked(conn, &page, found)?))
}

fn update_quota(
    conn: &mut AnyConnection,
    _context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let project = python_str(&args.take("project_id"));
    let Value::Object(values) = args.take("quota") else {
        return Err(Fault::new(Exception::TypeError, "quota must be a map of fields").into());
    };
    let resource = values
        .get("resource")
        .ok_or_else(|| Fault::new(Exception::KeyError, "'resource'"))?;
    let before = of_project(conn, &project, &python_str(resource))?;
    let mut object = object_of(&before, |_| true, &[]);
    for (name, value) in &values {
        if CLASS.schema.field(name).is_some() {
            object.set(name, value)?;
        }
    }
    let mut after = before.clone();
    Received::<Quota>::from_object(object)?.apply(&mut after)?;
    after.update(&before, conn)?;
    let project = after.project_id.as_deref().unwrap_or_default();
    let resource = after.resource.as_deref().unwrap_or_default();
    of_project(conn, project, resource).map(|quota| Outcome::of(&quota))
}

fn create(
    conn: &mut AnyConnection,
    _context: &RequestContext,
    object: &mut VersionedObject,
) -> Result<(), Failure> {
    for field in ["project_id", "resource", "hard_limit"] {
        if !object.is_changed(field) {
            let text = format!("Field `{field}' of Quota is not set");
            return Err(Fault::new(Exception::ValueError, text).into());
        }
    }
    let new = Received::<Quota>::from_object(object.clone())?.created()?;
    let (project, resource) = (
        fields::text(object, "project_id")?,
        fields::text(object, "resource")?,
    );
    if !new.insert(conn)? {
        let text = format!("Quota for project {project} already exists for resource {resource}.");
        let kwargs = [("project_id", project), ("resource", resource)];
        return Err(fault(Exception::QuotaAlreadyExists, text, &kwargs).into());
    }
    let stored = object_of(&of_project(conn, project, resource)?, |_| true, &[]);
    for (name, value) in stored.set_fields() {
        object.load(name, value)?;
    }
    object.clear_changes();
    Ok(())
}

fn delete(
    conn: &mut AnyConnection,
    _context: &RequestContext,
    object: &mut VersionedObject,
) -> Result<(), Failure> {
    let (project, resource) = (
        fields::text(object, "project_id")?,
        fields::text(object, "resource")?,
    );
    let found = of_project(conn, project, resource)?;
    Table::delete(&found, conn)?;
    object.clear_changes();
    Ok(())
}
