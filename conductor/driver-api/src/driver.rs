//! The interface every driver has, whatever engine runs it.

use async_trait::async_trait;
use magnum_drivers::DriverInfo;

use crate::{
    ApiCall, ApiReply, ClusterRef, DriverCall, DriverError, DriverReport, HealthObservation, Observation,
    Reason, Shrinking, UtilisationObservation,
};

/// A COE driver: turns a wanted cluster into machines, and tells how it stands.
///
/// * [`Driver::carry_out`] may be called again with the same operation id: after a crash, after a lost answer. What
///   exists already is adopted.
/// * Dropping a future, or cancelling `call.cancel`, stops the work before the caller goes on.
/// * A call that starts long work in a cloud returns at once with a status `*_IN_PROGRESS`; the conductor
///   then asks [`Driver::observe`] until it ends. One that works until the end returns `*_COMPLETE`.
/// * A driver never sees the database, AMQP or leases.
#[async_trait]
pub trait Driver: Send + Sync {
    /// Name, version, capabilities: what its manifest says.
    fn info(&self) -> &DriverInfo;

    /// Does `call.task`: brings the cluster to what `call.cluster` and `call.node_groups` say.
    async fn carry_out(&self, call: &DriverCall<'_>) -> Result<DriverReport, DriverError>;

    /// Looks at clusters that are in progress. A cluster without an observation is looked at again later; an
    /// error is about the whole batch.
    async fn observe(&self, clusters: &[ClusterRef]) -> Result<Vec<Observation>, DriverError>;

    /// Looks at the health of clusters, also of those in progress; other calls for the same clusters may run at the same
    /// time. A permanent error makes a cluster's health unknown. A cluster without an observation, or with another
    /// error, keeps its health for ten minutes; so do all of a batch that ends with an error.
    ///
    /// # Errors
    /// [`DriverError::NotSupported`] unless the driver can tell: its clusters keep the health that somebody else wrote.
    async fn health(&self, _clusters: &[ClusterRef]) -> Result<Vec<HealthObservation>, DriverError> {
        Err(DriverError::NotSupported(Reason::open(format!(
            "driver {} cannot tell the health of its clusters",
            self.info()
        ))))
    }

    /// Replies to a call of the driver's own API. Asked only for routes that the manifest declares. A route that only
    /// reads may be asked while other calls for the same cluster run; any other has the cluster to itself. Never
    /// repeated: a reply that is lost is lost.
    ///
    /// # Errors
    /// [`DriverError::NotSupported`] unless the driver has one.
    async fn api(&self, _call: &ApiCall<'_>) -> Result<ApiReply, DriverError> {
        Err(DriverError::NotSupported(Reason::open(format!(
            "driver {} has no API of its own",
            self.info()
        ))))
    }

    /// Chooses the nodes that go when a group shrinks and the request names none. `call.task` is the resize; what is
    /// returned becomes its `remove`, in every attempt. The names are those that the driver takes there, at most as
    /// many as [`Shrinking::surplus`]; fewer, or none, leave the rest to the resize. Must change nothing, and may be asked
    /// again for the same operation, until an answer is recorded.
    ///
    /// # Errors
    /// [`DriverError::NotSupported`] unless the driver can tell: it is not asked without the capability `scale`, and
    /// with it that means the same as no names. Any other error is one of the operation.
    async fn nodes_to_remove(
        &self,
        _call: &DriverCall<'_>,
        _shrinking: Shrinking<'_>,
    ) -> Result<Vec<String>, DriverError> {
        Err(DriverError::NotSupported(Reason::open(format!(
            "driver {} cannot choose the nodes that go",
            self.info()
        ))))
    }

    /// Tells how much of their processors and memory clusters use that are not in progress; other calls for the same
    /// clusters may run at the same time. A cluster without an observation, or with an error, has no figures until the
    /// next look; so have all of a batch that ends with an error. Neither the cluster nor its health is touched by it.
    ///
    /// # Errors
    /// [`DriverError::NotSupported`] unless the driver can tell: it is not asked without the capability `monitor`.
    async fn utilisation(
        &self,
        _clusters: &[ClusterRef],
    ) -> Result<Vec<UtilisationObservation>, DriverError> {
        Err(DriverError::NotSupported(Reason::open(format!(
            "driver {} cannot tell what its clusters use",
            self.info()
        ))))
    }

    /// What an operator has to see to before the driver can do its work at this conductor, a sentence each: programs, permissions,
    /// what another system has to have. Asked when the conductor starts, and every few minutes; must change nothing.
    async fn lacks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Most clusters in one look, of [`Driver::observe`], [`Driver::health`] and [`Driver::utilisation`], for a driver
    /// that wants to see them together. `None`: they are spread over as many looks as may run at the same time.
    fn observe_batch(&self) -> Option<usize> {
        None
    }
}
