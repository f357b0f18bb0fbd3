//! The interface every driver has, whatever engine runs it.

use async_trait::async_trait;
use magnum_common::drivers::DriverInfo;

use super::call::{ClusterRef, DriverCall, DriverReport, Observation};
use super::error::DriverError;

/// A COE driver: turns a wanted cluster into machines, and tells how it stands.
///
/// * Every method may be called again with the same operation id: after a crash, after a lost answer. What
///   exists already is adopted.
/// * Dropping a future, or cancelling `call.cancel`, stops the work before the method's caller goes on.
/// * A method that starts long work in a cloud returns at once with a status `*_IN_PROGRESS`; the conductor
///   then asks [`Driver::observe`] until it ends. One that works until the end returns `*_COMPLETE`.
/// * A driver never sees the database, AMQP or leases.
#[async_trait]
pub trait Driver: Send + Sync {
    /// Name, version, capabilities: what its manifest says.
    fn info(&self) -> &DriverInfo;

    /// Builds the cluster.
    async fn create_cluster(&self, call: &DriverCall<'_>) -> Result<DriverReport, DriverError>;

    /// Brings the cluster to what `call.cluster` and `call.node_groups` say now.
    async fn update_cluster(&self, call: &DriverCall<'_>) -> Result<DriverReport, DriverError>;

    /// Takes the cluster away. A cluster that is gone already is success.
    async fn delete_cluster(&self, call: &DriverCall<'_>) -> Result<DriverReport, DriverError>;

    /// Looks at clusters that are in progress. A cluster without an observation is looked at again later; an
    /// error is about the whole batch.
    async fn observe(&self, clusters: &[ClusterRef]) -> Result<Vec<Observation>, DriverError>;
}
