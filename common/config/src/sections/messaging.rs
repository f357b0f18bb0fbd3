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
        /// The next one of a list that was shuffled once.
        RoundRobin = "round-robin",
        /// Any one, each time anew.
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
    /// RabbitMQ.
    RabbitSection "oslo_messaging_rabbit" {
        /// Queues survive a restart of the broker.
        amqp_durable_queues: bool as Bool = false, was [("oslo_messaging_rabbit", "rabbit_durable_queues")];
        /// Queues vanish with their last consumer.
        amqp_auto_delete: bool as Bool = false;
        /// Replicated, durable queues for requests. Recommended: only such a queue keeps an answered request
        /// through a broker restart.
        rabbit_quorum_queue: bool as Bool = false;
        /// The same for reply and fanout queues.
        rabbit_transient_quorum_queue: bool as Bool = false;
        /// Deliveries after which a quorum queue drops a message. 0: the broker's limit.
        rabbit_quorum_delivery_limit: u32 as Int<0, 2_147_483_647> = 0;
        /// Messages that a quorum queue keeps in memory. 0: no limit.
        rabbit_quorum_max_memory_length: u32 as Int<0, 2_147_483_647> = 0;
        /// Bytes that a quorum queue keeps in memory. 0: no limit.
        rabbit_quorum_max_memory_bytes: u64 as Int<0> = 0;
        /// Mirrored queues of brokers before 4.0. Not together with quorum queues.
        rabbit_ha_queues: bool as Bool = false;
        /// Seconds after which unused reply and fanout queues expire. 0: never.
        rabbit_transient_queues_ttl: u32 as Int<0, 2_147_483> = 1800;
        /// One stream that all servers read instead of a fanout queue for each. Needs
        /// rabbit_transient_quorum_queue and a rabbit_qos_prefetch_count.
        rabbit_stream_fanout: bool as Bool = false;
        /// Fanout and reply queues are called after host, program and a number instead of at random, so that a
        /// program that starts again finds them. Needs lock_path of oslo_concurrency.
        use_queue_manager: bool as Bool = false;
        /// Name of the host in these names.
        hostname: String as Name = host_name(), machine "this machine's host name";
        /// Name of the program in these names. Must differ from that of a Python program on the same host.
        processname: String as Name = program_name(), machine "name of the program";
        /// Unacknowledged messages that the broker sends ahead. 0: no limit.
        rabbit_qos_prefetch_count: u16 as Int<0, 65535> = 0;
        /// Seconds without a sign of life after which a connection is dead. 0: no heartbeats.
        heartbeat_timeout_threshold: u16 as Int<0, 65535> = 60;
        /// Seconds before the first attempt to reconnect.
        rabbit_retry_interval: Duration as Seconds<1> = Duration::from_secs(1);
        /// Seconds that each further pause is longer.
        rabbit_retry_backoff: Duration as Seconds = Duration::from_secs(2);
        /// Longest such pause, in seconds.
        rabbit_interval_max: Duration as Seconds<1> = Duration::from_secs(30);
        /// Seconds to wait after a connection was lost, before consuming again.
        kombu_reconnect_delay: Duration as Seconds = Duration::from_secs(1);
        /// Up to so many seconds more, at random.
        kombu_reconnect_splay: Duration as Seconds = Duration::ZERO;
        /// Which node of transport_url is tried after one that failed.
        kombu_failover_strategy: FailoverStrategy as Choice = FailoverStrategy::RoundRobin;
        /// Compresses what is sent; unset: nothing is. What is received may be compressed in any case.
        kombu_compression: Option<Compression> as Opt<Compressor> = None;
        /// Seconds that a reply is offered to a caller whose queue is not there.
        kombu_missing_consumer_retry_timeout: Duration as Seconds = Duration::from_secs(60),
            was [("oslo_messaging_rabbit", "kombu_reconnect_timeout")];
        /// Whether a reply whose queue is not there is noticed; without it, it is lost in silence.
        direct_mandatory_flag: bool as Bool = true;
        /// Whether consuming starts anew when the queue moves to another broker node.
        enable_cancel_on_failover: bool as Bool = false;
        /// Login method.
        rabbit_login_method: LoginMethod as Choice = LoginMethod::Amqplain;
        /// Connect by TLS.
        ssl: bool as Bool = false, was [("oslo_messaging_rabbit", "rabbit_use_ssl")];
        /// CA bundle in PEM to verify the broker with; unset: it is not verified, as in Python programs.
        ssl_ca_file: Option<PathBuf> as Opt<Path> = None, was [("oslo_messaging_rabbit", "kombu_ssl_ca_certs")];
        /// Client certificate in PEM.
        ssl_cert_file: Option<PathBuf> as Opt<Path> = None, was [("oslo_messaging_rabbit", "kombu_ssl_certfile")];
        /// Private key of the client certificate, in PEM.
        ssl_key_file: Option<PathBuf> as Opt<Path> = None, was [("oslo_messaging_rabbit", "kombu_ssl_keyfile")];
        /// Accepted; the broker's certificate must always be for its host name.
        ssl_enforce_hostname_verification: bool as Bool = true;
    }
}

section! {
    /// Notifications to other services.
    NotificationsSection "oslo_messaging_notifications" {
        /// Where they go: `messagingv2`, `messaging`, `log`, `noop`. None: they are not sent.
        driver: Vec<String> as Multi<Text> = Vec::new(), was [("DEFAULT", "notification_driver")];
        /// Topics they are published on.
        topics: Vec<String> as List<Name> = vec!["notifications".to_owned()],
            was [("DEFAULT", "notification_topics")];
        /// Their broker, if it is another than that of requests.
        transport_url: Option<Secret> as Opt<BrokerUrl> = None,
            was [("DEFAULT", "notification_transport_url")];
        /// How often one is offered again to a broker that did not take it; the next ones wait for it meanwhile. -1:
        /// until it is taken, 0: never.
        retry: i64 as Int = -1;
    }
}

section! {
    /// Locks between the processes of one host.
    ConcurrencySection "oslo_concurrency" {
        /// Directory for lock files; for use_queue_manager of oslo_messaging_rabbit.
        lock_path: Option<PathBuf> as Opt<Path> = None, was [("DEFAULT", "lock_path")];
    }
}
