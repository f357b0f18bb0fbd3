//! Utilisation figures of the clusters that this conductor polls, as exported on `/metrics`.
//!
//! They are not in the recorder of the other metrics, which never removes a series. A cluster's figures are removed when
//! the cluster is deleted, when its driver fails, when another conductor polls it, and at the latest when they expire. So
//! there are figures of at most the clusters that this conductor polls.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use magnum_common::ids::ClusterUuid;
use magnum_driver_api::{Utilisation, UtilisationReport};
use tokio::time::Instant;

use crate::metric_definitions::{ALL, CLUSTER_USES, NODE_GROUP_USES};

/// The figures by cluster. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct UtilisationFigures(Arc<Mutex<HashMap<ClusterUuid, Entry>>>);

#[derive(Debug)]
struct Entry {
    /// The epoch of the claim under which the driver was polled, or is about to be.
    epoch: i64,
    /// `None` as long as polls fail.
    report: Option<UtilisationReport>,
    expires: Instant,
}

impl UtilisationFigures {
    fn lock(&self) -> MutexGuard<'_, HashMap<ClusterUuid, Entry>> {
        // A holder that panicked has left whole entries.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exports a report for the time `keep`.
    pub(super) fn set(&self, cluster: &ClusterUuid, epoch: i64, report: UtilisationReport, keep: Duration) {
        let entry = Entry {
            epoch,
            report: Some(report),
            expires: Instant::now() + keep,
        };
        self.lock().insert(cluster.clone(), entry);
    }

    /// Removes the figures after a failed poll, and remembers the failure for the time `keep`. Returns whether the failure
    /// is new: the poll before succeeded, or there was none within `keep`.
    pub(super) fn set_failed(&self, cluster: &ClusterUuid, epoch: i64, keep: Duration) -> bool {
        let failing = Entry {
            epoch,
            report: None,
            expires: Instant::now() + keep,
        };
        let before = self.lock().insert(cluster.clone(), failing);
        before.is_none_or(|before| before.report.is_some())
    }

    /// Updates the epochs of clusters that this conductor has claimed again.
    pub(super) fn set_epochs(&self, epochs: &HashMap<ClusterUuid, i64>) {
        let mut entries = self.lock();
        for (cluster, epoch) in epochs {
            if let Some(one) = entries.get_mut(cluster) {
                one.epoch = *epoch;
            }
        }
    }

    /// Every cluster with the epoch of its claim.
    pub(super) fn claims(&self) -> Vec<(ClusterUuid, i64)> {
        let entries = self.lock();
        entries
            .iter()
            .map(|(cluster, one)| (cluster.clone(), one.epoch))
            .collect()
    }

    /// Removes deleted clusters, and the figures of clusters that another conductor has claimed since: `ours` has, for
    /// each existing cluster, whether the claim is the latest. Clusters claimed again meanwhile stay.
    pub(super) fn remove_foreign(&self, claims: &[(ClusterUuid, i64)], ours: &HashMap<ClusterUuid, bool>) {
        let mut entries = self.lock();
        for (cluster, epoch) in claims {
            let stays = |one: &Entry| match ours.get(cluster) {
                _ if one.epoch != *epoch => true,
                None => false,
                // The failure stays remembered, so that it is not logged as a new one.
                Some(ours) => *ours || one.report.is_none(),
            };
            if entries.get(cluster).is_some_and(|one| !stays(one)) {
                entries.remove(cluster);
            }
        }
    }

    /// Removes expired entries.
    pub(super) fn remove_expired(&self) {
        let now = Instant::now();
        self.lock().retain(|_, one| one.expires > now);
    }

    /// All figures in Prometheus' text format.
    pub fn rendered(&self) -> String {
        let (entries, now) = (self.lock(), Instant::now());
        let current = entries.iter().filter(|(_, one)| one.expires > now);
        let mut reports: Vec<(&ClusterUuid, &UtilisationReport)> = current
            .filter_map(|(cluster, one)| Some((cluster, one.report.as_ref()?)))
            .collect();
        reports.sort_by_key(|(cluster, _)| cluster.as_str());
        let mut text = String::new();
        for (number, name) in CLUSTER_USES.iter().enumerate() {
            let lines = reports.iter().map(|(cluster, report)| {
                let labels = format!("cluster=\"{}\"", escaped(cluster.as_str()));
                (labels, figure(&report.cluster, number))
            });
            family(&mut text, name, lines);
        }
        for (number, name) in NODE_GROUP_USES.iter().enumerate() {
            let lines = reports.iter().flat_map(|(cluster, report)| {
                report.node_groups.iter().map(move |group| {
                    let (cluster, uuid) = (escaped(cluster.as_str()), escaped(group.uuid.as_str()));
                    let labels = format!("cluster=\"{cluster}\",node_group=\"{uuid}\"");
                    (labels, figure(&group.used, number))
                })
            });
            family(&mut text, name, lines);
        }
        text
    }
}

