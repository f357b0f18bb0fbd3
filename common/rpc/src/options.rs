//! What messaging needs to know, gathered from the settings and the URL's overrides.

mod rabbit;

use std::time::Duration;

use super::authentication::Authentication;
use super::target::Names;
use super::url::{BrokerHost, TransportUrl, UrlError};
use super::wire_format::WireFormat;

pub use rabbit::{LoginMethod, RabbitOptions};

/// Bodies larger than this are refused in both directions, also after decompression.
///
/// A request with a large catalog and labels is some tens of KiB; the largest objects on this wire are lists
/// of clusters. RabbitMQ 4 itself refuses more than 16 MiB.
pub const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// Deliveries a server holds unacknowledged when `rabbit_qos_prefetch_count` is 0.
///
/// oslo.messaging sends no limit then, because it acknowledges at once. We acknowledge late, so no limit would
/// mean that one conductor holds the whole backlog, in memory and away from the others. A limit is visible to
/// nobody but the broker.
pub const DEFAULT_PREFETCH: u16 = 256;

/// Why the options cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The URL is malformed.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A login method that no deployment uses.
    #[error(
        "[oslo_messaging_rabbit] rabbit_login_method: RABBIT-CR-DEMO is not supported; use PLAIN or AMQPLAIN"
    )]
    LoginMethod,
    /// Options that do not go together.
    #[error("[oslo_messaging_rabbit] {0}")]
    Together(&'static str),
    /// A query parameter that is no option.
    #[error("transport_url: `{0}` is not an [oslo_messaging_rabbit] option")]
    UnknownOverride(String),
    /// A query parameter whose value does not fit the option.
    #[error("transport_url: `{name}` expects {expected}, not `{value}`")]
    BadOverride {
        /// Name of the option.
        name: String,
        /// The kind of value that it takes.
        expected: String,
        /// The value.
        value: String,
    },
}

/// Everything that a transport, a client and a server need.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcOptions {
    /// The broker, or a name within the process.
    pub url: TransportUrl,
    /// `[oslo_messaging_rabbit]`, overrides applied.
    pub rabbit: RabbitOptions,
    /// Names and time limits.
    pub addressing: Addressing,
    /// Off, unless [`super::connect`] has read its keys.
    pub authentication: Authentication,
}

/// Names and time limits of a client or a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Addressing {
    /// Exchange and topic.
    pub names: Names,
    /// `[DEFAULT] rpc_response_timeout`: how long a call waits.
    pub response_timeout: Duration,
    /// How long a publish may take, retries included.
    pub publish_timeout: Duration,
    /// Where undecodable requests go; none = they are rejected and lost, as Python does.
    pub dead_letter_queue: Option<String>,
    /// `[conductor] rpc_content_type`: the format of requests. A reply has that of its request.
    pub format: WireFormat,
    /// `[DEFAULT] rpc_ping_enabled`: a server answers `oslo_rpc_server_ping`.
    pub ping_enabled: bool,
    /// A third of `[conductor] operation_lease`: the longest heartbeat of a server's connection. RabbitMQ closes one that is
    /// silent for more than two, and before the end of the third.
    pub heartbeat: Option<Duration>,
}

impl Default for Addressing {
    fn default() -> Self {
        Self {
            names: Names {
                exchange: "magnum".to_owned(),
                topic: "magnum-conductor".to_owned(),
            },
            response_timeout: Duration::from_secs(60),
            publish_timeout: Duration::from_secs(10),
            dead_letter_queue: Some("magnum-conductor.dead".to_owned()),
            format: WireFormat::Json,
            ping_enabled: false,
            heartbeat: Some(Duration::from_secs(30)),
        }
    }
}

impl From<&RpcOptions> for Addressing {
    fn from(options: &RpcOptions) -> Self {
        options.addressing.clone()
    }
}

impl RpcOptions {
    /// Options for `url` with every other one at its default.
    ///
    /// # Errors
    /// The URL is malformed, or has options in its query that cannot be used.
    pub fn for_url(url: &str) -> Result<Self, OptionsError> {
        Self {
            url: TransportUrl::parse(url)?,
            rabbit: RabbitOptions::default(),
            addressing: Addressing::default(),
            authentication: Authentication::off(),
        }
        .with_overrides()
    }

    /// Applies the URL's query parameters on top of the file's options.
    pub(super) fn with_overrides(mut self) -> Result<Self, OptionsError> {
        if let TransportUrl::Rabbit(url) = &self.url {
            for (name, value) in &url.overrides {
                self.rabbit.apply(name, value)?;
            }
        }
        Ok(self)
    }

    /// The broker nodes, when there are any.
    pub fn hosts(&self) -> &[BrokerHost] {
        match &self.url {
            TransportUrl::Rabbit(url) => &url.hosts,
            TransportUrl::Fake(_) => &[],
        }
    }
}
