//! Looks at clusters: several share a worker, one after the other.
//!
//! No look ends an operation: what a driver raises of a cluster leaves that as it is. A worker that hangs or ends takes the
//! look with it that it was at; the others go on in a new one. All of them together begin within the time of one look, so
//! that clouds which do not answer hold up nobody for longer than twice that; those that are left are looked at again
//! later.

use std::collections::HashMap;

use magnum_common::ids::ClusterUuid;
use magnum_common::model::{HealthStatus, StringMap};
use magnum_driver_api::{
    ClusterRef, ClusterTrust, DriverError, DriverReport, HealthReport, NoProgress, Reason,
};
use magnum_engine_process::StderrLog;
use magnum_telemetry::field;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::environment::Worker;
use super::exchange::{Ending, Exchange};
use super::request::{self, Method};
use super::view::View;
use super::{PythonDriver, end, secrets};

/// A look at one cluster.
pub(super) struct Look {
    pub(super) cluster: ClusterUuid,
    /// What the driver has set, and what it returned.
    pub(super) result: Result<(View, Value), DriverError>,
}

impl PythonDriver {
    /// Calls `method` for each cluster.
    ///
    /// # Errors
    /// No worker can be had at all.
    pub(super) async fn look(
        &self,
        clusters: &[ClusterRef],
        method: &'static str,
    ) -> Result<Vec<Look>, DriverError> {
        let mut looks = Vec::with_capacity(clusters.len());
        let trusts = self.trusts_of(clusters).await?;
        let mut log = StderrLog::new(secrets(None, trusts.values()));
        let mut worker: Option<Worker<'_>> = None;
        let begun = Instant::now();
        for (number, one) in clusters.iter().enumerate() {
            if begun.elapsed() > self.spec.observe_timeout {
                tracing::warn!(
                    { field::DRIVER } = self.info.name,
                    left = clusters.len() - number,
                    "looks at clusters take so long that some are left for the next round"
                );
                break;
            }
            let mut at_work = match worker.take() {
                Some(worker) => worker,
                None => self.environment.worker().await?,
            };
            let is_last = number + 1 == clusters.len();
            let span = tracing::info_span!(
                "look",
                { field::CLUSTER } = %one.cluster.uuid,
                { field::OPERATION } = one.operation.as_ref().map(|id| id.as_str()),
            );
            let view = self.view(one, &trusts);
            let made = self.look_at(one, view, method, &mut at_work, is_last, &mut log);
            let (result, is_usable) = made.instrument(span).await;
            looks.push(Look {
                cluster: one.cluster.uuid.clone(),
                result,
            });
            if is_usable && !is_last {
                worker = Some(at_work);
            } else {
                end(at_work, &mut log).await;
            }
        }
        if let Some(worker) = worker {
            end(worker, &mut log).await;
        }
        Ok(looks)
    }

    async fn trusts_of(
        &self,
        clusters: &[ClusterRef],
    ) -> Result<HashMap<ClusterUuid, ClusterTrust>, DriverError> {
        if !self.spec.trusts {
            return Ok(HashMap::new());
        }
        let uuids: Vec<ClusterUuid> = clusters.iter().map(|one| one.cluster.uuid.clone()).collect();
        self.trusts.of(&uuids).await
    }

    fn view(&self, one: &ClusterRef, trusts: &HashMap<ClusterUuid, ClusterTrust>) -> View {
        let view = View::new(&one.cluster);
        if self.spec.trusts {
            view.with_trust(trusts.get(&one.cluster.uuid))
        } else {
            view
        }
    }

    /// One look, and whether the worker can be used for another one.
    async fn look_at(
        &self,
        one: &ClusterRef,
        mut view: View,
        method: &'static str,
        worker: &mut Worker<'_>,
        is_last: bool,
        log: &mut StderrLog,
    ) -> (Result<(View, Value), DriverError>, bool) {
        let mut cluster = match request::object(&one.cluster, &[], &worker.zygote.about.objects) {
            Ok(cluster) => cluster,
            Err(error) => return (Err(error), true),
        };
        view.show_in(&mut cluster);
        let method = Method::plain(method);
        let mut message = method.message(1, &self.spec.entry_point, request::admin_context(), cluster);
        message.more = !is_last;
        // Nobody asks a look to stop half-way; dropping the future does.
        let never = CancellationToken::new();
        let made = Exchange {
            connection: &mut worker.connection,
            objects: &one.objects,
            view: &mut view,
            log,
            progress: &NoProgress,
            cancel: &never,
            limit: self.spec.observe_timeout,
            driver: &self.who,
        }
        .make(&message)
        .await;
        match made {
            Ok(Ending::Returned(done)) => {
                // A look that sets a status and does not save it has not said it.
                (Ok((view, done.value)), true)
            }
            Ok(Ending::Raised(failed)) => {
                let message = log.secrets().mask(&failed.message);
                let error = DriverError::Transient(Reason::open(format!("{}: {message}", failed.exception)));
                (Err(error), true)
            }
            Err(error) => (Err(error), false),
        }
    }
}

/// The status that a look has saved.
pub(super) fn status_report(view: &View) -> DriverReport {
    let mut report = DriverReport::default();
    report.cluster.status = view.status();
    report.cluster.status_reason = view.status_reason();
    report
}

#[derive(Deserialize)]
struct Health {
    health_status: Option<String>,
    #[serde(default)]
    health_status_reason: Option<serde_json::Map<String, Value>>,
}

/// The health that a monitor found. Without a monitor, or without a status, the cluster keeps its health.
///
/// # Errors
/// Not supported: the driver has no monitor for this cluster. Transient: it returned something else than a health.
pub(super) fn health_report(who: &str, value: Value) -> Result<HealthReport, DriverError> {
    if value.is_null() {
        return Err(DriverError::NotSupported(Reason::open(format!(
            "{who} has no monitor for this cluster"
        ))));
    }
    let strange =
        |why: String| DriverError::Transient(Reason::open(format!("{who} returned no health: {why}")));
    let health: Health = serde_json::from_value(value).map_err(|error| strange(error.to_string()))?;
    let status = health.health_status.unwrap_or_default();
    let status: HealthStatus = status
        .parse()
        .map_err(|_| strange(format!("the status {status:?}")))?;
    let reasons = health.health_status_reason.unwrap_or_default().into_iter();
    let reasons: StringMap = reasons
        .map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (name, text)
        })
        .collect();
    Ok(HealthReport { status, reasons })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_health_is_read_as_monitors_leave_it() {
        let found = health_report(
            "d",
            json!({"health_status": "HEALTHY", "health_status_reason": {"api": "ok", "nodes": 2}}),
        );
        let found = found.unwrap();
        assert_eq!(found.status, HealthStatus::Healthy);
        assert_eq!(found.reasons["api"], "ok");
        assert_eq!(found.reasons["nodes"], "2");
        let bare = health_report(
            "d",
            json!({"health_status": "UNKNOWN", "health_status_reason": null}),
        );
        assert!(bare.unwrap().reasons.is_empty());
    }

    #[test]
    fn a_value_that_is_no_health_leaves_the_clusters_health_as_it_is() {
        assert!(matches!(
            health_report("d", Value::Null),
            Err(DriverError::NotSupported(_))
        ));
        for strange in [
            json!({"health_status": null}),
            json!({"health_status": "FINE"}),
            json!([]),
        ] {
            assert!(matches!(
                health_report("d", strange),
                Err(DriverError::Transient(_))
            ));
        }
    }
}
