//! What messaging needs to know, gathered from the settings and the URL's overrides.

use std::path::PathBuf;
use std::time::Duration;

use super::target::Names;
use super::url::{BrokerHost, TransportUrl, UrlError};

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
    /// The URL.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A login method that no deployment uses.
    #[error(
        "[oslo_messaging_rabbit] rabbit_login_method: RABBIT-CR-DEMO is not supported; use PLAIN or AMQPLAIN"
    )]
    LoginMethod,
    /// A query parameter that is no option.
    #[error("transport_url: `{0}` is not an [oslo_messaging_rabbit] option")]
    UnknownOverride(String),
    /// A query parameter whose value does not fit the option.
    #[error("transport_url: `{name}` expects {expected}, not `{value}`")]
    BadOverride {
        /// Option.
        name: String,
        /// Kind of value.
        expected: &'static str,
        /// What was written.
        value: String,
    },
}

/// Everything that a transport, a client and a server need.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcOptions {
    /// Where.
    pub url: TransportUrl,
    /// `[oslo_messaging_rabbit]`, overrides applied.
    pub rabbit: RabbitOptions,
    /// Names and time limits.
    pub addressing: Addressing,
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
    pub fn for_url(url: &str) -> Result<Self, OptionsError> {
        Self {
            url: TransportUrl::parse(url)?,
            rabbit: RabbitOptions::default(),
            addressing: Addressing::default(),
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

/// How we log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginMethod {
    /// User and password.
    Plain,
    /// The same in RabbitMQ's own encoding; oslo's default.
    AmqPlain,
    /// By client certificate.
    External,
}

/// The options of `[oslo_messaging_rabbit]` that have an effect here. Names are the section's.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    missing_docs,
    reason = "the names are oslo.messaging's; docs/configuration.md explains each"
)]
pub struct RabbitOptions {
    pub amqp_durable_queues: bool,
    pub amqp_auto_delete: bool,
    pub rabbit_quorum_queue: bool,
    pub rabbit_transient_quorum_queue: bool,
    pub rabbit_quorum_delivery_limit: i64,
    pub rabbit_quorum_max_memory_length: i64,
    pub rabbit_quorum_max_memory_bytes: i64,
    pub rabbit_ha_queues: bool,
    pub rabbit_transient_queues_ttl: Duration,
    pub rabbit_qos_prefetch_count: u16,
    pub enable_cancel_on_failover: bool,
    pub heartbeat_timeout_threshold: Duration,
    pub rabbit_retry_interval: Duration,
    pub rabbit_retry_backoff: Duration,
    pub rabbit_interval_max: Duration,
    pub kombu_reconnect_delay: Duration,
    pub rabbit_login_method: LoginMethod,
    pub ssl: bool,
    pub ssl_ca_file: Option<PathBuf>,
    pub ssl_cert_file: Option<PathBuf>,
    pub ssl_key_file: Option<PathBuf>,
}

impl Default for RabbitOptions {
    fn default() -> Self {
        Self {
            amqp_durable_queues: false,
            amqp_auto_delete: false,
            rabbit_quorum_queue: false,
            rabbit_transient_quorum_queue: false,
            rabbit_quorum_delivery_limit: 0,
            rabbit_quorum_max_memory_length: 0,
            rabbit_quorum_max_memory_bytes: 0,
            rabbit_ha_queues: false,
            rabbit_transient_queues_ttl: Duration::from_secs(1800),
            rabbit_qos_prefetch_count: 0,
            enable_cancel_on_failover: false,
            heartbeat_timeout_threshold: Duration::from_secs(60),
            rabbit_retry_interval: Duration::from_secs(1),
            rabbit_retry_backoff: Duration::from_secs(2),
            rabbit_interval_max: Duration::from_secs(30),
            kombu_reconnect_delay: Duration::from_secs(1),
            rabbit_login_method: LoginMethod::AmqPlain,
            ssl: false,
            ssl_ca_file: None,
            ssl_cert_file: None,
            ssl_key_file: None,
        }
    }
}

impl RabbitOptions {
    /// Whether topic queues and their exchange survive a broker restart.
    pub fn durable_topics(&self) -> bool {
        self.rabbit_quorum_queue || self.amqp_durable_queues
    }

