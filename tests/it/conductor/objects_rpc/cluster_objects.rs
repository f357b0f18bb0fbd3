//! What a driver's call may do with the rows of its cluster, on three databases.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, ensure};
use magnum_common::context::RequestContext;
use magnum_common::error::Exception;
use magnum_common::ids::{ClusterUuid, NodeGroupUuid, TemplateUuid};
use magnum_common::model::{Cluster, ClusterStatus, NodeGroup};
use magnum_conductor::objects_rpc::ObjectsRpc;
use magnum_conductor::objects_rpc::cluster_objects::{Denied, OwnObjects, WriteRight};
use magnum_conductor::store::clusters;
use magnum_conductor::store::objects::Table as _;
use magnum_db::{AnyConnection, Database, DbError};
use magnum_driver_api::{ClusterObjects as _, ObjectCall, ObjectError, ObjectTarget};
use magnum_tests::{TestDatabase, on_every_database, probe};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// A right that a test takes away.
#[derive(Clone, Default)]
struct Right(Arc<AtomicBool>);

impl WriteRight for Right {
    fn hold(&self, _conn: &mut AnyConnection) -> Result<(), Denied> {
        if self.0.load(Ordering::SeqCst) {
            return Err(Denied::Revoked("another one has it".to_owned()));
        }
        Ok(())
    }
}

/// Two clusters with a group each, and the objects of the first.
struct Rows {
    db: Database,
    cluster: Cluster,
    group: NodeGroup,
    other: (Cluster, NodeGroup),
    right: Right,
    objects: OwnObjects,
}

fn pair() -> (Cluster, NodeGroup) {
    let mut cluster = Cluster::new(ClusterUuid::random(), TemplateUuid::random());
    cluster.name = Some("c".into());
    cluster.status = Some(ClusterStatus::UpdateInProgress);
    let group = NodeGroup::new(
        NodeGroupUuid::random(),
        "workers",
        cluster.uuid.clone(),
        "p",
        "worker",
    );
    (cluster, group)
}

impl Rows {
    async fn in_database(database: &TestDatabase) -> Result<Self> {
        let db = probe::migrated(database).await?;
        let (first, other) = (pair(), pair());
        let all = [first.clone(), other.clone()];
        let inserted = db.transaction(move |conn| {
            let mut is_new = true;
            for (cluster, group) in &all {
                is_new &= cluster.insert(conn)? && group.insert(conn)?;
            }
            Ok::<_, DbError>(is_new)
        });
        ensure!(inserted.await?);
        let right = Right::default();
        let objects = OwnObjects::new(
            ObjectsRpc::new(db.clone()),
            first.0.uuid.clone(),
            Arc::new(right.clone()),
            CancellationToken::new(),
        );
        Ok(Self {
            db,
            cluster: first.0,
            group: first.1,
            other,
            right,
            objects,
        })
    }

    async fn row(&self) -> Result<Cluster> {
        let uuid = self.cluster.uuid.clone();
        let found = self.db.run(move |conn| clusters::find(conn, &uuid)).await?;
        found.context("the row")
    }

    async fn call(&self, method: &str, target: ObjectTarget, args: Vec<Value>) -> Result<Value, ObjectError> {
        let call = ObjectCall {
            method: method.to_owned(),
            target,
            args,
            kwargs: Map::new(),
            context: RequestContext::admin(),
        };
        self.objects.call(call).await
    }

    async fn save(&self, class: &str, identity: Value, fields: Value) -> Result<Value, ObjectError> {
        self.call("save", instance(class, identity, fields), Vec::new())
            .await
    }

    async fn save_cluster(&self, fields: Value) -> Result<Value, ObjectError> {
        self.save("Cluster", json!({"uuid": self.cluster.uuid}), fields)
            .await
    }
}

fn instance(class: &str, identity: Value, fields: Value) -> ObjectTarget {
    let (Value::Object(mut data), Value::Object(fields)) = (identity, fields) else {
        unreachable!("both are maps");
    };
    let changes: Vec<String> = fields.keys().cloned().collect();
    data.extend(fields);
    let version = if class == "Cluster" { "1.24" } else { "1.2" };
    ObjectTarget::Instance(json!({
        "magnum_object.name": class, "magnum_object.namespace": "magnum", "magnum_object.version": version,
        "magnum_object.data": data, "magnum_object.changes": changes,
    }))
}

fn raised(outcome: Result<Value, ObjectError>) -> Result<(Exception, String)> {
    match outcome {
        Err(ObjectError::Raised(fault)) => Ok((fault.exception, fault.message)),
        other => anyhow::bail!("{other:?}"),
    }
}

