//! `Cluster`.

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::model::Cluster;
use magnum_db::read::cluster_templates::{self as templates, Visibility};
use magnum_db::read::{SortKey, Tenancy, clusters as read};
use magnum_db::{AnyConnection, DbError};
use magnum_objects::{self as objects, VersionedObject, tables};
use serde_json::json;

use super::arguments::Bound;
use super::class::{Class, Outcome, class_methods, instance_methods};
use super::failure::{Failure, fault};
use super::instance::{self, Stored};
use super::listing::{self, Filters};
use super::lookup::{self, Lookup, LookupByName, Scope};
use crate::store::objects::Table;

pub(super) const CLASS: Class = Class {
    schema: &tables::CLUSTER,
    class_methods: class_methods! { "Cluster";
        reads "get" (cluster_id;) lookup::get::<Cluster>,
        reads "get_by_id" (cluster_id;) lookup::get_by_id::<Cluster>,
        reads "get_by_uuid" (uuid;) lookup::get_by_uuid::<Cluster>,
        reads "get_by_name" (name;) lookup::get_by_name::<Cluster>,
        reads "get_count_all" (; filters) get_count_all,
        reads "get_stats" (; project_id) get_stats,
        reads "list" (; limit marker sort_key sort_dir filters) list,
    },
    instance_methods: instance_methods! { "Cluster";
        changes "create" instance::create::<Cluster>,
        changes "save" instance::save::<Cluster>,
        reads "refresh" instance::refresh::<Cluster>,
        changes "destroy" instance::destroy::<Cluster>,
    },
};

fn filter(args: &mut Bound) -> Result<read::Filter, Fault> {
    let filters = Filters::take(args)?;
    filters.refuse("node_addresses")?;
    let count = |name| filters.number(name).map(Option::flatten);
    Ok(read::Filter {
        cluster_template_id: filters.text("cluster_template_id")?,
        name: filters.text("name")?,
        stack_id: filters.text("stack_id")?,
        api_address: filters.text("api_address")?,
        project_id: filters.text("project_id")?,
        user_id: filters.text("user_id")?,
        statuses: filters.statuses()?,
        node_count: count("node_count")?,
        master_count: count("master_count")?,
    })
}

fn get_count_all(
    conn: &mut AnyConnection,
    context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let filter = filter(&mut args)?;
    let count = read::count_listed(conn, &Tenancy::of(context), &filter)?;
    Ok(Outcome::Plain(json!(count)))
}

/// Clusters and nodes of a project. Magnum passes the project as the context by mistake, and counts those of all
/// projects.
fn get_stats(
    conn: &mut AnyConnection,
    _context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let project = args.take("project_id");
    let project = project.as_str().filter(|project| !project.is_empty());
    let (clusters, nodes) = (read::count(conn, project)?, read::count_nodes(conn, project)?);
    Ok(Outcome::Plain(json!([clusters, nodes])))
}

fn list(conn: &mut AnyConnection, context: &RequestContext, mut args: Bound) -> Result<Outcome, Failure> {
    let page = listing::page(&mut args, CLASS.schema, SortKey::of_cluster)?;
    let found = read::list(conn, &Tenancy::of(context), &filter(&mut args)?, &page)?;
    Ok(Outcome::all(&listing::checked(conn, &page, found)?))
}

impl Lookup for Cluster {
    fn by_id(conn: &mut AnyConnection, scope: Scope<'_>, id: i32) -> Result<Option<Self>, DbError> {
        read::find_by_id(conn, &scope.tenancy(), id)
    }

    fn by_uuid(conn: &mut AnyConnection, scope: Scope<'_>, uuid: &str) -> Result<Option<Self>, DbError> {
        read::find_by_uuid(conn, &scope.tenancy(), &uuid.into())
    }

    fn not_found(text: &str) -> Failure {
        let mut fault = Fault::cluster_not_found(text);
        fault.kwargs.insert("cluster".into(), json!(text));
        fault.into()
    }
}

impl LookupByName for Cluster {
    const NOUNS: (&'static str, &'static str) = ("cluster", "clusters");

    fn by_name(conn: &mut AnyConnection, scope: Scope<'_>, name: &str) -> Result<Vec<Self>, DbError> {
        read::find_by_name(conn, &scope.tenancy(), name)
    }
}

impl Stored for Cluster {
    const UUID_IS_FIXED: bool = true;

    fn create(conn: &mut AnyConnection, new: &Self) -> Result<Self, Failure> {
        if !new.insert(conn)? {
            let text = format!("A cluster with UUID {} already exists.", new.uuid);
            return Err(fault(
                Exception::ClusterAlreadyExists,
                text,
                &[("uuid", new.uuid.as_str())],
            )
            .into());
        }
        lookup::with_uuid(conn, Scope::All, new.uuid.as_str())
    }

    fn find(conn: &mut AnyConnection, scope: Scope<'_>, object: &VersionedObject) -> Result<Self, Failure> {
        lookup::of_object(conn, scope, object)
    }

    fn write(conn: &mut AnyConnection, before: &Self, after: Self, _changed: &[&str]) -> Result<(), Failure> {
        if after.update(before, conn)? {
            Ok(())
        } else {
            Err(Self::not_found(before.uuid.as_str()))
        }
    }

    fn delete(conn: &mut AnyConnection, found: &Self) -> Result<(), Failure> {
        // Gone meanwhile is gone.
        Table::delete(found, conn).map(drop).map_err(Failure::from)
    }

    /// Reads a nested template again: the cluster may have another one by now.
    fn refresh_nested(
        &self,
        conn: &mut AnyConnection,
        context: &RequestContext,
        object: &mut VersionedObject,
    ) -> Result<(), Failure> {
        if object.get("cluster_template").is_none() {
            return Ok(());
        }
        let uuid = &self.cluster_template_id;
        let template = templates::find_by_uuid(conn, &Visibility::of(context), uuid)?
            .ok_or_else(|| Fault::cluster_template_not_found(uuid.as_str()))?;
        object.set("cluster_template", &objects::encode(&template))?;
        Ok(())
    }
}
