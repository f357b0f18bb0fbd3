//! Methods of objects for a driver's call: the rows of its cluster, written only while the call has the right to.
//!
//! Guarantees: a write is one transaction, which begins with [`WriteRight::hold`]; a call writes rows of its own cluster
//! alone, in fields that a report may have within the limits of reports; during an outage of the database a method waits
//! for as long as the right may last.
//!
//! Not guaranteed: that a write happens once, when the connection is lost during its commit. Those that a driver makes say
//! what a field is, so a second one changes nothing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::ClusterUuid;
use magnum_common::model::{Cluster, NodeGroup};
use magnum_common::retry::{Retry, RetryPolicy};
use magnum_db::{AnyConnection, DbError};
use magnum_driver_api::{
    ClusterObjects, DriverReport, NodeGroupChanges, ObjectCall, ObjectError, ObjectTarget, limits,
};
use magnum_objects::{Received, VersionedObject};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::call::{Call, Method};
use super::failure::Failure;
use super::{ObjectsRpc, clusters, key_pairs, node_groups};
use crate::store;

/// Fields of a cluster that are a driver's report, not a write.
const REPORTED: &[&str] = &["status", "status_reason"];

/// What gives a call the right to write.
pub trait WriteRight: Send + Sync {
    /// Compares the right, and holds what it compares until the transaction ends.
    ///
    /// # Errors
    /// See [`Denied`].
    fn hold(&self, conn: &mut AnyConnection) -> Result<(), Denied>;
}

/// Why a write is not made.
#[derive(Debug)]
pub enum Denied {
    /// The right is gone, for this reason.
    Revoked(String),
    /// The database failed.
    Db(DbError),
}

impl From<DbError> for Denied {
    fn from(error: DbError) -> Self {
        Self::Db(error)
    }
}

/// The objects of one cluster for one call.
pub struct OwnObjects {
    rpc: ObjectsRpc,
    cluster: ClusterUuid,
    right: Arc<dyn WriteRight>,
    /// The right cannot last longer than this.
    over: CancellationToken,
}

/// The error of an attempt.
#[derive(Debug)]
enum Attempt {
    Failed(Failure),
    Revoked(String),
}

impl From<DbError> for Attempt {
    fn from(error: DbError) -> Self {
        Self::Failed(Failure::Db(error))
    }
}

impl From<Denied> for Attempt {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Revoked(why) => Self::Revoked(why),
            Denied::Db(error) => error.into(),
        }
    }
}

impl Attempt {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Failed(failure) if failure.is_transient())
    }
}

impl OwnObjects {
    /// Those of `cluster`, for a call with this right, which is over with `over` at the latest.
    pub fn new(
        rpc: ObjectsRpc,
        cluster: ClusterUuid,
        right: Arc<dyn WriteRight>,
        over: CancellationToken,
    ) -> Self {
        Self {
            rpc,
            cluster,
            right,
            over,
        }
    }

    async fn attempt(&self, call: &Arc<Call>, context: &RequestContext) -> Result<Value, Attempt> {
        let (call, context) = (Arc::clone(call), context.clone());
        if !call.changes() {
            let read = self.rpc.db.run(move |conn| Ok(call.run_for_host(conn, &context)));
            return read.await?.map_err(Attempt::Failed);
        }
        let right = Arc::clone(&self.right);
        self.rpc
            .db
            .transaction(move |conn| {
                right.hold(conn)?;
                call.run_for_host(conn, &context).map_err(Attempt::Failed)
            })
            .await
    }

    /// Attempts something while the database is away, for as long as the right may last.
    async fn while_it_may<T, F: Future<Output = Result<T, Attempt>>>(
        &self,
        attempt: impl FnMut() -> F,
    ) -> Result<T, ObjectError> {
        let policy = RetryPolicy {
            initial: Duration::from_millis(50),
            max_interval: Duration::from_secs(2),
            multiplier: 2.0,
            jitter: 0.25,
        };
        let is_retryable = |error: &Attempt, _: Retry| error.is_transient();
        let over = self.over.cancelled();
        match policy.retry_until(over, attempt, is_retryable).await {
            Ok(result) => Ok(result),
            Err(Attempt::Revoked(why)) => Err(ObjectError::Revoked(why)),
            Err(failed) if failed.is_transient() => Err(ObjectError::Revoked(
                "the database was away for as long as the lease could last".to_owned(),
            )),
            Err(Attempt::Failed(failure)) => Err(ObjectError::Raised(failure.into())),
        }
    }

