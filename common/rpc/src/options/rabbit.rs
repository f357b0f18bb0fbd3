//! `[oslo_messaging_rabbit]`, with what the query of `transport_url` overrides.

use std::path::PathBuf;
use std::time::Duration;

use super::OptionsError;
use magnum_config::value::{Choice, Codec};
use magnum_config::{Compression, Compressor, FailoverStrategy, RabbitSection};

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
    reason = "the names are oslo.messaging's; docs/options.md explains each"
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
    pub rabbit_stream_fanout: bool,
    pub use_queue_manager: bool,
    pub hostname: String,
    pub processname: String,
    /// `[oslo_concurrency] lock_path`.
    pub lock_path: Option<PathBuf>,
    pub rabbit_qos_prefetch_count: u16,
    pub enable_cancel_on_failover: bool,
    pub heartbeat_timeout_threshold: Duration,
    pub rabbit_retry_interval: Duration,
    pub rabbit_retry_backoff: Duration,
    pub rabbit_interval_max: Duration,
    pub kombu_reconnect_delay: Duration,
    pub kombu_reconnect_splay: Duration,
    pub kombu_failover_strategy: FailoverStrategy,
    pub kombu_compression: Option<Compression>,
    pub kombu_missing_consumer_retry_timeout: Duration,
    pub direct_mandatory_flag: bool,
    pub rabbit_login_method: LoginMethod,
    pub ssl: bool,
    pub ssl_ca_file: Option<PathBuf>,
    pub ssl_cert_file: Option<PathBuf>,
    pub ssl_key_file: Option<PathBuf>,
}

impl Default for RabbitOptions {
    /// The section's own defaults.
    fn default() -> Self {
        Self::of(&RabbitSection::default(), LoginMethod::AmqPlain)
    }
}

impl RabbitOptions {
    /// The section, but for the login method, which need not be one of ours.
    pub(crate) fn of(section: &RabbitSection, login: LoginMethod) -> Self {
        Self {
            amqp_durable_queues: section.amqp_durable_queues,
            amqp_auto_delete: section.amqp_auto_delete,
            rabbit_quorum_queue: section.rabbit_quorum_queue,
            rabbit_transient_quorum_queue: section.rabbit_transient_quorum_queue,
            rabbit_quorum_delivery_limit: section.rabbit_quorum_delivery_limit.into(),
            rabbit_quorum_max_memory_length: section.rabbit_quorum_max_memory_length.into(),
            rabbit_quorum_max_memory_bytes: i64::try_from(section.rabbit_quorum_max_memory_bytes)
                .unwrap_or(i64::MAX),
            rabbit_ha_queues: section.rabbit_ha_queues,
            rabbit_transient_queues_ttl: Duration::from_secs(section.rabbit_transient_queues_ttl.into()),
            rabbit_stream_fanout: section.rabbit_stream_fanout,
            use_queue_manager: section.use_queue_manager,
            hostname: section.hostname.clone(),
            processname: section.processname.clone(),
            lock_path: None,
            rabbit_qos_prefetch_count: section.rabbit_qos_prefetch_count,
            enable_cancel_on_failover: section.enable_cancel_on_failover,
            heartbeat_timeout_threshold: Duration::from_secs(section.heartbeat_timeout_threshold.into()),
            rabbit_retry_interval: section.rabbit_retry_interval,
            rabbit_retry_backoff: section.rabbit_retry_backoff,
            rabbit_interval_max: section.rabbit_interval_max,
            kombu_reconnect_delay: section.kombu_reconnect_delay,
            kombu_reconnect_splay: section.kombu_reconnect_splay,
            kombu_failover_strategy: section.kombu_failover_strategy,
            kombu_compression: section.kombu_compression,
            kombu_missing_consumer_retry_timeout: section.kombu_missing_consumer_retry_timeout,
            direct_mandatory_flag: section.direct_mandatory_flag,
            rabbit_login_method: login,
            ssl: section.ssl,
            ssl_ca_file: section.ssl_ca_file.clone(),
            ssl_cert_file: section.ssl_cert_file.clone(),
            ssl_key_file: section.ssl_key_file.clone(),
        }
    }

    /// Whether topic queues and their exchange survive a broker restart.
    pub fn durable_topics(&self) -> bool {
        self.rabbit_quorum_queue || self.amqp_durable_queues
    }

