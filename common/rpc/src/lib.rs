//! oslo.messaging's RPC, as Magnum's API and conductor use it.
//!
//! ```text
//!  RpcClient ── request ──▶ envelope ──▶ Transport ══▶ broker ══▶ Transport ──▶ envelope ──▶ RpcServer
//!      ▲                                                                                        │
//!      └──────────── call table ◀── envelope ◀── Transport ◀══ broker ◀══ Transport ◀── reply ──┘
//! ```
//!
//! | file | topic |
//! |---|---|
//! | `url`, `options` | where the broker is; what the settings say |
//! | `target`, `topology` | names and declarations, pure, shared with Python peers |
//! | `envelope`, `wire_format`, `compression`, `request`, `reply`, `failure` | bytes to meaning and back, pure |
//! | `message`, `transport`, `delivery`, `error` | the seam: publish, listen, settle |
//! | `rabbit`, `fake` | its two sides: RabbitMQ, and one process |
//! | `authentication` | messages that only holders of a key can make |
//! | `publish` | until the broker confirms it |
//! | `queue_names`, `gone` | what makes a process's queues unique; callers that are gone |
//! | `own_queues` | what replaces one that the broker serves no more |
//!
//! Here is what both programs need. Asking is the API's crate `magnum-rpc-client`; answering, and what is set aside,
//! the conductor's crate `magnum-rpc-server`.
//!
//! **Guaranteed.** A cast that returned is in a queue, confirmed by the broker, and is delivered until somebody
//! acknowledges it. A listener outlives the loss of the broker. No bytes from the wire can panic a program:
//! what cannot be read is set aside with its reason.
//!
//! **Not guaranteed.** Exactly-once: a message may arrive twice and carries a unique id by which the journal
//! tells. A confirmation outlives a restart of the broker only in a durable queue (`rabbit_quorum_queue`).
//! Order between several conductors.

mod authentication;
mod compression;
mod delivery;
mod envelope;
mod error;
mod failure;
mod fake;
mod gone;
mod message;
mod options;
mod own_queues;
mod publish;
mod queue_names;
pub mod rabbit;
mod reply;
mod request;
mod settings;
mod target;
pub mod topology;
mod transport;
mod url;
mod wire_format;

use std::sync::Arc;

use magnum_config::Settings;

pub use authentication::{Authentication, NotAuthentic, Origin, SIGNATURE, Seldom};
pub use compression::{CompressionError, decompress};
pub use delivery::Delivery;
pub use envelope::{DecodeError, decode, encode};
pub use error::{PublishError, TransportError};
pub use failure::RemoteFailure;
pub use gone::GoneCallers;
pub use message::{OutgoingMessage, RawMessage};
pub use options::{
    Addressing, DEFAULT_PREFETCH, LoginMethod, MAX_BODY_BYTES, OptionsError, RabbitOptions, RpcOptions,
};
pub use own_queues::OwnQueues;
pub use publish::{PublishDeadlines, publish_until};
pub use queue_names::UniqueName;
pub use reply::{ReplyContent, WireReply};
pub use request::{Malformed, ReplyAddress, Request, WireRequest};
pub use target::{Names, Route, Target, direct, new_server_id, reply_queue};
pub use topology::{Argument, Declaration, Exchange, ExchangeKind, Queue};
pub use transport::{ConsumerControl, Health, ListenSpec, Listener, QueueState, Transport};
pub use url::{BrokerHost, RabbitUrl, TransportUrl, UrlError};
pub use wire_format::WireFormat;

/// A transport as the settings say. Reads TLS files, and the keys of messages; the network is first used by a publish or a listener, so
/// that a program starts while its broker is down.
///
/// `connection_name` is what an operator sees in the broker's list of connections.
///
/// # Errors
/// The options cannot be used together, or a TLS or key file cannot be read. An unreachable broker is no error.
pub async fn connect(
    settings: &Settings,
    connection_name: &str,
) -> Result<Arc<dyn Transport>, TransportError> {
    let mut options = RpcOptions::try_from(settings)?;
    options.authentication = Authentication::load(&settings.conductor)?;
    let has_broker = matches!(options.url, TransportUrl::Rabbit(_));
    let is_durable = options.rabbit.durable_topics();
    if let Some(key) = options.authentication.key_ids().first() {
        let required = options.authentication.is_required();
        tracing::info!(key, required, "messages are signed");
    }
    let transport = connect_with(options, connection_name)?;
    if has_broker && !is_durable {
        tracing::warn!(
            "the queue of requests is not durable: requests that the broker has confirmed are lost when it \
             restarts; set [oslo_messaging_rabbit] rabbit_quorum_queue = true on all peers"
        );
    }
    Ok(transport)
}

/// A transport by its options. The network is first used by the first publish or listener.
///
/// `connection_name` is what an operator sees in the broker's list of connections.
///
/// # Errors
/// The options cannot be used together, or a TLS file cannot be read.
pub fn connect_with(
    options: RpcOptions,
    connection_name: &str,
) -> Result<Arc<dyn Transport>, TransportError> {
    match options.url {
        TransportUrl::Fake(name) => Ok(fake::connect(&name, options.rabbit, options.authentication)),
        TransportUrl::Rabbit(url) => {
            options.rabbit.check()?;
            rabbit::connect(url, options.rabbit, options.authentication, connection_name)
        }
    }
}
