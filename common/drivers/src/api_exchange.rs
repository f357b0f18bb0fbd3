//! A call of a driver's own API between `magnum-api` and a conductor: the arguments and the answer of the method
//! [`METHOD`], which is ours and which no Python conductor knows.
//!
//! What may go wrong is part of the answer, as a word: Magnum's exception classes, which other methods raise, have none
//! for a time limit, for a service that is away and for what a driver cannot do.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::api_route::ApiMethod;

/// The method's name.
pub const METHOD: &str = "cluster_driver_call";

/// Most arguments of a call's query.
pub const MOST_ARGUMENTS: usize = 32;
/// Most bytes of a call's query, names and values together.
pub const LONGEST_QUERY: usize = 4096;
/// Most bytes of a call's body, as JSON.
pub const LARGEST_BODY: usize = 64 * 1024;
/// Most bytes of a reply's body, as JSON.
pub const LARGEST_REPLY: usize = 256 * 1024;

/// The path of the one call that is no user's and no route of a manifest, whose paths have no such sign: the service asks a
/// driver with the capability `node_names` for the names of the nodes of a group, whose uuid is the query's
/// [`NODE_GROUP`]. The reply's body is a [`NodeNames`].
pub const NODES: &str = "@nodes";
/// The argument of [`NODES`].
pub const NODE_GROUP: &str = "node_group";

/// The nodes of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeNames {
    /// Of each node every name by which `nodes_to_remove` may call it: an id, an address.
    pub nodes: Vec<Vec<String>>,
}

impl NodeNames {
    /// Those of `names` that no node has, in their order.
    pub fn unknown<'n>(&self, names: &'n [String]) -> Vec<&'n str> {
        let known = |name: &String| self.nodes.iter().flatten().any(|one| one == name);
        names
            .iter()
            .filter(|name| !known(name))
            .map(String::as_str)
            .collect()
    }
}

/// Time for the answer on its way back, and for the end of a program that was stopped.
const SLACK: Duration = Duration::from_secs(5);

/// A call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiQuestion {
    /// The cluster's uuid.
    pub uuid: String,
    /// The path below `driver/`.
    pub path: String,
    /// The method.
    pub method: ApiMethod,
    /// The policy rule that the caller has passed. A conductor whose manifest names another one refuses the call.
    pub policy: String,
    /// Names and values of the query, decoded, in their order.
    pub query: Vec<(String, String)>,
    /// An object, or null where there is no body.
    pub body: Value,
    /// How long the driver may take, in milliseconds.
    pub timeout_ms: u64,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiAnswer {
    /// The driver has replied.
    Replied {
        /// One of the statuses that a driver may give.
        status: u16,
        /// Its JSON; null for a status without a body; a text for a refusal.
        body: Value,
    },
    /// It has not.
    Refused {
        /// Why.
        because: ApiRefusal,
        /// The same in words, for the caller.
        reason: String,
    },
}

/// Why a call has no reply of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiRefusal {
    /// There is no such cluster, or no such route at its driver.
    NotFound,
    /// Something else works on the cluster, or the call was made before.
    Conflict,
    /// The driver cannot do it.
    NotSupported,
    /// Something that is needed is away, or has no room at the moment.
    Unavailable,
    /// The driver did not reply in time, and was stopped.
    TimedOut,
    /// The driver failed.
    Failed,
}

impl ApiRefusal {
    /// Every reason.
    pub const ALL: &[Self] = &[
        Self::NotFound,
        Self::Conflict,
        Self::NotSupported,
        Self::Unavailable,
        Self::TimedOut,
        Self::Failed,
    ];

    /// The word in messages, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::NotSupported => "not_supported",
            Self::Unavailable => "unavailable",
            Self::TimedOut => "timed_out",
            Self::Failed => "failed",
        }
    }
}

/// How long a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTimes {
    /// The driver.
    pub driver: Duration,
    /// The whole exchange, which whoever asks waits for.
    pub patience: Duration,
}

impl CallTimes {
    /// By `[drivers] custom_api_timeout` and `[DEFAULT] rpc_response_timeout`, which bounds the whole.
    pub fn new(custom_api_timeout: Duration, response_timeout: Duration) -> Self {
        let patience = custom_api_timeout.saturating_add(SLACK).min(response_timeout);
        Self {
            driver: patience
                .saturating_sub(SLACK)
                .max(patience / 2)
                .min(custom_api_timeout),
            patience,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_known_by_any_name_of_any_node() {
        let known = NodeNames {
            nodes: vec![vec!["a".into(), "10.0.0.1".into()], vec!["b".into()]],
        };
        let names = ["b", "x", "10.0.0.1", "a", ""].map(str::to_owned);
        assert_eq!(known.unknown(&names), ["x", ""]);
        assert!(known.unknown(&[]).is_empty());
    }

    #[test]
    fn a_driver_has_its_time_and_less_than_whoever_waits() {
        let times = |option, response| {
            let times = CallTimes::new(Duration::from_secs(option), Duration::from_secs(response));
            (times.driver.as_secs(), times.patience.as_secs())
        };
        assert_eq!(times(30, 60), (30, 35));
        assert_eq!(times(60, 60), (55, 60));
        assert_eq!(times(300, 60), (55, 60));
        assert_eq!(times(1, 4), (1, 4));
        let short = CallTimes::new(Duration::from_secs(30), Duration::from_millis(100));
        assert_eq!(short.driver, Duration::from_millis(50));
    }

    #[test]
    fn answers_are_words_on_the_wire() {
        let refused = ApiAnswer::Refused {
            because: ApiRefusal::TimedOut,
            reason: "slow".into(),
        };
        let wire = json!({"refused": {"because": "timed_out", "reason": "slow"}});
        assert_eq!(serde_json::to_value(&refused).unwrap(), wire);
        let replied = json!({"replied": {"status": 200, "body": {"a": 1}}});
        assert_eq!(
            serde_json::from_value::<ApiAnswer>(replied).unwrap(),
            ApiAnswer::Replied {
                status: 200,
                body: json!({"a": 1})
            }
        );
        for refusal in ApiRefusal::ALL {
            assert_eq!(serde_json::to_value(refusal).unwrap(), refusal.as_str());
        }
    }
}