    /// Whether the options can be used together. Called before the first connection.
    ///
    /// # Errors
    /// An option excludes or needs another one; the error names both.
    pub fn check(&self) -> Result<(), OptionsError> {
        match self.problems().next() {
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }

    /// Every reason why the options cannot be used together.
    pub fn problems(&self) -> impl Iterator<Item = OptionsError> {
        let quorum = self.rabbit_quorum_queue || self.rabbit_transient_quorum_queue;
        [
            (
                self.rabbit_ha_queues && quorum,
                "rabbit_ha_queues and quorum queues exclude each other: set rabbit_ha_queues = false",
            ),
            (
                self.amqp_auto_delete && self.rabbit_quorum_queue,
                "amqp_auto_delete and rabbit_quorum_queue exclude each other, since RabbitMQ has no quorum queue \
                 that deletes itself: set amqp_auto_delete = false",
            ),
            (
                self.rabbit_stream_fanout && !self.rabbit_transient_quorum_queue,
                "rabbit_stream_fanout needs rabbit_transient_quorum_queue = true",
            ),
            (
                self.rabbit_stream_fanout && self.rabbit_qos_prefetch_count == 0,
                "rabbit_stream_fanout needs rabbit_qos_prefetch_count, such as 100",
            ),
            (
                self.use_queue_manager && self.lock_path.is_none(),
                "use_queue_manager needs a directory for its lock files: set [oslo_concurrency] lock_path",
            ),
        ]
        .into_iter()
        .filter(|(is_wrong, _)| *is_wrong)
        .map(|(_, reason)| OptionsError::Together(reason))
    }

    /// Sets one option from the URL's query.
    ///
    /// Options that exist but have no effect here (pool sizes and the like) are taken without a word: the same
    /// URL serves Python programs too.
    pub(super) fn apply(&mut self, name: &str, value: &str) -> Result<(), OptionsError> {
        let bad = |expected: &str| OptionsError::BadOverride {
            name: name.to_owned(),
            expected: expected.to_owned(),
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
        let text = || {
            (!value.is_empty())
                .then(|| value.to_owned())
                .ok_or_else(|| bad("a name"))
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
            "rabbit_stream_fanout" => self.rabbit_stream_fanout = flag()?,
            "use_queue_manager" => self.use_queue_manager = flag()?,
            "hostname" => self.hostname = text()?,
            "processname" => self.processname = text()?,
            "rabbit_qos_prefetch_count" => {
                self.rabbit_qos_prefetch_count = value.parse().map_err(|_| bad("a number up to 65535"))?;
            }
            "enable_cancel_on_failover" => self.enable_cancel_on_failover = flag()?,
            "heartbeat_timeout_threshold" => self.heartbeat_timeout_threshold = seconds()?,
            "rabbit_retry_interval" => self.rabbit_retry_interval = seconds()?,
            "rabbit_retry_backoff" => self.rabbit_retry_backoff = seconds()?,
            "rabbit_interval_max" => self.rabbit_interval_max = seconds()?,
            "kombu_reconnect_delay" => self.kombu_reconnect_delay = seconds()?,
            "kombu_reconnect_splay" => self.kombu_reconnect_splay = seconds()?,
            "kombu_failover_strategy" => {
                self.kombu_failover_strategy =
                    Choice::parse(value).map_err(|_| bad("round-robin or shuffle"))?;
            }
            "kombu_compression" if value.is_empty() => self.kombu_compression = None,
            "kombu_compression" => {
                self.kombu_compression = Some(Compressor::parse(value).map_err(|_| bad("gzip or bzip2"))?);
            }
            "kombu_missing_consumer_retry_timeout" | "kombu_reconnect_timeout" => {
                self.kombu_missing_consumer_retry_timeout = seconds()?;
            }
            "direct_mandatory_flag" => self.direct_mandatory_flag = flag()?,
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
    "heartbeat_in_pthread",
    "heartbeat_rate",
    "rpc_conn_pool_size",
    "ssl_enforce_fips_mode",
    "ssl_enforce_hostname_verification",
    "ssl_version",
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
    use super::super::RpcOptions;
    use super::*;

    fn options(query: &str) -> Result<RabbitOptions, OptionsError> {
        RpcOptions::for_url(&format!("rabbit://u:p@h/?{query}")).map(|options| options.rabbit)
    }

    #[test]
    fn query_parameters_override_options() {
        let options = options(
            "ssl=1&heartbeat_timeout_threshold=5&rabbit-quorum-queue=yes&rpc_conn_pool_size=3&\
             kombu_compression=bzip2&kombu_failover_strategy=shuffle&direct_mandatory_flag=no&hostname=n1",
        )
        .unwrap();
        assert!(options.ssl && options.rabbit_quorum_queue && options.durable_topics());
        assert_eq!(options.heartbeat_timeout_threshold, Duration::from_secs(5));
        assert_eq!(options.kombu_compression, Some(Compression::Bzip2));
        assert_eq!(options.kombu_failover_strategy, FailoverStrategy::Shuffle);
        assert!(!options.direct_mandatory_flag);
        assert_eq!(options.hostname, "n1");
    }

    #[test]
    fn unknown_and_mistyped_parameters_are_named() {
        for (query, needle) in [
            ("color=red", "`color` is not"),
            ("ssl=maybe", "`ssl` expects a boolean, not `maybe`"),
            ("rabbit_qos_prefetch_count=70000", "up to 65535"),
            ("rabbit_retry_interval=-1", "number of seconds"),
            (
                "kombu_compression=bz2",
                "`kombu_compression` expects gzip or bzip2, not `bz2`",
            ),
            ("kombu_failover_strategy=first", "round-robin or shuffle"),
            (
                "rabbit_login_method=RABBIT-CR-DEMO",
                "PLAIN, AMQPLAIN or EXTERNAL",
            ),
        ] {
            let text = options(query).unwrap_err().to_string();
            assert!(text.contains(needle), "{text}");
        }
    }

    #[test]
    fn conflicting_options_are_reported() {
        for (query, needle) in [
            ("rabbit_ha_queues=1&rabbit_quorum_queue=1", "rabbit_ha_queues"),
            (
                "rabbit_ha_queues=1&rabbit_transient_quorum_queue=1",
                "rabbit_ha_queues",
            ),
            ("amqp_auto_delete=1&rabbit_quorum_queue=1", "amqp_auto_delete"),
            (
                "rabbit_stream_fanout=1&rabbit_qos_prefetch_count=1",
                "rabbit_transient_quorum_queue",
            ),
            (
                "rabbit_stream_fanout=1&rabbit_transient_quorum_queue=1",
                "rabbit_qos_prefetch_count",
            ),
            ("use_queue_manager=1", "[oslo_concurrency] lock_path"),
        ] {
            let text = options(query).unwrap().check().unwrap_err().to_string();
            assert!(text.contains(needle), "{query}: {text}");
        }
        let all = "rabbit_stream_fanout=1&rabbit_transient_quorum_queue=1&rabbit_qos_prefetch_count=1";
        options(all).unwrap().check().unwrap();
    }
}
