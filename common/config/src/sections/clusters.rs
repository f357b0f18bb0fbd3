//! Rules and defaults for clusters: `[cluster]`, `[cluster_template]`, `[kubernetes]`, `[quotas]`, `[cinder]`.

use std::path::PathBuf;
use std::time::Duration;

use crate::schema::section;

section! {
    /// Defaults for clusters.
    ClusterSection "cluster" {
        /// Cache directory for client keys. No cache is used if it does not exist. Without effect here: read by Python
        /// drivers.
        temp_cache_dir: PathBuf as Path = PathBuf::from("/var/lib/magnum/certificate-cache"),
            was [("bay", "temp_cache_dir")];
        /// Time limit, in seconds, for a cluster's load balancers to disappear before the cluster is deleted. Without effect
        /// here: read by Python drivers.
        pre_delete_lb_timeout: i64 as Int = 60;
    }
}

section! {
    /// Rules for cluster templates.
    ClusterTemplateSection "cluster_template" {
        /// Network drivers allowed in Kubernetes templates; `all` allows any.
        kubernetes_allowed_network_drivers: Vec<String> as List<Name> =
            vec!["flannel".to_owned(), "calico".to_owned()],
            was [("baymodel", "kubernetes_allowed_network_drivers")];
        /// Network driver of Kubernetes templates that do not set one.
        kubernetes_default_network_driver: String as Name = "flannel".to_owned(),
            was [("baymodel", "kubernetes_default_network_driver")];
    }
}

section! {
    /// Kubernetes clusters.
    KubernetesSection "kubernetes" {
        /// Interval between health checks of a cluster, in seconds. 0 or less: no health checks.
        health_polling_interval: Option<Duration> as Interval = Some(Duration::from_secs(60));
        /// File with the default policy of the Keystone authentication webhook in clusters. Without effect here: read by
        /// Python drivers.
        keystone_auth_default_policy: PathBuf as Path =
            PathBuf::from("/etc/magnum/keystone_auth_default_policy.json");
    }
}

section! {
    /// Defaults for projects that have no quota of their own.
    QuotasSection "quotas" {
        /// Maximum number of clusters per project. 0 or less: none, as in Magnum; there is no value for no limit.
        max_clusters_per_project: u32 as Count = 20;
        /// Lifetime, in seconds, of a quota reservation for a pending create. Set it to at least the time that a
        /// request may wait in the queue while no conductor runs.
        reservation_timeout: Duration as SecondsMinMillis<1000> = Duration::from_secs(24 * 3600), ours true;
    }
}

section! {
    /// Defaults for volumes of nodes.
    CinderSection "cinder" {
        /// Volume type for container storage. Empty: Cinder's default. Without effect here: read by Python
        /// drivers.
        default_docker_volume_type: String as Text = String::new();
        /// Volume type for etcd storage. Empty: Cinder's default. Without effect here: read by Python
        /// drivers.
        default_etcd_volume_type: String as Text = String::new();
        /// Volume type for boot volumes. Empty: Cinder's default. Without effect here: read by Python
        /// drivers.
        default_boot_volume_type: String as Text = String::new();
        /// Size of boot volumes, in GB. 0: nodes boot from the image without a volume.
        default_boot_volume_size: u32 as Int<0, 2_147_483_647> = 0;
    }
}
