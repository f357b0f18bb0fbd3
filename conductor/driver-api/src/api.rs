//! A call of a driver's own API: what a user asks of the driver of one cluster, outside of any operation's steps.

use std::time::Duration;

use magnum_common::context::RequestContext;
use magnum_common::ids::OperationId;
use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup};
use magnum_drivers::ApiMethod;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// A call for one of the routes that the driver's manifest declares; the caller has passed its policy rule.
#[derive(Clone)]
pub struct ApiCall<'a> {
    /// The route's path.
    pub path: &'a str,
    /// How it is asked.
    pub method: ApiMethod,
    /// Names and values of the query, decoded, in their order: the user's words.
    pub query: &'a [(String, String)],
    /// The user's body, if the request has one.
    pub body: Option<&'a Map<String, Value>>,
    /// The cluster, as its row is.
    pub cluster: &'a Cluster,
    /// Its node groups.
    pub node_groups: &'a [NodeGroup],
    /// The template it was made from.
    pub template: &'a ClusterTemplate,
    /// Who asked. Holds a token: hand it on only to what must act for the user.
    pub context: &'a RequestContext,
    /// The entry in the journal that keeps other work off the cluster meanwhile; `None` for a route that only reads,
    /// which may run beside anything.
    pub operation: Option<&'a OperationId>,
    /// How long the call may take. Whoever calls keeps it, by `cancel`.
    pub time_left: Duration,
    /// When cancelled, the driver stops at once and returns [`crate::DriverError::Cancelled`].
    pub cancel: CancellationToken,
}

/// What a driver replies to a call of its own API. [`crate::limits::accept_api`] says what is taken.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiReply {
    /// How it went.
    pub status: ApiStatus,
    /// JSON; null for [`ApiStatus::NoContent`], a text for the user where the call is refused.
    pub body: Value,
}

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident $code:literal;)*) => {
        /// The statuses that a driver may reply with. What is the service's own to say (401, 403, 5xx) is not among
        /// them: a driver's failure is a [`crate::DriverError`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ApiStatus {
            $($(#[$doc])* $name,)*
        }

        impl ApiStatus {
            /// Every status.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The number in HTTP and in programs' answers.
            pub const fn code(self) -> u16 {
                match self {
                    $(Self::$name => $code,)*
                }
            }
        }
    };
}

statuses! {
    /// Here is the answer.
    Ok 200;
    /// It goes on after the reply.
    Accepted 202;
    /// Done, and nothing to say.
    NoContent 204;
    /// The request makes no sense.
    BadRequest 400;
    /// What the request names is not there.
    NotFound 404;
    /// The cluster's state does not allow it.
    Conflict 409;
    /// The request makes sense and cannot be done.
    Unprocessable 422;
}

impl ApiStatus {
    /// The status of this number; `None` for one that a driver may not reply with.
    pub fn of(code: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| status.code() == code)
    }

    /// Whether the driver refuses the call.
    pub const fn is_refusal(self) -> bool {
        self.code() >= 400
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_known_by_its_number_and_others_are_none() {
        for status in ApiStatus::ALL {
            assert_eq!(ApiStatus::of(status.code()), Some(*status));
        }
        for code in [0, 100, 201, 301, 401, 403, 500, 503] {
            assert_eq!(ApiStatus::of(code), None);
        }
    }
}
