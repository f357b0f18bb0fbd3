//! `[oslo_messaging_rabbit]`, `[oslo_messaging_notifications]` and `[oslo_concurrency]`.
//!
//! oslo.messaging lets the query of `transport_url` override options of the first section; `common::rpc` does
//! the same when it parses the URL.

use std::path::PathBuf;
use std::time::Duration;

use super::host_name;
use crate::schema::section;
use crate::value::{Codec, keywords};
use magnum_common::secret::Secret;

keywords! {
    /// How a client proves its identity to the broker.
    LoginMethod {
        /// RabbitMQ's own encoding of name and password.
        Amqplain = "AMQPLAIN",
        /// Name and password.
        Plain = "PLAIN",
        /// The TLS client certificate.
        External = "EXTERNAL",
        /// RabbitMQ's challenge-response demonstration.
        RabbitCrDemo = "RABBIT-CR-DEMO",
    }
}

keywords! {
    /// Which broker node is tried after one that failed.
    FailoverStrategy {
        /// The next one of a list that is shuffled once.
        RoundRobin = "round-robin",
        /// A random one.
        Shuffle = "shuffle",
    }
}

/// How bodies are compressed before they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// What kombu calls gzip, which is a zlib stream.
    Zlib,
    /// bzip2.
    Bzip2,
}

/// A compression by kombu's names.
pub struct Compressor;

impl Codec<Compression> for Compressor {
    fn form() -> String {
        "gzip | bzip2".into()
    }
    fn parse(text: &str) -> Result<Compression, String> {
        match text.to_ascii_lowercase().as_str() {
            "gzip" | "zlib" => Ok(Compression::Zlib),
            "bzip2" | "bzip" => Ok(Compression::Bzip2),
            "bz2" => Err(
                "\"bz2\" is in oslo.messaging's help, but no peer knows it under that name: write bzip2"
                    .into(),
            ),
            _ => Err(format!("{text:?} is not one of: gzip, bzip2")),
        }
    }
    fn show(value: &Compression) -> Option<String> {
        Some(
            match value {
                Compression::Zlib => "gzip",
                Compression::Bzip2 => "bzip2",
            }
            .to_owned(),
        )
    }
}

/// The name of this program's file; `magnum` where there is none.
pub(crate) fn program_name() -> String {
    std::env::args_os()
        .next()
        .and_then(|path| PathBuf::from(path).file_name()?.to_str().map(str::to_owned))
        .unwrap_or_else(|| "magnum".to_owned())
}

