//! What a look at a cluster's health means: pure decisions.

use std::time::Duration;

use magnum_common::model::{Cluster, HealthStatus, StringMap};
use magnum_driver_api::{DriverError, HealthReport};

use crate::store::health_polls::Answer;

/// The reason that is about the driver, not about the cluster.
const DRIVER: &str = "driver";

/// The auto-healer that writes the health of its own cluster.
const HEALER: &str = "magnum-auto-healer";

/// What to do with one cluster after a look.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    /// For the next look.
    pub(super) answer: Answer,
    /// What to write; `None` when the row says it already.
    pub(super) health: Option<HealthReport>,
    /// Why there was no answer.
    pub(super) failure: Option<String>,
}

/// Whether the labels say that somebody else looks after the cluster's health, as Magnum reads them.
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
    /// Judges what the driver said of `cluster`; `None` when it said nothing. `failures` and `unanswered` count from
    /// its last answer; `silence` is how long there may be none.
    pub(super) fn of(
        cluster: &Cluster,
        seen: Option<Result<HealthReport, DriverError>>,
        failures: i32,
        unanswered: Duration,
        silence: Duration,
    ) -> Self {
        let failure = match seen {
            Some(Ok(report)) => return Self::answered(cluster, report),
            Some(Err(DriverError::NotSupported(_))) => {
                return Self {
                    answer: Answer::NotAsked,
                    health: None,
                    failure: None,
                };
            }
            // It answered that it cannot tell, and will not soon.
            Some(Err(DriverError::Permanent(reason))) => {
                return Self::answered(cluster, unknown(StringMap::from([(DRIVER.to_owned(), reason)])));
            }
            Some(Err(error)) => error.to_string(),
            None => "the driver said nothing about the cluster".to_owned(),
        };
        let given_up = (unanswered >= silence).then(|| unknown(no_answer(silence, &failure)));
        Self {
            answer: Answer::Missing {
                failures: failures.saturating_add(1),
            },
            health: given_up.filter(|report| differs(cluster, report)),
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

    /// The word in metrics.
    pub(super) const fn as_str(&self) -> &'static str {
        match (&self.answer, &self.health) {
            (Answer::Missing { .. }, _) => "failed",
            (Answer::NotAsked, _) => "not_asked",
            (Answer::Given, None) => "unchanged",
            (Answer::Given, Some(_)) => "changed",
        }
    }
}

/// The reasons of a cluster whose driver has not answered for too long.
pub(super) fn no_answer(silence: Duration, why: &str) -> StringMap {
    let minutes = silence.as_secs().div_ceil(60);
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

    const SILENCE: Duration = Duration::from_secs(600);

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

    fn judged(seen: Option<Result<HealthReport, DriverError>>, unanswered_seconds: u64) -> Verdict {
        Verdict::of(
            &cluster(),
            seen,
            2,
            Duration::from_secs(unanswered_seconds),
            SILENCE,
        )
    }

    #[test]
    fn health_that_is_known_already_is_not_written_again() {
        let verdict = judged(Some(Ok(healthy())), 0);
        assert_eq!((verdict.answer, verdict.health), (Answer::Given, None));
        let ill = HealthReport {
            status: HealthStatus::Unhealthy,
            ..healthy()
        };
        assert_eq!(judged(Some(Ok(ill.clone())), 0).health, Some(ill));
    }

    #[test]
    fn health_survives_a_driver_that_fails_for_a_while_and_no_longer() {
        for seen in [
            None,
            Some(Err(DriverError::Transient("the cloud is busy".into()))),
        ] {
            let verdict = judged(seen.clone(), 599);
            assert_eq!(verdict.answer, Answer::Missing { failures: 3 });
            assert_eq!(verdict.health, None);
            let health = judged(seen, 600).health.expect("given up");
            assert_eq!(health.status, HealthStatus::Unknown);
            let reason = &health.reasons["driver"];
            assert!(reason.starts_with("no answer for 10 minutes: "), "{reason}");
        }
    }

    #[test]
    fn a_driver_that_says_that_it_cannot_tell_makes_the_health_unknown_at_once() {
        let verdict = judged(Some(Err(DriverError::Permanent("no credential".into()))), 0);
        assert_eq!(verdict.answer, Answer::Given);
        let health = verdict.health.expect("a change");
        assert_eq!(health.status, HealthStatus::Unknown);
        assert_eq!(health.reasons["driver"], "no credential");
    }

    #[test]
    fn a_driver_without_health_leaves_it_to_others() {
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
