//! Rules and defaults for clusters: `[cluster]`, `[cluster_template]`, `[kubernetes]`, `[quotas]`, `[cinder]`.

use std::path::PathBuf;
use std::time::Duration;

use crate::schema::section;

section! {
    /// Clusters.
    ClusterSection "cluster" {
        /// Directory for cached client keys; not used if it is missing.
        temp_cache_dir: PathBuf as Path = PathBuf::from("/var/lib/magnum/certificate-cache"),
            was [("bay", "temp_cache_dir")];
        /// Seconds to wait for load balancers to vanish before a cluster is deleted.
        pre_delete_lb_timeout: Duration as Seconds = Duration::from_secs(60);
    }
}

section! {
    /// Cluster templates.
    ClusterTemplateSection "cluster_template" {
        /// Network drivers that Kubernetes templates may name; `all` allows any.
        kubernetes_allowed_network_drivers: Vec<String> as List<Name> =
            vec!["flannel".to_owned(), "calico".to_owned()],
            was [("baymodel", "kubernetes_allowed_network_drivers")];
        /// Network driver of Kubernetes templates that name none.
        kubernetes_default_network_driver: String as Name = "flannel".to_owned(),
            was [("baymodel", "kubernetes_default_network_driver")];
    }
}

section! {
    /// Kubernetes.
    KubernetesSection "kubernetes" {
        /// Seconds between two looks at the health of a cluster.
        health_polling_interval: Duration as Seconds<1000> = Duration::from_secs(60);
        /// Default policy of the Keystone web hook in clusters.
        keystone_auth_default_policy: PathBuf as Path =
            PathBuf::from("/etc/magnum/keystone_auth_default_policy.json");
    }
}

section! {
    /// Quotas of projects without their own.
    QuotasSection "quotas" {
        /// Clusters that a project may have.
        max_clusters_per_project: u32 as Int<0, 2_147_483_647> = 20;
        /// Seconds for which a cluster that no conductor has made yet counts: as long as its request may wait in the
        /// queue. Only matters while no conductor runs.
        reservation_timeout: Duration as Seconds<1000> = Duration::from_secs(24 * 3600), ours true;
    }
}

section! {
    /// Volumes of nodes.
    CinderSection "cinder" {
        /// Volume type of container storage; empty: Cinder's default.
        default_docker_volume_type: String as Text = String::new();
        /// Volume type of etcd storage; empty: Cinder's default.
        default_etcd_volume_type: String as Text = String::new();
        /// Volume type of boot volumes; empty: Cinder's default.
        default_boot_volume_type: String as Text = String::new();
        /// Size of boot volumes in GB; 0: the image's disk without a volume.
        default_boot_volume_size: u32 as Int<0, 2_147_483_647> = 0;
    }
}