section! {
    /// Queues and connections of RabbitMQ.
    RabbitSection "oslo_messaging_rabbit" {
        /// Use durable queues, which survive a restart of the broker.
        amqp_durable_queues: bool as Bool = false, was [("oslo_messaging_rabbit", "rabbit_durable_queues")];
        /// Use auto-delete queues, which the broker deletes with their last consumer.
        amqp_auto_delete: bool as Bool = false;
        /// Use quorum queues (durable, replicated) for requests. Recommended: requests in other queues may be lost when
        /// the broker restarts, even after their 202.
        rabbit_quorum_queue: bool as Bool = false;
        /// Use quorum queues for reply and fanout queues.
        rabbit_transient_quorum_queue: bool as Bool = false;
        /// Maximum number of deliveries of a message by a quorum queue, which then drops it. 0: the broker's limit.
        rabbit_quorum_delivery_limit: u32 as Int<0, 2_147_483_647> = 0;
        /// Maximum number of messages that a quorum queue keeps in memory. 0: no limit.
        rabbit_quorum_max_memory_length: u32 as Int<0, 2_147_483_647> = 0;
        /// Maximum size of the messages that a quorum queue keeps in memory, in bytes. 0: no limit.
        rabbit_quorum_max_memory_bytes: u64 as Int<0> = 0;
        /// Use mirrored queues, which brokers before 4.0 have. Excludes quorum queues.
        rabbit_ha_queues: bool as Bool = false;
        /// Time after which unused reply and fanout queues expire, in seconds. 0: never.
        rabbit_transient_queues_ttl: u32 as Int<0, 2_147_483> = 1800;
        /// Use one stream that all servers read instead of one fanout queue per server. Requires
        /// rabbit_transient_quorum_queue and rabbit_qos_prefetch_count.
        rabbit_stream_fanout: bool as Bool = false;
        /// Name fanout and reply queues after host, program and a number instead of randomly, so that a restarted
        /// program uses them again. Requires `[oslo_concurrency] lock_path`.
        use_queue_manager: bool as Bool = false;
        /// Host name in the queue names of use_queue_manager.
        hostname: String as Name = host_name(), machine "this machine's host name";
        /// Program name in the queue names of use_queue_manager. Must differ from that of a Python program on the same
        /// host.
        processname: String as Name = program_name(), machine "name of the program";
        /// Maximum number of unacknowledged messages per consumer. 0: no limit.
        rabbit_qos_prefetch_count: u16 as Int<0, 65535> = 0;
        /// Time without traffic after which a connection is considered lost, in seconds. 0: no heartbeats. The connection
        /// on which a conductor takes requests has at most a third of `[conductor] operation_lease`.
        heartbeat_timeout_threshold: u16 as Int<0, 65535> = 60;
        /// Delay before the first attempt to reconnect, in seconds.
        rabbit_retry_interval: Duration as SecondsMinMillis<1> = Duration::from_secs(1);
        /// Increase of the delay with each further attempt, in seconds.
        rabbit_retry_backoff: Duration as Seconds = Duration::from_secs(2);
        /// Maximum delay between attempts to reconnect, in seconds.
        rabbit_interval_max: Duration as SecondsMinMillis<1> = Duration::from_secs(30);
        /// Delay between the loss of a connection and consuming again, in seconds.
        kombu_reconnect_delay: Duration as Seconds = Duration::from_secs(1);
        /// Maximum random addition to kombu_reconnect_delay, in seconds.
        kombu_reconnect_splay: Duration as Seconds = Duration::ZERO;
        /// Order in which the nodes of transport_url are tried after one has failed.
        kombu_failover_strategy: FailoverStrategy as Choice = FailoverStrategy::RoundRobin;
        /// Compression of published messages. Unset: none. Compressed messages are always understood.
        kombu_compression: Option<Compression> as Opt<Compressor> = None;
        /// Time for which a reply to a missing reply queue is retried, in seconds.
        kombu_missing_consumer_retry_timeout: Duration as Seconds = Duration::from_secs(60),
            was [("oslo_messaging_rabbit", "kombu_reconnect_timeout")];
        /// Publish replies as mandatory, so that a missing reply queue is detected. If false, such replies are lost
        /// silently.
        direct_mandatory_flag: bool as Bool = true;
        /// Consume again when the queue moves to another node of the broker.
        enable_cancel_on_failover: bool as Bool = false;
        /// SASL mechanism of the login.
        rabbit_login_method: LoginMethod as Choice = LoginMethod::Amqplain;
        /// Connect with TLS.
        ssl: bool as Bool = false, was [("oslo_messaging_rabbit", "rabbit_use_ssl")];
        /// CA bundle in PEM to verify the broker's certificate with. Unset: the certificate is not verified, as in
        /// Python programs.
        ssl_ca_file: Option<PathBuf> as Opt<Path> = None, was [("oslo_messaging_rabbit", "kombu_ssl_ca_certs")];
        /// Client certificate in PEM.
        ssl_cert_file: Option<PathBuf> as Opt<Path> = None, was [("oslo_messaging_rabbit", "kombu_ssl_certfile")];
        /// Private key of the client certificate in PEM.
        ssl_key_file: Option<PathBuf> as Opt<Path> = None, was [("oslo_messaging_rabbit", "kombu_ssl_keyfile")];
        /// false is not supported; a warning is logged. With ssl_ca_file, the host name is always verified.
        ssl_enforce_hostname_verification: bool as Bool = true;
    }
}

section! {
    /// Notifications about clusters to other services.
    NotificationsSection "oslo_messaging_notifications" {
        /// Driver that sends notifications: `messagingv2`, `messaging`, `log` or `noop`. Unset: none are sent.
        driver: Vec<String> as Multi<Text> = Vec::new(), was [("DEFAULT", "notification_driver")];
        /// Topics to publish notifications on.
        topics: Vec<String> as List<Name> = vec!["notifications".to_owned()],
            was [("DEFAULT", "notification_topics")];
        /// URL of the broker for notifications, if it is not that of `[DEFAULT] transport_url`.
        transport_url: Option<Secret> as Opt<BrokerUrl> = None,
            was [("DEFAULT", "notification_transport_url")];
        /// Maximum number of retries of a notification that the broker did not take; later notifications wait for it.
        /// -1: unlimited; 0: no retries.
        retry: i64 as Int = -1;
    }
}

section! {
    /// Locks between processes of one host.
    ConcurrencySection "oslo_concurrency" {
        /// Directory of lock files; used with `[oslo_messaging_rabbit] use_queue_manager`.
        lock_path: Option<PathBuf> as Opt<Path> = None, was [("DEFAULT", "lock_path")];
    }
}