on_every_database! {
    async fn a_drivers_save_is_in_the_database_at_once_for_as_long_as_it_has_the_right(database: TestDatabase) -> Result<()> {
        let rows = Rows::in_database(&database).await?;
        let saved = rows.save_cluster(json!({"stack_id": "s-1", "api_address": "https://a"})).await;
        ensure!(saved == Ok(json!([{"obj_what_changed": []}, null])), "{saved:?}");
        ensure!(rows.row().await?.stack_id.as_deref() == Some("s-1"));
        rows.right.0.store(true, Ordering::SeqCst);
        let refused = rows.save_cluster(json!({"stack_id": "s-2"})).await;
        ensure!(refused == Err(ObjectError::Revoked("another one has it".into())), "{refused:?}");
        ensure!(rows.row().await?.stack_id.as_deref() == Some("s-1"));
        // Who reads does no harm.
        let versions = Map::from_iter([("NodeGroup".to_owned(), json!("1.1"))]);
        let class = ObjectTarget::Class { name: "NodeGroup".into(), versions };
        let listed = rows.call("list", class, vec![json!(rows.cluster.uuid)]).await;
        let listed = listed.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        ensure!(listed[0]["magnum_object.version"] == "1.1", "in the version asked for: {listed}");
        ensure!(listed.as_array().map(Vec::len) == Some(1), "{listed}");
        Ok(())
    }

    async fn a_status_is_reported_and_not_saved(database: TestDatabase) -> Result<()> {
        let rows = Rows::in_database(&database).await?;
        for field in ["status", "status_reason"] {
            let mut fields = json!({"stack_id": "s"});
            fields[field] = json!("CREATE_COMPLETE");
            let (exception, text) = raised(rows.save_cluster(fields).await)?;
            ensure!(exception == Exception::InvalidParameterValue && text.starts_with(field), "{text}");
        }
        ensure!(rows.row().await?.stack_id.is_none());
        Ok(())
    }

    async fn other_rows_and_other_methods_are_refused(database: TestDatabase) -> Result<()> {
        let rows = Rows::in_database(&database).await?;
        let (other, others_group) = &rows.other;
        let foreign = json!({"uuid": others_group.uuid, "cluster_id": other.uuid});
        let own = json!({"uuid": rows.group.uuid, "cluster_id": rows.cluster.uuid});
        let cluster = json!({"uuid": rows.cluster.uuid});
        for (class, method, identity) in [
            ("Cluster", "save", json!({"uuid": other.uuid})),
            ("Cluster", "destroy", cluster.clone()),
            ("Cluster", "create", cluster),
            ("NodeGroup", "save", foreign.clone()),
            ("NodeGroup", "destroy", foreign),
            ("NodeGroup", "create", own),
            ("ClusterTemplate", "save", json!({"uuid": rows.cluster.cluster_template_id})),
        ] {
            let mut target = instance(class, identity, json!({"name": "n"}));
            if let ObjectTarget::Instance(object) = &mut target && class == "ClusterTemplate" {
                object["magnum_object.version"] = json!("1.21");
            }
            let (exception, text) = raised(rows.call(method, target, Vec::new()).await)?;
            ensure!(exception == Exception::NotSupported, "{class}.{method}: {text}");
        }
        Ok(())
    }

    async fn a_field_that_no_row_holds_is_refused_by_its_name(database: TestDatabase) -> Result<()> {
        let rows = Rows::in_database(&database).await?;
        let long = "s".repeat(256);
        let (_, text) = raised(rows.save_cluster(json!({"stack_id": long})).await)?;
        ensure!(text.contains("cluster.stack_id has 256 characters"), "{text}");
        let identity = json!({"uuid": rows.group.uuid, "cluster_id": rows.cluster.uuid});
        let (_, text) = raised(rows.save("NodeGroup", identity, json!({"image_id": long})).await)?;
        ensure!(text.contains("node_groups[0].image_id has 256 characters"), "{text}");
        Ok(())
    }

    async fn a_group_that_is_gone_from_the_cloud_is_removed(database: TestDatabase) -> Result<()> {
        let rows = Rows::in_database(&database).await?;
        let identity = json!({"uuid": rows.group.uuid, "cluster_id": rows.cluster.uuid});
        let target = instance("NodeGroup", identity, json!({"name": "workers"}));
        let removed = rows.call("destroy", target.clone(), Vec::new()).await;
        ensure!(removed.is_ok(), "{removed:?}");
        let (exception, _) = raised(rows.call("destroy", target, Vec::new()).await)?;
        ensure!(exception == Exception::NodeGroupNotFound);
        Ok(())
    }
}
