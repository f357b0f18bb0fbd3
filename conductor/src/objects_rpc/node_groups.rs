//! `NodeGroup`. A group is found within its cluster; an administrator sees every project's.

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::{ClusterUuid, NodeGroupUuid};
use magnum_common::model::NodeGroup;
use magnum_db::AnyConnection;
use magnum_db::read::{SortKey, Tenancy, node_groups as read};
use magnum_objects::{VersionedObject, object_of, tables};
use serde_json::{Value, json};

use super::arguments::Bound;
use super::class::{Class, Outcome, class_methods, instance_methods};
use super::failure::{Failure, fault};
use super::fields;
use super::identity::{self, Identity, python_str};
use super::instance::{self, Stored};
use super::listing::{self, Filters};
use super::lookup::Scope;
use crate::store::objects::Table;

pub(super) const CLASS: Class = Class {
    schema: &tables::NODE_GROUP,
    class_methods: class_methods! { "NodeGroup";
        reads "get" (cluster_id nodegroup_id;) get,
        reads "get_by_id" (cluster id_;) get_by_id,
        reads "get_by_uuid" (cluster uuid;) get_by_uuid,
        reads "get_by_name" (cluster name;) get_by_name,
        reads "get_count_all" (cluster_id;) get_count_all,
        reads "list" (cluster_id; limit marker sort_key sort_dir filters) list,
        changes "update_nodegroup" (cluster_id nodegroup_id values;) update_nodegroup,
    },
    instance_methods: instance_methods! { "NodeGroup";
        changes "create" instance::create::<NodeGroup>,
        changes "save" instance::save::<NodeGroup>,
        reads "refresh" instance::refresh::<NodeGroup>,
        changes "destroy" instance::destroy::<NodeGroup>,
    },
};

fn not_found(group: &str) -> Failure {
    let mut fault = Fault::node_group_not_found(group);
    fault.kwargs.insert("nodegroup".into(), json!(group));
    fault.into()
}

fn find(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    cluster: &Value,
    identity: &Identity,
) -> Result<NodeGroup, Failure> {
    let cluster = ClusterUuid::new(python_str(cluster));
    let (found, text) = match identity {
        Identity::Number(Some(id), text) => (read::find_by_id(conn, tenancy, &cluster, *id)?, text),
        Identity::Number(None, text) => (None, text),
        Identity::Uuid(uuid) => {
            let found = read::find_by_uuid(conn, tenancy, &cluster, &NodeGroupUuid::from(uuid.as_str()))?;
            (found, uuid)
        }
        Identity::Name(name) => (read::find_by_name(conn, tenancy, &cluster, name)?, name),
    };
    found.ok_or_else(|| not_found(text))
}

fn get(conn: &mut AnyConnection, context: &RequestContext, mut args: Bound) -> Result<Outcome, Failure> {
    let (cluster, group) = (args.take("cluster_id"), Identity::of(&args.take("nodegroup_id")));
    let found = find(conn, &Tenancy::of_node_groups(context), &cluster, &group)?;
    Ok(Outcome::of(&found))
}

fn get_by_id(
    conn: &mut AnyConnection,
    context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let (cluster, id) = (args.take("cluster"), args.take("id_"));
    let identity = Identity::Number(identity::number(&id), python_str(&id));
    let found = find(conn, &Tenancy::of_node_groups(context), &cluster, &identity)?;
    Ok(Outcome::of(&found))
}

fn get_by_uuid(
    conn: &mut AnyConnection,
    context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let (cluster, uuid) = (
        args.take("cluster"),
        Identity::Uuid(python_str(&args.take("uuid"))),
    );
    let found = find(conn, &Tenancy::of_node_groups(context), &cluster, &uuid)?;
    Ok(Outcome::of(&found))
}

fn get_by_name(
    conn: &mut AnyConnection,
    context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let (cluster, name) = (
        args.take("cluster"),
        Identity::Name(python_str(&args.take("name"))),
    );
    let found = find(conn, &Tenancy::of_node_groups(context), &cluster, &name)?;
    Ok(Outcome::of(&found))
}

