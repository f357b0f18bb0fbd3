//! `[DEFAULT]`: the process, its log, and the message broker.

use std::path::PathBuf;
use std::time::Duration;

use super::host_name;
use crate::schema::section;
use magnum_common::secret::Secret;

section! {
    /// The process, its log, and the message broker.
    DefaultSection "DEFAULT" {
        /// Name of this host in the service list, in leases and in notifications. Must be unique among the conductors
        /// of a deployment.
        host: String as Name = host_name(), machine "this machine's host name";
        /// Directory for state that must survive restarts.
        state_path: PathBuf as Path = PathBuf::from("/var/lib/magnum");
        /// Installation directory; only used as `$pybasedir` in other options.
        pybasedir: PathBuf as Path = PathBuf::from("/usr/share/magnum");

        /// URL of the message broker: rabbit://user:password@host:5672,user:password@host2:5672/virtual_host, or
        /// fake://name for messaging within one process. Reserved characters must be percent-encoded.
        transport_url: Secret as BrokerUrl = Secret::new("rabbit://");
        /// AMQP exchange of the RPC topics.
        control_exchange: String as Name = "magnum".to_owned();
        /// Time limit for the reply to an RPC call, in seconds.
        rpc_response_timeout: Duration as SecondsMinMillis<100> = Duration::from_secs(60);
        /// Reply to `oslo_rpc_server_ping`, oslo.messaging's liveness check.
        rpc_ping_enabled: bool as Bool = false;

        /// Take part in status polling. Heartbeats are sent in any case.
        periodic_enable: bool as Bool = true;
        /// Time without a heartbeat after which a conductor is considered down, in seconds.
        service_down_time: Duration as SecondsMinMillis<1000> = Duration::from_secs(180);

        /// Log at level DEBUG instead of INFO.
        debug: bool as Bool = false;
        /// Log file. If neither log_file nor log_dir is set, the log goes to standard error.
        log_file: Option<PathBuf> as Opt<Path> = None, was [("DEFAULT", "logfile")];
        /// Directory of log_file. Without log_file, the file is named after the program.
        log_dir: Option<PathBuf> as Opt<Path> = None, was [("DEFAULT", "logdir")];
        /// Reopen the log file after it was moved or deleted.
        watch_log_file: bool as Bool = false;
        /// Log to standard error as well as to the log file.
        use_stderr: bool as Bool = false;
        /// Log one JSON object per line instead of text.
        use_json: bool as Bool = false;
        /// Not supported; a warning is logged. systemd collects standard error.
        use_journal: bool as Bool = false;
        /// Not supported; a warning is logged. Let the service manager forward standard error.
        use_syslog: bool as Bool = false;
        /// Log levels by logger, as `target=LEVEL`; they take precedence over built-in levels that quiet libraries. A
        /// dot in a target matches `::` and `_`. Loggers of Python libraries have no effect.
        default_log_levels: Vec<(String, String)> as Dict<'='> = Vec::new();
    }
}