    /// Sets one option from the URL's query.
    ///
    /// Options that exist but have no effect here (pool sizes and the like) are taken without a word: the same
    /// URL serves Python programs too.
    fn apply(&mut self, name: &str, value: &str) -> Result<(), OptionsError> {
        let bad = |expected| OptionsError::BadOverride {
            name: name.to_owned(),
            expected,
            value: value.to_owned(),
        };
        let flag = || parse_bool(value).ok_or_else(|| bad("a boolean"));
        let number = || value.parse::<i64>().map_err(|_| bad("a whole number"));
        let seconds = || {
            let parsed = value.parse::<f64>().ok();
            parsed
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .ok_or_else(|| bad("a number of seconds"))
        };
        let path = || (!value.is_empty()).then(|| PathBuf::from(value));
        match name.replace('-', "_").as_str() {
            "amqp_durable_queues" | "rabbit_durable_queues" => self.amqp_durable_queues = flag()?,
            "amqp_auto_delete" => self.amqp_auto_delete = flag()?,
            "rabbit_quorum_queue" => self.rabbit_quorum_queue = flag()?,
            "rabbit_transient_quorum_queue" => self.rabbit_transient_quorum_queue = flag()?,
            "rabbit_quorum_delivery_limit" => self.rabbit_quorum_delivery_limit = number()?,
            "rabbit_quorum_max_memory_length" => self.rabbit_quorum_max_memory_length = number()?,
            "rabbit_quorum_max_memory_bytes" => self.rabbit_quorum_max_memory_bytes = number()?,
            "rabbit_ha_queues" => self.rabbit_ha_queues = flag()?,
            "rabbit_transient_queues_ttl" => self.rabbit_transient_queues_ttl = seconds()?,
            "rabbit_qos_prefetch_count" => {
                self.rabbit_qos_prefetch_count = value.parse().map_err(|_| bad("a number up to 65535"))?;
            }
            "enable_cancel_on_failover" => self.enable_cancel_on_failover = flag()?,
            "heartbeat_timeout_threshold" => self.heartbeat_timeout_threshold = seconds()?,
            "rabbit_retry_interval" => self.rabbit_retry_interval = seconds()?,
            "rabbit_retry_backoff" => self.rabbit_retry_backoff = seconds()?,
            "rabbit_interval_max" => self.rabbit_interval_max = seconds()?,
            "kombu_reconnect_delay" => self.kombu_reconnect_delay = seconds()?,
            "rabbit_login_method" => {
                self.rabbit_login_method =
                    LoginMethod::parse(value).ok_or_else(|| bad("PLAIN, AMQPLAIN or EXTERNAL"))?;
            }
            "ssl" | "rabbit_use_ssl" => self.ssl = flag()?,
            "ssl_ca_file" | "kombu_ssl_ca_certs" => self.ssl_ca_file = path(),
            "ssl_cert_file" | "kombu_ssl_certfile" => self.ssl_cert_file = path(),
            "ssl_key_file" | "kombu_ssl_keyfile" => self.ssl_key_file = path(),
            known if WITHOUT_EFFECT.contains(&known) => {}
            _ => return Err(OptionsError::UnknownOverride(name.to_owned())),
        }
        Ok(())
    }
}

/// Options of the section that a Python program reads and we have no use for.
const WITHOUT_EFFECT: &[&str] = &[
    "conn_pool_min_size",
    "conn_pool_ttl",
    "direct_mandatory_flag",
    "heartbeat_in_pthread",
    "heartbeat_rate",
    "hostname",
    "kombu_compression",
    "kombu_failover_strategy",
    "kombu_missing_consumer_retry_timeout",
    "kombu_reconnect_splay",
    "processname",
    "rabbit_stream_fanout",
    "rpc_conn_pool_size",
    "ssl_enforce_fips_mode",
    "ssl_enforce_hostname_verification",
    "ssl_version",
    "use_queue_manager",
];

impl LoginMethod {
    /// Reads `rabbit_login_method`. The demonstration mechanism is refused: nobody runs it.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_uppercase().as_str() {
            "PLAIN" => Some(Self::Plain),
            "AMQPLAIN" => Some(Self::AmqPlain),
            "EXTERNAL" => Some(Self::External),
            _ => None,
        }
    }
}

fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" | "on" | "y" | "yes" => Some(true),
        "0" | "f" | "false" | "off" | "n" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_parameters_override_options() {
        let options = RpcOptions::for_url(
            "rabbit://u:p@h/?ssl=1&heartbeat_timeout_threshold=5&rabbit-quorum-queue=yes&rpc_conn_pool_size=3",
        )
        .unwrap()
        .rabbit;
        assert!(options.ssl && options.rabbit_quorum_queue && options.durable_topics());
        assert_eq!(options.heartbeat_timeout_threshold, Duration::from_secs(5));
    }

    #[test]
    fn unknown_and_mistyped_parameters_are_named() {
        for (query, needle) in [
            ("color=red", "`color` is not"),
            ("ssl=maybe", "`ssl` expects a boolean, not `maybe`"),
            ("rabbit_qos_prefetch_count=70000", "up to 65535"),
            ("rabbit_retry_interval=-1", "number of seconds"),
            (
                "rabbit_login_method=RABBIT-CR-DEMO",
                "PLAIN, AMQPLAIN or EXTERNAL",
            ),
        ] {
            let text = RpcOptions::for_url(&format!("rabbit://u:p@h/?{query}"))
                .unwrap_err()
                .to_string();
            assert!(text.contains(needle), "{text}");
        }
    }
}
