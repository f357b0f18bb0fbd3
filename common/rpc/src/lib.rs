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
//! | `envelope`, `compression`, `request`, `reply`, `failure` | bytes to meaning and back, pure |
//! | `message`, `transport`, `delivery` | the seam: publish, listen, settle |
//! | `rabbit`, `fake` | its two sides: RabbitMQ, and one process |
//! | `client`, `call`, `server`, `monitor`, `gone` | asking and answering |
//! | `queue_names` | what makes a process's queues unique |
//! | `dead_letters` | what was set aside, for operators |
//! | `notification` | telling other services |
//!
//! **Guaranteed.** A cast that returned is in a queue, confirmed by the broker, and is delivered until somebody
//! acknowledges it. A listener outlives the loss of the broker. No bytes from the wire can panic a program:
//! what cannot be read is set aside with its reason.
//!
//! **Not guaranteed.** Exactly-once: a message may arrive twice and carries a unique id by which the journal
//! tells. A confirmation outlives a restart of the broker only in a durable queue (`rabbit_quorum_queue`).
//! Order between several conductors.

mod call;
mod client;
mod compression;
mod dead_letters;
mod delivery;
mod envelope;
mod failure;
mod fake;
mod gone;
mod message;
mod monitor;
mod notification;
mod options;
mod queue_names;
mod rabbit;
mod reply;
mod request;
mod server;
mod settings;
mod target;
pub mod topology;
mod transport;
mod url;

use std::sync::Arc;

use magnum_config::Settings;

pub use client::{CallError, CallOptions, RpcClient};
pub use compression::CompressionError;
pub use dead_letters::{DeadLetter, Subject};
pub use delivery::Delivery;
pub use envelope::{DecodeError, decode, encode};
pub use failure::RemoteFailure;
pub use gone::GoneCallers;
pub use message::{OutgoingMessage, RawMessage, WireFormat};
pub use monitor::{CallMonitor, alive};
pub use notification::{Notification, NotificationFormat, Priority, Retries, notification_queues, notify};
pub use options::{Addressing, LoginMethod, MAX_BODY_BYTES, OptionsError, RabbitOptions, RpcOptions};
pub use rabbit::dead_letters::{DeadLetterError, DeadLetters, Lent};
pub use reply::{ReplyContent, WireReply};
pub use request::{Malformed, ReplyAddress, Request, WireRequest};
pub use server::{Incoming, RpcServer, reply};
pub use target::{Names, Route, Target, direct, new_server_id};
pub use topology::{Argument, Declaration, Exchange, ExchangeKind, Queue};
pub use transport::{
    ConsumerControl, Health, ListenSpec, Listener, PublishError, QueueInspection, Transport, TransportError,
};
pub use url::{BrokerHost, RabbitUrl, TransportUrl, UrlError};

/// A transport as the settings say. Reads TLS files; the network is first used by a publish or a listener, so
/// that a program starts while its broker is down.
///
/// `connection_name` is what an operator sees in the broker's list of connections.
///
/// # Errors
/// The options cannot be used together, or a TLS file cannot be read. An unreachable broker is no error.
pub async fn connect(
    settings: &Settings,
    connection_name: &str,
) -> Result<Arc<dyn Transport>, TransportError> {
    let options = RpcOptions::try_from(settings)?;
    let has_broker = matches!(options.url, TransportUrl::Rabbit(_));
    let is_durable = options.rabbit.durable_topics();
    let transport = connect_with(options, connection_name)?;
    if has_broker && !is_durable {
        tracing::warn!(
            "the queue of requests is not durable: requests that the broker has confirmed are lost when it \
             restarts; set [oslo_messaging_rabbit] rabbit_quorum_queue = true on all peers"
        );
    }
    Ok(transport)
}

/// What the broker has of these declarations, by name: for a person who wants to know before a service is started.
/// Connects, logs in, and changes nothing. Empty for `fake://`, which has no broker.
///
/// # Errors
/// When the options cannot be used, or [`TransportError::Unreachable`]: no host lets us in.
pub async fn inspect(
    options: &RpcOptions,
    connection_name: &str,
    declarations: &[Declaration],
) -> Result<Vec<(String, QueueInspection)>, TransportError> {
    match &options.url {
        TransportUrl::Fake(_) => Ok(Vec::new()),
        TransportUrl::Rabbit(url) => {
            rabbit::inspect(url.clone(), &options.rabbit, connection_name, declarations).await
        }
    }
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
        TransportUrl::Fake(name) => Ok(fake::connect(&name, options.rabbit)),
        TransportUrl::Rabbit(url) => {
            options.rabbit.check()?;
            rabbit::connect(url, options.rabbit, connection_name)
        }
    }
}
