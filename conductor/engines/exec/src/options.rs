//! `[exec]` of `magnum.conf`: what an operator can set for all drivers that are programs.

use std::path::PathBuf;

use magnum_config::config_section;

config_section! {
    /// Drivers that are programs.
    ExecSection "exec" {
        /// Directory for private files that a program gets for one call (the cluster's CA and client certificate);
        /// best one in memory. Conductors of one host may share it.
        runtime_directory: PathBuf as Path = std::env::temp_dir(),
            machine "the system's directory for temporary files", ours true;
    }
}
