//! `[conductor]`: accepting and running operations.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::schema::section;
use crate::value::{keywords, processors};

keywords! {
    /// How requests are written.
    RpcContentType {
        /// What every peer reads.
        Json = "json",
        /// What only our own programs read.
        MessagePack = "msgpack",
    }
}

section! {
    /// The conductor: accepting and running operations.
    ConductorSection "conductor" {
        /// RPC topic. Python's API ignores this option and always uses the default.
        topic: String as Name = "magnum-conductor".to_owned();
        /// How this program writes its requests; replies have the form of their request. msgpack is for a
        /// deployment without any Python peer, which would reject it.
        rpc_content_type: RpcContentType as Choice = RpcContentType::Json, ours true;
        /// Threads of the conductor. One process does all work; Magnum starts as many processes.
        workers: usize as Threads = processors(), machine "number of processors";
        /// Operations that run at the same time.
        operation_workers: usize as Int<1, 65535> = 64, ours true;
        /// Most requests that are recorded in one transaction.
        accept_batch: usize as Int<1, 10_000> = 64, ours true;
        /// Seconds until another conductor may take over an operation whose owner is silent. The owner renews
        /// it at a third of this time.
        operation_lease: Duration as Seconds<1000> = Duration::from_secs(30), ours true;
        /// Seconds before the first repetition of an attempt that failed for a transient reason.
        operation_retry_initial: Duration as Seconds<1> = Duration::from_secs(2), ours true;
        /// Longest pause between two attempts, in seconds.
        operation_retry_max_interval: Duration as Seconds<1> = Duration::from_secs(300), ours true;
        /// Factor from one pause to the next.
        operation_retry_multiplier: f64 as Float<1000, 100_000> = 2.0, ours true;
        /// Part of a pause that is random, so that many operations do not repeat at once.
        operation_retry_jitter: f64 as Float<0, 1000> = 0.25, ours true;
        /// Attempts after which an operation has failed for good.
        operation_retry_max_attempts: u32 as Int<1, 10_000> = 10, ours true;
        /// Minutes after which an update, a resize, a change of a node group, a rebuild or a reboot has failed. 0: never.
        update_timeout: Duration as Minutes = Duration::from_secs(60 * 60), ours true;
        /// Minutes after which a delete has failed. 0: never.
        delete_timeout: Duration as Minutes = Duration::from_secs(60 * 60), ours true;
        /// Minutes after which an upgrade has failed. 0: never.
        upgrade_timeout: Duration as Minutes = Duration::from_secs(60 * 60), ours true;
        /// Minutes after which a rotation of a credential or of certificates has failed. 0: never.
        rotation_timeout: Duration as Minutes = Duration::from_secs(60 * 60), ours true;
        /// Days that operations are kept in the journal after their end. As long, a message that comes again is
        /// recognised. 0: for ever.
        operation_history: Duration as Days = Duration::from_secs(30 * 86_400), ours true;
        /// Seconds that running operations get to reach a step border when the conductor is told to stop.
        shutdown_timeout: Duration as Seconds = Duration::from_secs(60), ours true;
        /// Seconds between two looks at a cluster that is being worked on.
        status_poll_interval: Duration as Seconds<10> = Duration::from_secs(10), ours true;
        /// Most clusters that one conductor claims for polling at once.
        status_poll_batch: usize as Int<1, 100_000> = 500, ours true;
        /// Drivers asked at the same time.
        status_poll_parallelism: usize as Int<1, 4096> = 32, ours true;
        /// Seconds between two heartbeats, which also announce the loaded drivers.
        service_report_interval: Duration as Seconds<100> = Duration::from_secs(60), ours true;
        /// Key file that seals users' tokens in the journal; every conductor of a deployment needs the same.
        journal_key_file: PathBuf as Path = PathBuf::from("/var/lib/magnum/journal.key"),
            template "$state_path/journal.key", ours true;
        /// address:port for /healthcheck, /readiness and /metrics; empty: none.
        admin_listen: Option<SocketAddr> as Opt<Listen> = None, ours true;
        /// Queue for messages that cannot be understood, with the reason; empty: they are dropped with an error
        /// in the log.
        dead_letter_queue: Option<String> as Opt<Name> = Some("magnum-conductor.dead".to_owned()),
            template "${topic}.dead", ours true;
    }
}
