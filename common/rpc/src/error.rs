//! Why a message was not published, and why there is no transport.

use std::path::PathBuf;

use super::options::OptionsError;
use magnum_config::key_file::KeyFileError;

/// Why the broker did not take a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// No queue is bound for it: nobody listens, or nobody has ever listened.
    #[error(
        "no queue takes the message (exchange `{exchange}`, key `{routing_key}`): is a conductor running?"
    )]
    Unroutable {
        /// Exchange.
        exchange: String,
        /// Routing key.
        routing_key: String,
    },
    /// The broker refused to store it.
    #[error("the broker refused to store the message")]
    Nacked,
    /// We may not write there, or not make what the message needs.
    #[error("the broker forbids it: {0}")]
    Forbidden(String),
    /// No confirmation in time. It may or may not have been stored.
    #[error("the broker did not confirm the message in time")]
    TimedOut,
    /// No connection. It may or may not have been stored.
    #[error("no connection to the broker: {0}")]
    Disconnected(String),
    /// Over the size cap.
    #[error("the message has {size} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Size of the body, in bytes.
        size: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// It could not be written.
    #[error("the message cannot be encoded: {0}")]
    Encode(String),
}

impl PublishError {
    /// Whether sending the same message again may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unroutable { .. } | Self::Nacked | Self::TimedOut | Self::Disconnected(_) => true,
            Self::TooLarge { .. } | Self::Forbidden(_) | Self::Encode(_) => false,
        }
    }

    /// Whether it is not known if the message was stored: it may still be carried out.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::TimedOut | Self::Disconnected(_))
    }
}

/// Why a transport cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// Settings.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// TLS files.
    #[error("[oslo_messaging_rabbit] {option}: {reason}")]
    Tls {
        /// The option whose file is at fault.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The keys of messages.
    #[error("[conductor] message_key_file: {0}")]
    Keys(#[from] KeyFileError),
    /// No name for a queue of this process.
    #[error("[oslo_concurrency] lock_path: {}: {reason}", folder.display())]
    QueueNames {
        /// The directory.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No runtime in which the sockets of connections are closed.
    #[error("no runtime for connections to the broker: {0}; raise the limits of processes and open files")]
    NoRuntime(String),
    /// It was closed.
    #[error("the transport is closed")]
    Closed,
    /// No host of the list can be used: one reason for each.
    #[error("no connection to the broker: {0}")]
    Unreachable(String),
}
