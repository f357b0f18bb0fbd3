//! `[DEFAULT]`: the process, its log, and its place on the message bus.

use std::path::PathBuf;
use std::time::Duration;

use super::host_name;
use crate::schema::section;
use magnum_common::secret::Secret;

section! {
    /// The process, its log, and its place on the message bus.
    DefaultSection "DEFAULT" {
        /// Name of this host in the service list, in leases and in notifications. Must differ between the
        /// conductors of one deployment.
        host: String as Name = host_name(), machine "this machine's host name";
        /// Directory for state that must survive restarts.
        state_path: PathBuf as Path = PathBuf::from("/var/lib/magnum");
        /// Directory of the installed files; only for use as `$pybasedir` in other options.
        pybasedir: PathBuf as Path = PathBuf::from("/usr/share/magnum");

        /// The message broker: rabbit://user:password@host:5672,user:password@host2:5672/virtual_host, or
        /// fake://name within one process. Reserved characters must be percent-encoded.
        transport_url: Secret as BrokerUrl = Secret::new("rabbit://");
        /// Exchange of the RPC topics.
        control_exchange: String as Name = "magnum".to_owned();
        /// Seconds a call waits for its answer.
        rpc_response_timeout: Duration as Seconds<100> = Duration::from_secs(60);
        /// Whether a conductor answers `oslo_rpc_server_ping`, a liveness check of oslo.messaging.
        rpc_ping_enabled: bool as Bool = false;

        /// Whether this conductor takes part in status polling. Its heartbeat is not affected.
        periodic_enable: bool as Bool = true;
        /// Seconds without a heartbeat after which a conductor counts as down.
        service_down_time: Duration as Seconds<1000> = Duration::from_secs(180);

        /// Log at level DEBUG instead of INFO.
        debug: bool as Bool = false;
        /// Log file; without it, and without log_dir, the log goes to standard error.
        log_file: Option<PathBuf> as Opt<Path> = None, was [("DEFAULT", "logfile")];
        /// Directory for log_file; alone, the file is called after the program.
        log_dir: Option<PathBuf> as Opt<Path> = None, was [("DEFAULT", "logdir")];
        /// Reopen the log file when it was moved or deleted.
        watch_log_file: bool as Bool = false;
        /// Log to standard error besides the log file.
        use_stderr: bool as Bool = false;
        /// One JSON object per line instead of text.
        use_json: bool as Bool = false;
        /// Accepted, with a warning: standard error is what systemd collects.
        use_journal: bool as Bool = false;
        /// Accepted, with a warning: let the service manager forward standard error.
        use_syslog: bool as Bool = false;
        /// Levels by logger, `target=LEVEL`, on top of a short list that keeps libraries quiet. A dot stands for
        /// `::` or `_`. Loggers of Python libraries have no effect here.
        default_log_levels: Vec<(String, String)> as Dict<'='> = Vec::new();
    }
}
