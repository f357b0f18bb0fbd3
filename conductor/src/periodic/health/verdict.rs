//! Decides what the result of a health poll changes. Pure.

use std::time::Duration;

use magnum_common::model::{Cluster, HealthStatus, StringMap};
use magnum_driver_api::{DriverError, HealthReport, Reason};

use crate::store::health_polls::Answer;

/// Key of a reason that concerns the driver and not the cluster.
const DRIVER: &str = "driver";

/// Name of the auto-healer that writes the health of its own cluster.
const HEALER: &str = "magnum-auto-healer";

/// What to do with one cluster after its poll.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    /// For the schedule of the next poll.
    pub(super) answer: Answer,
    /// The health to write; `None` when the row has it already.
    pub(super) health: Option<HealthReport>,
    /// Why there was no report.
    pub(super) failure: Option<Reason>,
}

/// Whether the labels name an auto-healer that writes the cluster's health, as Magnum reads them.
pub(super) fn has_own_healer(cluster: &Cluster) -> bool {
    let label = |name: &str| cluster.labels.get(name).map(|value| value.trim());
    let enabled = label("auto_healing_enabled").is_some_and(|value| {
        ["1", "t", "true", "on", "y", "yes"]
            .iter()
            .any(|word| value.eq_ignore_ascii_case(word))
    });
    enabled && label("auto_healing_controller") == Some(HEALER)
}

impl Verdict {
    /// Judges the result for `cluster`; `None` when the driver omitted it. `failures` and `without_report` count from its
    /// last report; health becomes UNKNOWN when `without_report` reaches `unknown_after`.
    pub(super) fn of(
        cluster: &Cluster,
        result: Option<Result<HealthReport, DriverError>>,
        failures: i32,
        without_report: Duration,
        unknown_after: Duration,
    ) -> Self {
        let failure = match result {
            Some(Ok(report)) => return Self::answered(cluster, report),
            Some(Err(DriverError::NotSupported(_))) => {
                return Self {
                    answer: Answer::NotAsked,
                    health: None,
                    failure: None,
                };
            }
            // The driver cannot determine the health, and a retry would not help.
            Some(Err(DriverError::Permanent(reason))) => {
                return Self::answered(
                    cluster,
                    unknown(StringMap::from([(DRIVER.to_owned(), reason.told().to_owned())])),
                );
            }
            Some(Err(error)) => error.reason(),
            None => "the driver said nothing about the cluster".into(),
        };
        let expired =
            (without_report >= unknown_after).then(|| unknown(no_answer(unknown_after, failure.told())));
        Self {
            answer: Answer::Missing {
                failures: failures.saturating_add(1),
            },
            health: expired.filter(|report| differs(cluster, report)),
            failure: Some(failure),
        }
    }

    fn answered(cluster: &Cluster, report: HealthReport) -> Self {
        Self {
            answer: Answer::Given,
            health: Some(report).filter(|report| differs(cluster, report)),
            failure: None,
        }
    }

    /// The label value of metrics.
    pub(super) const fn as_str(&self) -> &'static str {
        match (&self.answer, &self.health) {
            (Answer::Missing { .. }, _) => "failed",
            (Answer::NotAsked, _) => "not_asked",
            (Answer::Given, None) => "unchanged",
            (Answer::Given, Some(_)) => "changed",
        }
    }
}

/// The reasons of a cluster whose driver has not reported its health for too long.
pub(super) fn no_answer(unknown_after: Duration, why: &str) -> StringMap {
    let minutes = unknown_after.as_secs().div_ceil(60);
    let text = format!("no answer for {minutes} minutes: {why}");
    StringMap::from([(DRIVER.to_owned(), text)])
}

const fn unknown(reasons: StringMap) -> HealthReport {
    HealthReport {
        status: HealthStatus::Unknown,
        reasons,
    }
}

fn differs(cluster: &Cluster, report: &HealthReport) -> bool {
    cluster.health_status != Some(report.status) || cluster.health_status_reason != report.reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN_AFTER: Duration = Duration::from_secs(600);

    fn healthy() -> HealthReport {
        HealthReport {
            status: HealthStatus::Healthy,
            reasons: StringMap::from([("api".to_owned(), "ok".to_owned())]),
        }
    }

    fn cluster() -> Cluster {
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.health_status = Some(HealthStatus::Healthy);
        cluster.health_status_reason = healthy().reasons;
        cluster
    }

    fn judged(result: Option<Result<HealthReport, DriverError>>, seconds_without_report: u64) -> Verdict {
        Verdict::of(
            &cluster(),
            result,
            2,
            Duration::from_secs(seconds_without_report),
            UNKNOWN_AFTER,
        )
    }

    #[test]
    fn unchanged_health_is_not_written_again() {
        let verdict = judged(Some(Ok(healthy())), 0);
        assert_eq!((verdict.answer, verdict.health), (Answer::Given, None));
        let ill = HealthReport {
            status: HealthStatus::Unhealthy,
            ..healthy()
        };
        assert_eq!(judged(Some(Ok(ill.clone())), 0).health, Some(ill));
    }

    #[test]
    fn health_becomes_unknown_when_the_driver_has_failed_for_the_longest_silence() {
        for result in [
            None,
            Some(Err(DriverError::Transient("the cloud is busy".into()))),
        ] {
            let verdict = judged(result.clone(), 599);
            assert_eq!(verdict.answer, Answer::Missing { failures: 3 });
            assert_eq!(verdict.health, None);
            let health = judged(result, 600).health.expect("given up");
            assert_eq!(health.status, HealthStatus::Unknown);
            let reason = &health.reasons["driver"];
            assert!(reason.starts_with("no answer for 10 minutes: "), "{reason}");
        }
    }

    #[test]
    fn permanent_driver_error_makes_the_health_unknown_at_once() {
        let verdict = judged(Some(Err(DriverError::Permanent("no credential".into()))), 0);
        assert_eq!(verdict.answer, Answer::Given);
        let health = verdict.health.expect("a change");
        assert_eq!(health.status, HealthStatus::Unknown);
        assert_eq!(health.reasons["driver"], "no credential");
    }

    #[test]
    fn driver_without_health_leaves_the_stored_health_unchanged() {
        let verdict = judged(Some(Err(DriverError::NotSupported("no".into()))), 6000);
        assert_eq!((verdict.answer, verdict.health), (Answer::NotAsked, None));
    }

    #[test]
    fn a_cluster_has_its_own_healer_when_both_labels_say_so() {
        let labelled = |enabled: &str, controller: &str| {
            let mut cluster = cluster();
            cluster.labels = StringMap::from([
                ("auto_healing_enabled".to_owned(), enabled.to_owned()),
                ("auto_healing_controller".to_owned(), controller.to_owned()),
            ]);
            has_own_healer(&cluster)
        };
        assert!(labelled("True", "magnum-auto-healer"));
        assert!(labelled("1", "magnum-auto-healer"));
        assert!(!labelled("false", "magnum-auto-healer"));
        assert!(!labelled("true", "draino"));
        assert!(!has_own_healer(&cluster()));
    }
}
