//! Limits of what a driver tells of a cluster's processors and memory.

use std::collections::HashSet;

use magnum_drivers::DriverInfo;

use super::{LimitError, over, refused};
use crate::{ClusterRef, DriverError, Utilisation, UtilisationReport};

/// What a look at `cluster` brought, if it can be shown.
///
/// # Errors
/// The driver's own error, or a permanent one that names the figure that makes no sense.
pub fn accept_utilisation(
    driver: &DriverInfo,
    cluster: &ClusterRef,
    result: Result<UtilisationReport, DriverError>,
) -> Result<UtilisationReport, DriverError> {
    let report = result?;
    check(cluster, &report).map_err(|error| refused(driver, &error))?;
    Ok(report)
}

/// At most one entry for each group of the cluster, hence never more than it has groups.
fn check(cluster: &ClusterRef, report: &UtilisationReport) -> Result<(), LimitError> {
    let mut told = figures("cluster", &report.cluster)?;
    let groups: HashSet<_> = cluster.node_groups.iter().map(|group| &group.uuid).collect();
    let mut seen = HashSet::new();
    for (number, group) in report.node_groups.iter().enumerate() {
        let path = format!("node_groups[{number}]");
        let field = format!("{path}.uuid");
        if !groups.contains(&group.uuid) {
            return Err(over(field, "is none of the cluster's node groups".to_owned()));
        }
        if !seen.insert(&group.uuid) {
            return Err(over(field, "is named a second time".to_owned()));
        }
        told += figures(&path, &group.used)?;
    }
    if told == 0 {
        return Err(over("cluster".to_owned(), "holds no figure".to_owned()));
    }
    Ok(())
}

/// How many there are.
fn figures(path: &str, used: &Utilisation) -> Result<usize, LimitError> {
    let mut told = 0;
    for (name, figure) in used.figures() {
        let Some(figure) = figure else { continue };
        told += 1;
        let wrong = |rule: &str| Err(over(format!("{path}.{name}"), format!("{rule}, it is {figure}")));
        if !figure.is_finite() {
            return wrong("must be a number");
        }
        if figure < 0.0 {
            return wrong("must not be negative");
        }
        if name.ends_with("_percent") && figure > 100.0 {
            return wrong("must be 100 at most");
        }
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup};

    use super::*;
    use crate::GroupUtilisation;

    fn wrong(change: impl FnOnce(&mut UtilisationReport)) -> Option<String> {
        let group = |uuid: &str| NodeGroup::new(uuid.into(), uuid, "c".into(), "p", "worker");
        let cluster = ClusterRef {
            cluster: Cluster::new("c".into(), "t".into()),
            node_groups: vec![group("a"), group("b")],
            template: ClusterTemplate::new("t".into()),
            operation: None,
            objects: crate::SharedObjects::default(),
        };
        let used = Utilisation {
            cpu_percent: Some(0.0),
            memory_percent: Some(100.0),
            memory_used_bytes: Some(1e15),
            ..Utilisation::default()
        };
        let of = |uuid: &str| GroupUtilisation {
            uuid: uuid.into(),
            used,
        };
        let mut report = UtilisationReport {
            cluster: used,
            node_groups: vec![of("a"), of("b")],
        };
        change(&mut report);
        check(&cluster, &report).err().map(|error| error.to_string())
    }

    #[test]
    fn figures_within_their_limits_are_accepted_and_so_is_a_part_of_them() {
        assert_eq!(wrong(|_| {}), None);
        assert_eq!(wrong(|report| report.node_groups.clear()), None);
        assert_eq!(wrong(|report| report.cluster = Utilisation::default()), None);
    }

    #[test]
    fn a_figure_that_makes_no_sense_is_named() {
        for (figure, expected) in [
            (100.5, "must be 100 at most, it is 100.5"),
            (-1.0, "must not be negative, it is -1"),
            (f64::NAN, "must be a number, it is NaN"),
            (f64::INFINITY, "must be a number, it is inf"),
        ] {
            let told = wrong(|report| report.node_groups[1].used.cpu_percent = Some(figure));
            assert_eq!(told, Some(format!("node_groups[1].cpu_percent {expected}")));
        }
        let told = wrong(|report| report.cluster.memory_used_bytes = Some(-2.0));
        assert_eq!(
            told.as_deref(),
            Some("cluster.memory_used_bytes must not be negative, it is -2")
        );
    }

    #[test]
    fn a_group_that_is_not_there_or_comes_twice_and_an_empty_report_are_refused() {
        let strange = wrong(|report| report.node_groups[1].uuid = "x".into());
        assert_eq!(
            strange.as_deref(),
            Some("node_groups[1].uuid is none of the cluster's node groups")
        );
        let twice = wrong(|report| report.node_groups[1].uuid = "a".into());
        assert_eq!(
            twice.as_deref(),
            Some("node_groups[1].uuid is named a second time")
        );
        assert_eq!(
            wrong(|report| *report = UtilisationReport::default()).as_deref(),
            Some("cluster holds no figure")
        );
    }
}
