//! `[drivers]`: which drivers there are, and which one a new cluster template gets.

use std::path::PathBuf;

use crate::schema::section;
use crate::value::keywords;

keywords! {
    /// Whether a named driver must provide the template's cluster type.
    ClusterTypeCheck {
        /// It must.
        Strict = "strict",
        /// Names are taken as they are, as Python Magnum does.
        Lenient = "lenient",
    }
}

section! {
    /// Drivers.
    DriversSection "drivers" {
        /// Directories whose sub-directories are driver versions.
        driver_path: Vec<PathBuf> as SearchPath =
            vec![PathBuf::from("/usr/share/magnum/drivers"), PathBuf::from("/etc/magnum/drivers")], ours true;
        /// Driver of a new cluster template when neither the request nor the image names one.
        default_driver: Option<String> as Opt<Name> = None;
        /// Drivers that new templates and clusters must not use.
        disabled_drivers: Vec<String> as List<Name> = Vec::new();
        /// Beta drivers that may be used.
        enabled_beta_drivers: Vec<String> as List<Name> = Vec::new();
        /// `strict`: a named driver must provide the template's cluster type; `lenient`: names are taken as
        /// they are.
        cluster_type_check: ClusterTypeCheck as Choice = ClusterTypeCheck::Strict, ours true;
        /// Whether nodes verify the certificates of the OpenStack API.
        verify_ca: bool as Bool = true;
        /// CA bundle that is installed on all nodes; unset: none.
        openstack_ca_file: Option<PathBuf> as Opt<Path> = None;
    }
}