fn figure(used: &Utilisation, number: usize) -> Option<f64> {
    used.figures().get(number).and_then(|(_, figure)| *figure)
}

/// Writes one metric with a line for each figure; nothing when there are no figures.
fn family(text: &mut String, name: &str, lines: impl Iterator<Item = (String, Option<f64>)>) {
    let lines = lines.filter_map(|(labels, figure)| Some((labels, figure?)));
    let mut is_first = true;
    for (labels, figure) in lines {
        if std::mem::take(&mut is_first) {
            let meaning = ALL.iter().find(|metric| metric.name == name);
            let meaning = meaning.map_or("", |metric| metric.meaning);
            // Writing to a string cannot fail.
            let _ = write!(text, "# HELP {name} {meaning}\n# TYPE {name} gauge\n");
        }
        let _ = writeln!(text, "{name}{{{labels}}} {figure}");
    }
    if !is_first {
        text.push('\n');
    }
}

/// Escapes a label value: the uuid is from a row that any program may have written.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use magnum_driver_api::GroupUtilisation;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn report(percent: f64) -> UtilisationReport {
        let used = Utilisation {
            cpu_percent: Some(percent),
            memory_used_bytes: Some(4096.0),
            ..Utilisation::default()
        };
        UtilisationReport {
            cluster: used,
            node_groups: vec![GroupUtilisation {
                uuid: "g".into(),
                used,
            }],
        }
    }

    #[test]
    fn known_figures_are_written_as_gauges_and_unknown_ones_are_left_out() {
        let figures = UtilisationFigures::default();
        assert_eq!(figures.rendered(), "");
        figures.set(&"b".into(), 1, report(12.5), LONG);
        figures.set(&"a".into(), 1, report(100.0), LONG);
        let text = figures.rendered();
        let expected = "# HELP magnum_cluster_cpu_percent Share of a cluster's processors in use, 0 to 100\n\
                        # TYPE magnum_cluster_cpu_percent gauge\n\
                        magnum_cluster_cpu_percent{cluster=\"a\"} 100\n\
                        magnum_cluster_cpu_percent{cluster=\"b\"} 12.5\n\n";
        assert!(text.starts_with(expected), "{text}");
        let group = "magnum_node_group_memory_used_bytes{cluster=\"a\",node_group=\"g\"} 4096\n";
        assert!(text.contains(group), "{text}");
        assert!(!text.contains("memory_percent"), "{text}");
    }

    #[test]
    fn figures_are_removed_when_the_driver_fails_and_only_the_first_failure_is_new() {
        let (figures, cluster) = (UtilisationFigures::default(), "c".into());
        figures.set(&cluster, 1, report(1.0), LONG);
        assert!(figures.set_failed(&cluster, 2, LONG));
        assert_eq!(figures.rendered(), "");
        assert!(!figures.set_failed(&cluster, 3, LONG));
        figures.set(&cluster, 4, report(1.0), LONG);
        assert!(figures.set_failed(&cluster, 5, LONG));
    }

    #[test]
    fn figures_are_removed_when_another_conductor_claims_the_cluster_and_kept_while_this_one_does() {
        let (figures, cluster): (_, ClusterUuid) = (UtilisationFigures::default(), "c".into());
        let others = HashMap::from([(cluster.clone(), false)]);
        figures.set(&cluster, 1, report(1.0), LONG);
        let old = figures.claims();
        figures.set_epochs(&HashMap::from([(cluster.clone(), 2)]));
        figures.remove_foreign(&old, &others);
        assert_ne!(figures.rendered(), "", "it was claimed again meanwhile");
        figures.remove_foreign(&figures.claims(), &others);
        assert_eq!(figures.rendered(), "");
        // Not entries before: nothing to keep.
        figures.set_epochs(&HashMap::from([(cluster, 3)]));
        assert!(figures.claims().is_empty());
    }

    #[test]
    fn failure_stays_known_until_the_cluster_is_gone() {
        let (figures, cluster): (_, ClusterUuid) = (UtilisationFigures::default(), "c".into());
        assert!(figures.set_failed(&cluster, 1, LONG));
        figures.remove_foreign(&figures.claims(), &HashMap::from([(cluster.clone(), false)]));
        assert!(!figures.set_failed(&cluster, 3, LONG));
        figures.remove_foreign(&figures.claims(), &HashMap::new());
        assert!(figures.claims().is_empty());
    }

    #[test]
    fn expired_figures_are_removed() {
        let figures = UtilisationFigures::default();
        figures.set(&"c".into(), 1, report(1.0), Duration::ZERO);
        assert_eq!(figures.rendered(), "");
        figures.remove_expired();
        assert!(figures.claims().is_empty());
    }

    #[test]
    fn label_value_is_escaped() {
        assert_eq!(escaped("a\"} 1\n\\"), "a\\\"} 1\\n\\\\");
    }
}
