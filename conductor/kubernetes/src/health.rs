//! From what was seen to health and reasons. Pure.

use magnum_common::model::{HealthStatus, StringMap};

use super::nodes::{Node, Ready};

/// The reason about the API server itself.
const API: &str = "api";
/// Longest text about the API server, in characters: a failing `/readyz` lists all of its parts.
const LONGEST_TEXT: usize = 1000;
/// Longest name that Kubernetes allows.
const LONGEST_NAME: usize = 253;
/// What a reason takes in a row beside its key and its value: quotes, colon, comma.
const AROUND_REASON: usize = 8;

/// What a cluster's row says of its health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterHealth {
    /// Never unknown: who cannot be asked is not healthy.
    pub status: HealthStatus,
    /// `api`, and `<node>.Ready` for each node.
    pub reasons: StringMap,
}

impl ClusterHealth {
    /// Of a cluster whose API server is ready and has these nodes. Reasons that do not fit into `most` bytes are left
    /// out, those of ready nodes first.
    pub(crate) fn of_nodes(nodes: &[Node], most: usize) -> Self {
        let mut sorted: Vec<&Node> = nodes.iter().collect();
        sorted.sort_by_key(|node| node.ready);
        let all_ready = sorted.first().is_none_or(|worst| worst.ready == Ready::True);
        let mut reasons = StringMap::from([(API.to_owned(), "ok".to_owned())]);
        let mut size = 0;
        for node in sorted {
            let key = format!("{}.Ready", printable(&node.name, LONGEST_NAME));
            size += key.len() + node.ready.as_str().len() + AROUND_REASON;
            if size > most {
                break;
            }
            reasons.insert(key, node.ready.as_str().to_owned());
        }
        Self {
            status: if all_ready {
                HealthStatus::Healthy
            } else {
                HealthStatus::Unhealthy
            },
            reasons,
        }
    }

    /// Of a cluster whose API server is not ready, or did not answer.
    pub(crate) fn without_api(error: &str) -> Self {
        Self {
            status: HealthStatus::Unhealthy,
            reasons: StringMap::from([(API.to_owned(), printable(error, LONGEST_TEXT))]),
        }
    }
}

/// At most so many characters, in one line: the text is the server's, and goes to a database and to terminals.
fn printable(text: &str, most: usize) -> String {
    let text = text.trim();
    let mut shown: String = text
        .chars()
        .take(most)
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect();
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(ready: &[Ready]) -> Vec<Node> {
        let numbered = ready.iter().enumerate();
        numbered
            .map(|(number, ready)| Node {
                name: format!("node-{number}"),
                ready: *ready,
            })
            .collect()
    }

    fn status(ready: &[Ready]) -> HealthStatus {
        ClusterHealth::of_nodes(&nodes(ready), 1000).status
    }

    #[test]
    fn healthy_means_that_every_node_is_ready() {
        assert_eq!(status(&[Ready::True, Ready::True]), HealthStatus::Healthy);
        assert_eq!(status(&[]), HealthStatus::Healthy);
        assert_eq!(status(&[Ready::True, Ready::Unknown]), HealthStatus::Unhealthy);
        assert_eq!(status(&[Ready::False, Ready::True]), HealthStatus::Unhealthy);
    }

    #[test]
    fn reasons_are_keyed_as_magnum_keys_them() {
        let health = ClusterHealth::of_nodes(&nodes(&[Ready::True, Ready::False]), 1000);
        let expected = [("api", "ok"), ("node-1.Ready", "False"), ("node-0.Ready", "True")];
        assert!(
            health
                .reasons
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .eq(expected)
        );
        let health = ClusterHealth::without_api("connection refused");
        assert_eq!(health.reasons["api"], "connection refused");
    }

    #[test]
    fn reasons_that_do_not_fit_are_those_of_ready_nodes() {
        let mut ready = vec![Ready::True; 1000];
        ready.push(Ready::False);
        let health = ClusterHealth::of_nodes(&nodes(&ready), 2000);
        assert_eq!(health.reasons["node-1000.Ready"], "False");
        assert!(health.reasons.len() < 100);
        assert_eq!(health.status, HealthStatus::Unhealthy);
    }

    #[test]
    fn a_servers_text_is_cut_and_has_no_control_characters() {
        let health = ClusterHealth::without_api(&format!("\u{1b}[2J\n{}", "x".repeat(5000)));
        let text = &health.reasons["api"];
        assert!(!text.chars().any(char::is_control));
        assert_eq!(text.chars().count(), LONGEST_TEXT + 1);
    }
}
