//! `[conductor]`: accepting and running operations.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::schema::section;
use crate::value::{keywords, processors};

keywords! {
    /// Serialization of published RPC requests.
    RpcContentType {
        /// Understood by every peer.
        Json = "json",
        /// Understood only by these programs, not by Python peers.
        MessagePack = "msgpack",
    }
}

keywords! {
    /// Which methods of Magnum's objects are answered over messages.
    ObjectsRpcScope {
        /// All.
        All = "all",
        /// Those that Magnum's API calls.
        Api = "api",
        /// None.
        Off = "off",
    }
}

keywords! {
    /// Authentication of messages between these programs.
    MessageAuthentication {
        /// None.
        Off = "off",
        /// Messages are signed; others are accepted, too.
        Sign = "sign",
        /// Messages are signed, and others refused.
        Require = "require",
    }
}

section! {
    /// The conductor: accepts requests and runs operations.
    ConductorSection "conductor" {
        /// RPC topic. Python's magnum-api ignores this option and always publishes to the default.
        topic: String as Name = "magnum-conductor".to_owned();
        /// Serialization of published requests; a reply uses that of its request. Python peers reject msgpack: use it
        /// only in deployments without them.
        rpc_content_type: RpcContentType as Choice = RpcContentType::Json, ours true;
        /// Which methods of Magnum's objects are answered over RPC, to whoever can send messages. `api`: those that a Python
        /// magnum-api without a database calls, which write cluster templates and quotas and get no private key; `all`:
        /// every one, private keys included; `off`: none. Python drivers that run here need none of them.
        objects_rpc: ObjectsRpcScope as Choice = ObjectsRpcScope::Api, ours true;
        /// Whether messages are signed with the key of message_key_file, by the API, too. `sign`: they are; `require`: and what
        /// is not signed so is refused, which ends all Python peers. First `sign` on every host, then `require`.
        message_authentication: MessageAuthentication as Choice = MessageAuthentication::Off, ours true;
        /// File with the keys that sign messages, one on a line, base64 of 32 bytes: the first signs, all are accepted. The same
        /// on every host, of the API as well.
        message_key_file: Option<PathBuf> as Opt<Path> = None, ours true;
        /// Worker threads; 0: one per processor. There is a single process, where Magnum starts that many processes.
        workers: usize as Threads = processors(), machine "number of processors";
        /// Maximum number of operations that this conductor runs concurrently.
        operation_workers: usize as Int<1, 65535> = 64, ours true;
        /// Maximum number of requests accepted in one database transaction.
        accept_batch: usize as Int<1, 10_000> = 64, ours true;
        /// Duration of the lease on a running operation, in seconds. The owner renews it every third of that time, and
        /// every 5 seconds at the latest; when it expires, another conductor takes the operation over. An outage of the
        /// database of two thirds of that time interrupts no driver.
        operation_lease: Duration as SecondsMinMillis<1000> = Duration::from_secs(90), ours true;
        /// Delay before the first retry after a transient failure, in seconds.
        operation_retry_initial: Duration as SecondsMinMillis<1> = Duration::from_secs(2), ours true;
        /// Maximum delay between retries, in seconds.
        operation_retry_max_interval: Duration as SecondsMinMillis<1> = Duration::from_secs(300), ours true;
        /// Factor by which the delay grows from one retry to the next.
        operation_retry_multiplier: f64 as Float<1, 100> = 2.0, ours true;
        /// Random share of each delay, so that many operations do not retry at once. 0.25: up to 25 % shorter or
        /// longer.
        operation_retry_jitter: f64 as Float<0, 1> = 0.25, ours true;
        /// Maximum number of attempts. An operation that reaches it has failed.
        operation_retry_max_attempts: u32 as Int<1, 10_000> = 10, ours true;
        /// Time limit of an update, a resize, a rebuild, a reboot, or a change to a node group, in minutes. 0: no limit.
        update_timeout: Duration as Minutes = Duration::from_secs(60 * 60), ours true;
        /// Time limit of a delete, in minutes. 0: no limit.
        delete_timeout: Duration as Minutes = Duration::from_secs(60 * 60), ours true;
        /// Time limit of an upgrade, in minutes. 0: no limit.
        upgrade_timeout: Duration as Minutes = Duration::from_secs(60 * 60), ours true;
        /// Time limit of a rotation of credentials or certificates, in minutes. 0: no limit.
        rotation_timeout: Duration as Minutes = Duration::from_secs(60 * 60), ours true;
        /// How long an operation waits for a conductor that has its driver, in seconds, before it fails. It begins anew
        /// while conductors cannot see the database.
        missing_driver_timeout: Duration as SecondsMinMillis<1000> = Duration::from_secs(4 * 60 * 60), ours true;
        /// Retention period of finished operations in the journal, in days. Redelivered messages are deduplicated for
        /// the same period. 0: unlimited.
        operation_history: Duration as Days = Duration::from_secs(30 * 86_400), ours true;
        /// Time limit, in seconds, for running operations to complete their current step at shutdown.
        shutdown_timeout: Duration as Seconds = Duration::from_secs(60), ours true;
        /// Interval between status polls of a cluster with an operation in progress, in seconds.
        status_poll_interval: Duration as SecondsMinMillis<10> = Duration::from_secs(10), ours true;
        /// Maximum number of clusters that a conductor claims for one round of status polling.
        status_poll_batch: usize as Int<1, 100_000> = 500, ours true;
        /// Maximum number of concurrent status polls of drivers.
        status_poll_parallelism: usize as Int<1, 4096> = 32, ours true;
        /// Interval between heartbeats, in seconds. A heartbeat also announces the loaded drivers.
        service_report_interval: Duration as SecondsMinMillis<100> = Duration::from_secs(60), ours true;
        /// File with the key that encrypts users' tokens in the journal. All conductors of a deployment need the same.
        journal_key_file: PathBuf as Path = PathBuf::from("/var/lib/magnum/journal.key"),
            template "$state_path/journal.key", ours true;
        /// address:port of the admin interface (/healthcheck, /readiness, /metrics), which has no authentication.
        /// Empty: disabled.
        admin_listen: Option<SocketAddr> as Opt<Listen> = None, ours true;
        /// Names under which the admin interface answers, besides addresses, localhost and `[DEFAULT] host`.
        admin_hosts: Vec<String> as List<Name> = Vec::new(), ours true;
        /// Dead-letter queue: receives messages that cannot be decoded, with the reason. Empty: such messages are
        /// dropped and logged as errors.
        dead_letter_queue: Option<String> as Opt<Name> = Some("magnum-conductor.dead".to_owned()),
            template "${topic}.dead", ours true;
    }
}
