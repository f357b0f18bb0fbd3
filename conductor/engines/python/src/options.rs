//! `[python]` of `magnum.conf`: what an operator can set for all drivers that are Python packages.

use std::path::PathBuf;
use std::time::Duration;

use magnum_config::config_section;

config_section! {
    /// Drivers that are Python packages.
    PythonSection "python" {
        /// Directory for sockets and for private temporary files of the processes that run such drivers; best one in
        /// memory. Conductors of one host may share it.
        runtime_directory: PathBuf as Path = std::env::temp_dir(),
            machine "the system's directory for temporary files", ours true;
        /// Maximum number of processes that run drivers of one Python environment at the same time. Further calls wait.
        workers: usize as Int<1, 1_000> = 8, ours true;
        /// Time limit, in seconds, for a Python environment to import its drivers.
        start_timeout: Duration as SecondsMinMillis<1000> = Duration::from_secs(120), ours true;
    }
}
