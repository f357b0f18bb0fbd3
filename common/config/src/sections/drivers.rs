//! `[drivers]`: discovery of drivers, and the choice of one for a new cluster template.

use std::path::PathBuf;
use std::time::Duration;

use crate::schema::section;
use crate::value::keywords;

keywords! {
    /// Whether a driver that is named explicitly must provide the template's cluster type.
    ClusterTypeCheck {
        /// It must; other drivers are refused.
        Strict = "strict",
        /// It need not, as in Python Magnum.
        Lenient = "lenient",
    }
}

section! {
    /// Discovery and choice of cluster drivers.
    DriversSection "drivers" {
        /// Directories to search for drivers; each subdirectory is one version of a driver.
        driver_path: Vec<PathBuf> as SearchPath =
            vec![PathBuf::from("/usr/share/magnum/drivers"), PathBuf::from("/etc/magnum/drivers")], ours true;
        /// Driver of a new cluster template if neither the request nor the image names one.
        default_driver: Option<String> as Opt<Name> = None;
        /// Drivers not available to new templates and clusters. Existing clusters keep theirs.
        disabled_drivers: Vec<String> as List<Name> = Vec::new();
        /// Beta drivers to enable.
        enabled_beta_drivers: Vec<String> as List<Name> = Vec::new();
        /// Whether a driver that is named explicitly must provide the template's cluster type: yes (`strict`), or no,
        /// as in Python Magnum (`lenient`).
        cluster_type_check: ClusterTypeCheck as Choice = ClusterTypeCheck::Strict, ours true;
        /// Drivers whose own API (`/v1/clusters/{ident}/driver/`, from microversion 1.16) may be called. Set it alike
        /// for the API and for the conductors. Read in docs/drivers.md first what is at risk.
        custom_api: Vec<String> as List<Name> = Vec::new(), ours true;
        /// Time limit, in seconds, for the reply of a driver's own API. The driver is stopped then, and the client gets
        /// 504. rpc_response_timeout bounds it, less 5 seconds.
        custom_api_timeout: Duration as SecondsMinMillis<100> = Duration::from_secs(30), ours true;
        /// Send a notification `magnum.cluster.metrics.update` with the processor and memory utilisation of each cluster
        /// whose driver can tell it, every `[kubernetes] health_polling_interval`, as Magnum before release 16 did. Needs
        /// a notification driver. Off by default, as in Magnum since Rocky: it is one message for each cluster and
        /// interval. `/metrics` shows the figures in any case.
        send_cluster_metrics: bool as Bool = false, ours true;
        /// Let nodes verify the certificates of the OpenStack APIs.
        verify_ca: bool as Bool = true;
        /// CA bundle to install on all nodes. Unset: none.
        openstack_ca_file: Option<PathBuf> as Opt<Path> = None;
    }
}