fn get_count_all(
    conn: &mut AnyConnection,
    context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let cluster = ClusterUuid::new(python_str(&args.take("cluster_id")));
    let count = read::count(conn, &Tenancy::of_node_groups(context), &cluster)?;
    Ok(Outcome::Plain(json!(count)))
}

fn filter(args: &mut Bound) -> Result<read::Filter, Fault> {
    let filters = Filters::take(args)?;
    let count = filters.number("node_count")?;
    Ok(read::Filter {
        name: filters.text("name")?,
        role: filters.text("role")?,
        // No row has more than fits.
        node_count: count.map(|count| count.map(|count| i32::try_from(count).unwrap_or(-1))),
        node_addresses: filters.json("node_addresses"),
        is_default: filters.flag("is_default")?,
        statuses: filters.statuses()?,
    })
}

fn list(conn: &mut AnyConnection, context: &RequestContext, mut args: Bound) -> Result<Outcome, Failure> {
    let cluster = ClusterUuid::new(python_str(&args.take("cluster_id")));
    let page = listing::page(&mut args, CLASS.schema, SortKey::of_node_group)?;
    let tenancy = Tenancy::of_node_groups(context);
    let found = read::list(conn, &tenancy, &cluster, &filter(&mut args)?, &page)?;
    Ok(Outcome::all(&listing::checked(conn, &page, found)?))
}

/// Writes some fields of a group in the caller's tenant scope. Unknown fields are ignored.
fn update_nodegroup(
    conn: &mut AnyConnection,
    context: &RequestContext,
    mut args: Bound,
) -> Result<Outcome, Failure> {
    let (cluster, group) = (args.take("cluster_id"), Identity::of(&args.take("nodegroup_id")));
    let Value::Object(values) = args.take("values") else {
        return Err(Fault::new(Exception::TypeError, "values must be a map of fields").into());
    };
    let found = find(conn, &Tenancy::of_node_groups(context), &cluster, &group)?;
    let mut object = object_of(&found, |_| true, &[]);
    for (name, value) in &values {
        if CLASS.schema.field(name).is_some() {
            object.set(name, value)?;
        }
    }
    instance::save::<NodeGroup>(conn, context, &mut object)?;
    let saved = NodeGroup::find(conn, Scope::All, &object)?;
    Ok(Outcome::of(&saved))
}

impl Stored for NodeGroup {
    const UUID_IS_FIXED: bool = false;

    fn create(conn: &mut AnyConnection, new: &Self) -> Result<Self, Failure> {
        if !new.insert(conn)? {
            let (cluster, name) = (new.cluster_id.as_str(), new.name.as_str());
            let text = format!("A node group with name {name} already exists in the cluster {cluster}.");
            let kwargs = [("cluster_id", cluster), ("name", name)];
            return Err(fault(Exception::NodeGroupAlreadyExists, text, &kwargs).into());
        }
        read::find_by_uuid(conn, &Tenancy::All, &new.cluster_id, &new.uuid)?
            .ok_or_else(|| not_found(new.uuid.as_str()))
    }

    fn find(conn: &mut AnyConnection, scope: Scope<'_>, object: &VersionedObject) -> Result<Self, Failure> {
        let cluster = fields::text(object, "cluster_id")?;
        let (tenancy, uuid) = match scope {
            Scope::All => (Tenancy::All, fields::uuid(object)?),
            Scope::Caller(context) => (Tenancy::of_node_groups(context), fields::text(object, "uuid")?),
        };
        read::find_by_uuid(conn, &tenancy, &cluster.into(), &uuid.into())?.ok_or_else(|| not_found(uuid))
    }

    fn write(conn: &mut AnyConnection, before: &Self, after: Self, _changed: &[&str]) -> Result<(), Failure> {
        if after.update(before, conn)? {
            Ok(())
        } else {
            Err(not_found(before.uuid.as_str()))
        }
    }

    fn delete(conn: &mut AnyConnection, found: &Self) -> Result<(), Failure> {
        // Gone meanwhile is gone.
        Table::delete(found, conn).map(drop).map_err(Failure::from)
    }
}
