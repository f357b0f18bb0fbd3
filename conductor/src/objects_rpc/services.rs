//! `MagnumService`: which service was last seen where. No tenant filter: policy decides who may ask.

use magnum_common::clock;
use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::model::MagnumService;
use magnum_db::AnyConnection;
use magnum_db::read::{SortKey, records as read};
use magnum_objects::{VersionedObject, tables};
use serde_json::{Value, json};

use super::arguments::Bound;
use super::class::{Class, Outcome, class_methods, instance_methods};
use super::failure::{Failure, fault};
use super::fields;
use super::identity::python_str;
use super::instance::{self, Stored};
use super::listing;
use super::lookup::Scope;
use crate::store::objects::Table;

pub(super) const CLASS: Class = Class {
    schema: &tables::MAGNUM_SERVICE,
    class_methods: class_methods! { "MagnumService";
        reads "get_by_host_and_binary" (host binary;) get_by_host_and_binary,
        reads "list" (; limit marker sort_key sort_dir) list,
    },
    instance_methods: instance_methods! { "MagnumService";
        changes "create" instance::create::<MagnumService>,
        changes "save" instance::save::<MagnumService>,
        changes "destroy" instance::destroy::<MagnumService>,
        changes "report_state_up" report_state_up,
    },
};

fn not_found(id: &str) -> Failure {
    let text = format!("A magnum service {id} could not be found.");
    fault(
        Exception::MagnumServiceNotFound,
        text,
        &[("magnum_service_id", id)],
    )
    .into()
}

fn get_by_host_and_binary(
    conn: &mut AnyConnection,
    _context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let (host, binary) = (python_str(&args.take("host")), python_str(&args.take("binary")));
    let found = read::find_service(conn, &host, &binary)?;
    Ok(found.map_or(Outcome::Plain(Value::Null), |service| Outcome::of(&service)))
}

fn list(conn: &mut AnyConnection, _context: &RequestContext, mut args: Bound) -> Result<Outcome, Failure> {
    let page = listing::page(&mut args, CLASS.schema, SortKey::of_service)?;
    let found = read::services_page(conn, &page)?;
    Ok(Outcome::all(&listing::checked(conn, &page, found)?))
}

/// Increments the count of reports and saves, which updates the time of the last heartbeat.
fn report_state_up(
    conn: &mut AnyConnection,
    context: &RequestContext,
    object: &mut VersionedObject,
) -> Result<(), Failure> {
    let count = fields::number(object, "report_count")?.unwrap_or(0);
    object.set("report_count", &json!(count.saturating_add(1)))?;
    instance::save::<MagnumService>(conn, context, object)
}

impl Stored for MagnumService {
    const UUID_IS_FIXED: bool = false;

    /// Returns the existing row where the service has one already.
    fn create(conn: &mut AnyConnection, new: &Self) -> Result<Self, Failure> {
        let (Some(host), Some(binary)) = (&new.host, &new.binary) else {
            let text = "A MagnumService needs its host and its binary";
            return Err(Fault::new(Exception::ValueError, text).into());
        };
        if !new.insert(conn)? {
            tracing::warn!(host, binary, "a service that is to be created is there already");
        }
        read::find_service(conn, host, binary)?.ok_or_else(|| not_found(host))
    }

    fn find(conn: &mut AnyConnection, _scope: Scope<'_>, object: &VersionedObject) -> Result<Self, Failure> {
        let id = fields::number(object, "id")?;
        let found = match id {
            Some(id) => read::find_service_by_id(conn, id)?,
            None => None,
        };
        found.ok_or_else(|| not_found(&object.get("id").map(python_str).unwrap_or_default()))
    }

    fn write(
        conn: &mut AnyConnection,
        before: &Self,
        mut after: Self,
        changed: &[&str],
    ) -> Result<(), Failure> {
        if after.report_count > before.report_count && !changed.contains(&"last_seen_up") {
            after.last_seen_up = Some(clock::row_now());
        }
        if after.update(before, conn)? {
            Ok(())
        } else {
            Err(not_found(&before.id.unwrap_or_default().to_string()))
        }
    }

    fn delete(conn: &mut AnyConnection, found: &Self) -> Result<(), Failure> {
        // Gone meanwhile is gone.
        Table::delete(found, conn).map(drop).map_err(Failure::from)
    }
}
