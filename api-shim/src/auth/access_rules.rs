//! Access rules of application credentials: what a token made with one may be used for. Keystone hands them over and
//! leaves it to each service to keep to them.
//!
//! In a rule's path `{anything}` and `*` stand for one segment and `**` for any text. The path of a request is its one
//! form (`/v1` in front, no slash at the end), and a slash at the end of a rule does not matter. All else is literal; in
//! Keystone's middleware a dot in a rule stands for any character.

use serde::Deserialize;

/// One thing that is allowed.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
pub struct AccessRule {
    service: String,
    method: String,
    path: String,
}

impl AccessRule {
    /// Whether it allows this request to the service of type `service`.
    pub fn allows(&self, service: &str, method: &str, path: &str) -> bool {
        self.service == service && self.method == method && matches(path, &self.path)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Literal(u8),
    Segment,
    Anything,
}

fn parts(pattern: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = pattern.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (part, length) = match first {
            b'*' if after.first() == Some(&b'*') => (Part::Anything, 2),
            b'*' => (Part::Segment, 1),
            b'{' => match after.iter().position(|byte| *byte == b'}') {
                Some(end) => (Part::Segment, end + 2),
                None => (Part::Literal(b'{'), 1),
            },
            byte => (Part::Literal(*byte), 1),
        };
        parts.push(part);
        rest = rest.get(length..).unwrap_or_default();
    }
    parts
}

/// In time proportional to the two lengths: rules are written by users.
fn matches(path: &str, pattern: &str) -> bool {
    let path = path.as_bytes();
    // Which ends of the path's beginnings the parts so far can reach.
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for part in parts(pattern.trim_end_matches('/')) {
        let mut next = vec![false; path.len() + 1];
        let mut open = false;
        for (index, was) in reached.iter().enumerate() {
            let byte = path.get(index).copied();
            match part {
                Part::Anything => {
                    open |= was;
                    next[index] = open;
                    continue;
                }
                Part::Segment => open = (open || *was) && byte.is_some_and(|byte| byte != b'/'),
                Part::Literal(wanted) => open = *was && byte == Some(wanted),
            }
            if let Some(after) = next.get_mut(index + 1) {
                *after = open;
            }
        }
        reached = next;
    }
    reached.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rules_path_is_literal_but_for_its_wildcards() {
        for (pattern, path, is_match) in [
            ("/v1/clusters", "/v1/clusters", true),
            ("/v1/clusters/", "/v1/clusters", true),
            ("/v1/clusters", "/v1/clusters/x", false),
            ("/v1/cluster", "/v1/clusters", false),
            ("/v1/clusters/*", "/v1/clusters/x", true),
            ("/v1/clusters/*", "/v1/clusters", false),
            ("/v1/clusters/*", "/v1/clusters/x/nodegroups", false),
            ("/v1/clusters/{id}/nodegroups", "/v1/clusters/x/nodegroups", true),
            ("/v1/clusters/{id}/nodegroups", "/v1/clusters//nodegroups", false),
            ("/v1/clusters/{id", "/v1/clusters/x", false),
            ("/v1/clusters/**", "/v1/clusters/x/nodegroups/y", true),
            ("/v1/**/y", "/v1/clusters/x/nodegroups/y", true),
            ("/v1/**/z", "/v1/clusters/x/nodegroups/y", false),
            ("**", "/v1/anything", true),
            ("/v1/c*s", "/v1/clusters", true),
            ("/v1.clusters", "/v1/clusters", false),
            ("", "/v1/clusters", false),
        ] {
            assert_eq!(matches(path, pattern), is_match, "{pattern} {path}");
        }
    }

    #[test]
    fn a_rule_of_many_wildcards_is_decided_at_once() {
        assert!(!matches(&"/a".repeat(2000), &format!("{}x", "**a".repeat(80))));
    }

    #[test]
    fn service_and_method_must_be_the_rules() {
        let rule: AccessRule = serde_json::from_value(serde_json::json!(
            {"id": "1", "service": "container-infra", "method": "GET", "path": "/v1/clusters"}
        ))
        .unwrap();
        assert!(rule.allows("container-infra", "GET", "/v1/clusters"));
        assert!(!rule.allows("compute", "GET", "/v1/clusters"));
        assert!(!rule.allows("container-infra", "POST", "/v1/clusters"));
    }
}