    /// Whether a driver may make this write at all.
    fn check(&self, call: &Call) -> Result<(), Fault> {
        let Call::Instance { method, object, .. } = call else {
            return if call.changes() {
                Err(refused(call))
            } else {
                Ok(())
            };
        };
        if !method.changes {
            return Ok(());
        }
        let is_own = |field: &str| object.get(field).and_then(Value::as_str) == Some(self.cluster.as_str());
        match (object.name(), method.signature.name) {
            (name, "save") if name == clusters::CLASS.schema.name && is_own("uuid") => {
                if let Some(field) = REPORTED.iter().find(|field| object.is_changed(field)) {
                    return Err(Fault::invalid_parameter(format!(
                        "{field} of a cluster is what a driver reports, not what it saves."
                    )));
                }
                within_limits(&cluster_report(object)?)
            }
            (name, "save") if name == node_groups::CLASS.schema.name && is_own("cluster_id") => {
                within_limits(&group_report(object)?)
            }
            (name, "destroy") if name == node_groups::CLASS.schema.name && is_own("cluster_id") => Ok(()),
            // A driver removes two of the four certificates of a cluster that is gone; the conductor removes all.
            (name, "destroy") if name == key_pairs::CLASS.schema.name => Ok(()),
            _ => Err(refused(call)),
        }
    }
}

#[async_trait]
impl ClusterObjects for OwnObjects {
    async fn call(&self, call: ObjectCall) -> Result<Value, ObjectError> {
        let (method, args) = message(&call);
        let decoded = Call::decode(method, args).map_err(ObjectError::Raised)?;
        self.check(&decoded).map_err(ObjectError::Raised)?;
        if is_removed_by_the_conductor(&decoded) {
            return Ok(json!([{"obj_what_changed": []}, null]));
        }
        let decoded = Arc::new(decoded);
        let result = self
            .while_it_may(|| self.attempt(&decoded, &call.context))
            .await?;
        self.rpc.opened(&decoded, result).map_err(ObjectError::Raised)
    }

    async fn save(&self, changes: DriverReport) -> Result<(), ObjectError> {
        within_limits(&changes).map_err(ObjectError::Raised)?;
        let changes = Arc::new(changes);
        self.while_it_may(|| {
            let (right, cluster, changes) = (
                Arc::clone(&self.right),
                self.cluster.clone(),
                Arc::clone(&changes),
            );
            self.rpc.db.transaction(move |conn| {
                right.hold(conn)?;
                store::clusters::apply(conn, &cluster, &changes.cluster)?;
                for group in &changes.node_groups {
                    store::node_groups::apply(conn, &cluster, group, true)?;
                }
                Ok::<_, Attempt>(())
            })
        })
        .await
    }
}

fn is_removed_by_the_conductor(call: &Call) -> bool {
    matches!(call, Call::Instance { method, object, .. }
        if method.signature.name == "destroy" && object.name() == key_pairs::CLASS.schema.name)
}

/// The call as a message of the objects RPC.
fn message(call: &ObjectCall) -> (Method, Map<String, Value>) {
    let mut args = Map::new();
    args.insert("objmethod".to_owned(), json!(call.method));
    args.insert("args".to_owned(), json!(call.args));
    args.insert("kwargs".to_owned(), json!(call.kwargs));
    match &call.target {
        ObjectTarget::Class { name, versions } => {
            args.insert("objname".to_owned(), json!(name));
            args.insert("object_versions".to_owned(), json!(versions));
            (Method::ClassActionVersions, args)
        }
        ObjectTarget::Instance(object) => {
            args.insert("objinst".to_owned(), object.clone());
            (Method::Action, args)
        }
    }
}

fn refused(call: &Call) -> Fault {
    Fault::new(
        Exception::NotSupported,
        format!(
            "A driver cannot call {} for anything but its own cluster.",
            call.name()
        ),
    )
}

fn within_limits(report: &DriverReport) -> Result<(), Fault> {
    limits::check(report).map_err(|error| Fault::invalid_parameter(format!("The driver saved {error}.")))
}

/// The fields that a save changes, as a report has them: they have the same limits.
fn cluster_report(object: &VersionedObject) -> Result<DriverReport, Fault> {
    let mut saved = Cluster::new(ClusterUuid::new(""), "".into());
    Received::<Cluster>::from_object(object.clone())?.apply(&mut saved)?;
    let mut report = DriverReport::default();
    report.cluster.stack_id = saved.stack_id;
    report.cluster.api_address = saved.api_address;
    report.cluster.coe_version = saved.coe_version;
    report.cluster.container_version = saved.container_version;
    report.cluster.discovery_url = saved.discovery_url;
    Ok(report)
}

fn group_report(object: &VersionedObject) -> Result<DriverReport, Fault> {
    let mut saved = NodeGroup::new("".into(), "", "".into(), "", "");
    Received::<NodeGroup>::from_object(object.clone())?.apply(&mut saved)?;
    let mut changes = NodeGroupChanges::of(saved.uuid);
    changes.stack_id = saved.stack_id;
    changes.node_addresses = Some(saved.node_addresses);
    changes.version = saved.version;
    changes.image_id = saved.image_id;
    Ok(DriverReport {
        node_groups: vec![changes],
        ..DriverReport::default()
    })
}
