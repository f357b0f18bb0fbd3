//! The call `monitor`: how much of their processors and memory clusters use.

use magnum_common::ids::NodeGroupUuid;
use magnum_driver_api::{GroupUtilisation, Utilisation, UtilisationReport};
use serde::Deserialize;

use super::protocol::FromResult;

/// The word of the call.
pub const MONITOR: &str = "monitor";

/// The result: figures of the cluster and of its node groups.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UtilisationLine {
    #[serde(default)]
    cluster: FiguresLine,
    #[serde(default)]
    node_groups: Vec<GroupLine>,
}

/// The figures are written beside the uuid; `deny_unknown_fields` and `flatten` do not go together.
macro_rules! figures {
    ($($figure:ident),+) => {
        #[derive(Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct FiguresLine { $($figure: Option<f64>),+ }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct GroupLine { uuid: NodeGroupUuid, $($figure: Option<f64>),+ }

        impl From<FiguresLine> for Utilisation {
            fn from(line: FiguresLine) -> Self {
                Self { $($figure: line.$figure),+ }
            }
        }

        impl From<GroupLine> for GroupUtilisation {
            fn from(line: GroupLine) -> Self {
                Self { uuid: line.uuid, used: Utilisation { $($figure: line.$figure),+ } }
            }
        }
    };
}

figures!(
    cpu_percent,
    cpu_used_cores,
    cpu_total_cores,
    memory_percent,
    memory_used_bytes,
    memory_total_bytes
);

impl From<UtilisationLine> for UtilisationReport {
    fn from(line: UtilisationLine) -> Self {
        Self {
            cluster: line.cluster.into(),
            node_groups: line.node_groups.into_iter().map(GroupUtilisation::from).collect(),
        }
    }
}

impl FromResult for UtilisationReport {
    type Line = UtilisationLine;
}

#[cfg(test)]
mod tests {
    use super::super::protocol::OutputLine;
    use super::*;

    fn read(result: &str) -> Result<OutputLine<UtilisationReport>, String> {
        OutputLine::read(&format!(r#"{{"cluster": "c-1", "result": {result}}}"#))
    }

    #[test]
    fn figures_of_a_cluster_and_its_groups_are_read() {
        let seen = read(
            r#"{"cluster": {"cpu_percent": 12.5, "memory_total_bytes": 4096},
                "node_groups": [{"uuid": "g-1", "memory_percent": 100, "cpu_used_cores": null}]}"#,
        );
        let report = UtilisationReport {
            cluster: Utilisation {
                cpu_percent: Some(12.5),
                memory_total_bytes: Some(4096.0),
                ..Utilisation::default()
            },
            node_groups: vec![GroupUtilisation {
                uuid: "g-1".into(),
                used: Utilisation {
                    memory_percent: Some(100.0),
                    ..Utilisation::default()
                },
            }],
        };
        assert_eq!(seen, Ok(OutputLine::Observed("c-1".into(), Ok(report))));
    }

    #[test]
    fn a_mistake_in_figures_is_named() {
        for (result, word) in [
            (r#"{"cluster": {"cpu": 1}}"#, "unknown field `cpu`"),
            (r#"{"cluster": {"cpu_percent": "1"}}"#, "invalid type: string"),
            (r#"{"cluster": {"cpu_percent": 1e999}}"#, "number out of range"),
            (r#"{"cluster": {"cpu_percent": NaN}}"#, "expected value"),
            (r#"{"node_groups": [{"cpu_percent": 1}]}"#, "missing field `uuid`"),
            (
                r#"{"cluster": {"health_status": "HEALTHY"}}"#,
                "unknown field `health_status`",
            ),
        ] {
            let reason = read(result).unwrap_err();
            assert!(reason.contains(word), "{result}: {reason}");
        }
    }
}
