//! The small records beside clusters: quotas, services, key pairs, federations.

use crate::secret::Secret;

use super::{StringMap, Timestamp};

/// A project's limit of one resource.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are Magnum's")]
pub struct Quota {
    pub id: Option<i32>,
    pub project_id: Option<String>,
    pub resource: Option<String>,
    pub hard_limit: i32,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
}

/// One host's service and when it was last seen.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are Magnum's")]
pub struct MagnumService {
    pub id: Option<i32>,
    pub host: Option<String>,
    pub binary: Option<String>,
    pub disabled: bool,
    pub disabled_reason: Option<String>,
    pub last_seen_up: Option<Timestamp>,
    pub forced_down: bool,
    pub report_count: i32,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
}

impl MagnumService {
    /// Whether the service counts as up at `now`: not forced down, and seen (or else touched, or else made)
    /// within `down_after` seconds. `disabled` plays no part.
    pub fn is_up(&self, now: Timestamp, down_after: i64) -> bool {
        if self.forced_down {
            return false;
        }
        self.last_seen_up
            .or(self.updated_at)
            .or(self.created_at)
            .is_some_and(|seen| (now - seen).num_seconds().abs() <= down_after)
    }
}

/// A certificate with its key, as the `x509keypair` store keeps it.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are Magnum's")]
pub struct X509KeyPair {
    pub id: Option<i32>,
    pub uuid: Option<String>,
    pub certificate: Option<String>,
    pub private_key: Option<Secret>,
    pub intermediates: Option<String>,
    pub private_key_passphrase: Option<Secret>,
    pub project_id: Option<String>,
    pub user_id: Option<String>,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
}

/// A federation of clusters: rows exist, the feature does not (REST answers 501).
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are Magnum's")]
pub struct Federation {
    pub id: Option<i32>,
    pub uuid: Option<String>,
    pub name: Option<String>,
    pub project_id: Option<String>,
    pub hostcluster_id: Option<String>,
    pub member_ids: Vec<String>,
    pub status: Option<String>,
    pub status_reason: Option<String>,
    pub properties: StringMap,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(last_seen_up: Option<&str>, forced_down: bool) -> MagnumService {
        MagnumService {
            id: None,
            host: None,
            binary: None,
            disabled: true,
            disabled_reason: None,
            last_seen_up: last_seen_up.map(at),
            forced_down,
            report_count: 0,
            created_at: None,
            updated_at: None,
        }
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_from_str(text, "%Y-%m-%d %H:%M:%S").unwrap()
    }

    #[test]
    fn a_service_is_up_while_it_was_seen_lately_and_is_not_forced_down() {
        let now = at("2026-01-02 03:10:00");
        assert!(seen(Some("2026-01-02 03:07:00"), false).is_up(now, 180));
        assert!(!seen(Some("2026-01-02 03:06:59"), false).is_up(now, 180));
        assert!(!seen(Some("2026-01-02 03:10:00"), true).is_up(now, 180));
        assert!(!seen(None, false).is_up(now, 180));
    }
}
