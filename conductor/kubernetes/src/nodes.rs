//! The list of nodes, as little of it as matters here.

use serde::Deserialize;

/// One page of the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) nodes: Vec<Node>,
    /// Asks for the next page; `None` after the last.
    pub(crate) next: Option<String>,
}

/// A node and its condition `Ready`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) ready: Ready,
}

/// Status of the condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ready {
    /// It says so, or has no such condition.
    False,
    /// It has gone silent.
    Unknown,
    True,
}

impl Ready {
    /// As reasons have it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::False => "False",
            Self::Unknown => "Unknown",
            Self::True => "True",
        }
    }
}

#[derive(Deserialize)]
struct NodeList {
    kind: Kind,
    #[serde(default)]
    metadata: ListMetadata,
    // Go writes an empty list as null.
    items: Option<Vec<Item>>,
}

/// So that another server's JSON is not taken for a cluster without nodes.
#[derive(Deserialize)]
enum Kind {
    NodeList,
}

#[derive(Deserialize, Default)]
struct ListMetadata {
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
    status: Option<Status>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
struct Status {
    conditions: Option<Vec<Condition>>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

/// Reads an answer of `/api/v1/nodes`.
pub(crate) fn read(body: &[u8]) -> Result<Page, serde_json::Error> {
    let list: NodeList = serde_json::from_slice(body)?;
    let Kind::NodeList = list.kind;
    Ok(Page {
        nodes: list.items.unwrap_or_default().into_iter().map(node).collect(),
        next: list.metadata.next.filter(|token| !token.is_empty()),
    })
}

fn node(item: Item) -> Node {
    let conditions = item.status.and_then(|status| status.conditions);
    let ready = conditions
        .unwrap_or_default()
        .into_iter()
        .find(|condition| condition.kind == "Ready")
        .map_or(Ready::False, |condition| match condition.status.as_str() {
            "True" => Ready::True,
            "Unknown" => Ready::Unknown,
            _ => Ready::False,
        });
    Node {
        name: item.metadata.name,
        ready,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_is_ready_only_with_condition_true() {
        let body = br#"{"kind": "NodeList", "metadata": {"continue": ""}, "items": [
            {"metadata": {"name": "a"}, "status": {"conditions": [
                {"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": "True"}]}},
            {"metadata": {"name": "b"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
            {"metadata": {"name": "c"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            {"metadata": {"name": "d"}, "status": {}},
            {"metadata": {"name": "e"}}]}"#;
        let page = read(body).expect("a list");
        let ready: Vec<&str> = page.nodes.iter().map(|node| node.ready.as_str()).collect();
        assert_eq!(ready, ["True", "Unknown", "False", "False", "False"]);
        assert_eq!(page.next, None);
    }

    #[test]
    fn an_empty_list_may_be_null_and_a_full_one_has_a_next_page() {
        let page = read(br#"{"kind": "NodeList", "metadata": {"continue": "abc"}, "items": null}"#);
        assert_eq!(
            page.expect("a list"),
            Page {
                nodes: Vec::new(),
                next: Some("abc".to_owned())
            }
        );
    }

    #[test]
    fn anything_else_is_not_a_cluster_without_nodes() {
        for body in [&b"{}"[..], b"ok", b"{\"kind\": \"Status\", \"items\": []}", b"[]"] {
            assert!(read(body).is_err(), "{body:?}");
        }
    }
}
