//! The figures of the clusters that this conductor asks about, as `/metrics` shows them.
//!
//! They are not kept by the recorder of the other metrics, which forgets nothing: a cluster's figures go with the
//! cluster, with its driver's answers, when another conductor asks about it, and at the latest some time after they were
//! told. So there are never more of them than clusters that this conductor looks at.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use magnum_common::ids::ClusterUuid;
use magnum_driver_api::{Utilisation, UtilisationReport};
use tokio::time::Instant;

use crate::metric_definitions::{ALL, CLUSTER_USES, NODE_GROUP_USES};

/// A cheap handle on the figures.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Mutex<HashMap<ClusterUuid, Shown>>>);

#[derive(Debug)]
struct Shown {
    /// The number of the claim under which the driver was asked, or is about to be.
    epoch: i64,
    /// None as long as the driver cannot tell.
    report: Option<UtilisationReport>,
    until: Instant,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, HashMap<ClusterUuid, Shown>> {
        // A holder that panicked has left whole entries.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what a driver told, for so long.
    pub(super) fn show(&self, cluster: &ClusterUuid, epoch: i64, report: UtilisationReport, keep: Duration) {
        let shown = Shown {
            epoch,
            report: Some(report),
            until: Instant::now() + keep,
        };
        self.lock().insert(cluster.clone(), shown);
    }

    /// Shows nothing any more. Returns whether the driver could tell before, or was not asked for so long.
    pub(super) fn failed(&self, cluster: &ClusterUuid, epoch: i64, keep: Duration) -> bool {
        let failing = Shown {
            epoch,
            report: None,
            until: Instant::now() + keep,
        };
        let before = self.lock().insert(cluster.clone(), failing);
        before.is_none_or(|before| before.report.is_some())
    }

    /// This conductor has claimed these clusters again.
    pub(super) fn claimed(&self, epochs: &HashMap<ClusterUuid, i64>) {
        let mut shown = self.lock();
        for (cluster, epoch) in epochs {
            if let Some(one) = shown.get_mut(cluster) {
                one.epoch = *epoch;
            }
        }
    }

    /// Every cluster with the claim under which it was asked about.
    pub(super) fn claims(&self) -> Vec<(ClusterUuid, i64)> {
        let shown = self.lock();
        shown
            .iter()
            .map(|(cluster, one)| (cluster.clone(), one.epoch))
            .collect()
    }

    /// Takes off what is gone, and the figures that another conductor has by now; `ours` says of those that are there
    /// whether the claim is the latest. What was claimed again since is left.
    pub(super) fn forget_others(&self, claims: &[(ClusterUuid, i64)], ours: &HashMap<ClusterUuid, bool>) {
        let mut shown = self.lock();
        for (cluster, epoch) in claims {
            let stays = |one: &Shown| match ours.get(cluster) {
                _ if one.epoch != *epoch => true,
                None => false,
                // That the driver failed here stays known.
                Some(ours) => *ours || one.report.is_none(),
            };
            if shown.get(cluster).is_some_and(|one| !stays(one)) {
                shown.remove(cluster);
            }
        }
    }

    /// Takes off those whose time is over.
    pub(super) fn forget_old(&self) {
        let now = Instant::now();
        self.lock().retain(|_, one| one.until > now);
    }

    /// Everything that is shown, in Prometheus' text form.
    pub fn rendered(&self) -> String {
        let (shown, now) = (self.lock(), Instant::now());
        let told = shown.iter().filter(|(_, one)| one.until > now);
        let mut reports: Vec<(&ClusterUuid, &UtilisationReport)> = told
            .filter_map(|(cluster, one)| Some((cluster, one.report.as_ref()?)))
            .collect();
        reports.sort_by_key(|(cluster, _)| cluster.as_str());
        let mut text = String::new();
        for (number, name) in CLUSTER_USES.iter().enumerate() {
            let lines = reports.iter().map(|(cluster, report)| {
                let labels = format!("cluster=\"{}\"", label(cluster.as_str()));
                (labels, figure(&report.cluster, number))
            });
            family(&mut text, name, lines);
        }
        for (number, name) in NODE_GROUP_USES.iter().enumerate() {
            let lines = reports.iter().flat_map(|(cluster, report)| {
                report.node_groups.iter().map(move |group| {
                    let (cluster, uuid) = (label(cluster.as_str()), label(group.uuid.as_str()));
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

/// One metric with a line for each figure; nothing where there is none.
fn family(text: &mut String, name: &str, lines: impl Iterator<Item = (String, Option<f64>)>) {
    let lines = lines.filter_map(|(labels, figure)| Some((labels, figure?)));
    let mut is_first = true;
    for (labels, figure) in lines {
        if std::mem::take(&mut is_first) {
            let meaning = ALL.iter().find(|metric| metric.name == name);
            let meaning = meaning.map_or("", |metric| metric.meaning);
            // Writing to a text cannot fail.
            let _ = write!(text, "# HELP {name} {meaning}\n# TYPE {name} gauge\n");
        }
        let _ = writeln!(text, "{name}{{{labels}}} {figure}");
    }
    if !is_first {
        text.push('\n');
    }
}

/// A uuid comes from a row that anybody may have written.
fn label(text: &str) -> String {
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
    fn figures_are_written_as_gauges_and_those_that_are_not_known_are_left_out() {
        let board = Board::default();
        assert_eq!(board.rendered(), "");
        board.show(&"b".into(), 1, report(12.5), LONG);
        board.show(&"a".into(), 1, report(100.0), LONG);
        let text = board.rendered();
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
    fn figures_go_when_the_driver_fails_and_only_the_first_failure_is_new() {
        let (board, cluster) = (Board::default(), "c".into());
        board.show(&cluster, 1, report(1.0), LONG);
        assert!(board.failed(&cluster, 2, LONG));
        assert_eq!(board.rendered(), "");
        assert!(!board.failed(&cluster, 3, LONG));
        board.show(&cluster, 4, report(1.0), LONG);
        assert!(board.failed(&cluster, 5, LONG));
    }

    #[test]
    fn figures_go_when_another_conductor_looks_at_the_cluster_and_not_while_this_one_does() {
        let (board, cluster): (_, ClusterUuid) = (Board::default(), "c".into());
        let others = HashMap::from([(cluster.clone(), false)]);
        board.show(&cluster, 1, report(1.0), LONG);
        let old = board.claims();
        board.claimed(&HashMap::from([(cluster.clone(), 2)]));
        board.forget_others(&old, &others);
        assert_ne!(board.rendered(), "", "it was claimed again meanwhile");
        board.forget_others(&board.claims(), &others);
        assert_eq!(board.rendered(), "");
        // Not shown before: nothing to keep.
        board.claimed(&HashMap::from([(cluster, 3)]));
        assert!(board.claims().is_empty());
    }

    #[test]
    fn a_failure_stays_known_until_the_cluster_is_gone() {
        let (board, cluster): (_, ClusterUuid) = (Board::default(), "c".into());
        assert!(board.failed(&cluster, 1, LONG));
        board.forget_others(&board.claims(), &HashMap::from([(cluster.clone(), false)]));
        assert!(!board.failed(&cluster, 3, LONG));
        board.forget_others(&board.claims(), &HashMap::new());
        assert!(board.claims().is_empty());
    }

    #[test]
    fn figures_go_when_their_time_is_over() {
        let board = Board::default();
        board.show(&"c".into(), 1, report(1.0), Duration::ZERO);
        assert_eq!(board.rendered(), "");
        board.forget_old();
        assert!(board.claims().is_empty());
    }

    #[test]
    fn label_value_is_escaped() {
        assert_eq!(label("a\"} 1\n\\"), "a\\\"} 1\\n\\\\");
    }
}
