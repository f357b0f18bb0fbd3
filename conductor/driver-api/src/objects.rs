//! Magnum's versioned objects, for drivers that read and write rows themselves: Python packages do.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use magnum_common::context::RequestContext;
use magnum_common::error::Fault;
use serde_json::{Map, Value};

use crate::{DriverError, DriverReport, Reason};

/// A method of an object, or of its class, in the form of the objects RPC (rpc-wire.md).
#[derive(Debug, Clone)]
pub struct ObjectCall {
    /// The method: `list`, `save`.
    pub method: String,
    /// What has the method.
    pub target: ObjectTarget,
    /// Positional arguments.
    pub args: Vec<Value>,
    /// Named arguments.
    pub kwargs: Map<String, Value>,
    /// Who asks: the tenant scope of what is read.
    pub context: RequestContext,
}

/// What has the method that is called.
#[derive(Debug, Clone)]
pub enum ObjectTarget {
    /// A class.
    Class {
        /// Its name: `NodeGroup`.
        name: String,
        /// The versions in which the caller reads objects, by class. Lists come in these, too.
        versions: Map<String, Value>,
    },
    /// An object, as it is sent.
    Instance(Value),
}

/// Why a method brought no result.
#[derive(Debug, Clone, PartialEq)]
pub enum ObjectError {
    /// The exception that the caller is to see.
    Raised(Fault),
    /// The call has no right to write any more (another conductor has the operation by now, or the cluster is being
    /// deleted), and is to end at once. The text says why.
    Revoked(String),
}

/// A call that may not write any more is over; what a driver wanted to write and must not is its mistake.
impl From<ObjectError> for DriverError {
    fn from(error: ObjectError) -> Self {
        match error {
            ObjectError::Revoked(_) => Self::Cancelled,
            ObjectError::Raised(fault) => Self::Permanent(Reason::open(fault.to_string())),
        }
    }
}

/// The rows of one cluster, as the operation or the look that a driver's call belongs to may read and write them.
///
/// * Every write is one transaction that compares the right to it: the lease of the operation or of the look.
/// * What was written is there for the next read, for other processes, and after a crash.
/// * A cluster's `status` and `status_reason` are not written: they are a driver's report, and end its operation.
/// * Private keys are opened.
#[async_trait]
pub trait ClusterObjects: Send + Sync {
    /// Carries out a method: the result of one of a class; the pair of updates and result of one of an object.
    ///
    /// # Errors
    /// See [`ObjectError`]. During an outage of the database it waits for as long as the right to write lasts.
    async fn call(&self, call: ObjectCall) -> Result<Value, ObjectError>;

    /// Writes what a driver has to find again if its call is repeated, such as the name of something that it is about to make. The
    /// cluster's status and its reason are not written: see above.
    ///
    /// # Errors
    /// As [`Self::call`].
    async fn save(&self, changes: DriverReport) -> Result<(), ObjectError>;
}

/// Where a driver has no objects: every method is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObjects;

#[async_trait]
impl ClusterObjects for NoObjects {
    async fn call(&self, call: ObjectCall) -> Result<Value, ObjectError> {
        Err(ObjectError::Revoked(format!(
            "there are no rows to carry out {} on",
            call.method
        )))
    }

    async fn save(&self, _changes: DriverReport) -> Result<(), ObjectError> {
        Err(ObjectError::Revoked("there are no rows to write".to_owned()))
    }
}

/// [`ClusterObjects`] that calls and looks hand on.
#[derive(Clone)]
pub struct SharedObjects(Arc<dyn ClusterObjects>);

impl SharedObjects {
    /// These.
    pub fn new(objects: impl ClusterObjects + 'static) -> Self {
        Self(Arc::new(objects))
    }

    /// Carries out a method: see [`ClusterObjects::call`].
    ///
    /// # Errors
    /// As there.
    pub async fn call(&self, call: ObjectCall) -> Result<Value, ObjectError> {
        self.0.call(call).await
    }

    /// Writes fields now: see [`ClusterObjects::save`].
    ///
    /// # Errors
    /// As there.
    pub async fn save(&self, changes: DriverReport) -> Result<(), ObjectError> {
        self.0.save(changes).await
    }
}

impl Default for SharedObjects {
    fn default() -> Self {
        Self::new(NoObjects)
    }
}

impl fmt::Debug for SharedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedObjects")
    }
}
