//! `[capi_helm]` and `[capi_helm_cluster_labels]` of `magnum.conf`: names and defaults of the package magnum-capi-helm 1.4.0.

use magnum_config::config_section;
use magnum_config::value::Keyword;

/// The helm program's chart and the management cluster.
pub use capi_helm::CapiHelmSection;
/// What labels say that a cluster does not have.
pub use labels::LabelDefaultsSection;

mod capi_helm {
    use super::config_section;

    config_section! {
        /// Clusters by Cluster API and its helm chart.
        CapiHelmSection "capi_helm" {
            /// Kubeconfig of the management cluster. Empty: the one that KUBECONFIG names, or ~/.kube/config, or the account of the
            /// pod that the conductor runs in.
            kubeconfig_file: String as Text = String::new();
            /// What the namespaces of projects begin with. Two deployments that share a management cluster need different ones.
            namespace_prefix: String as Text = "magnum".to_owned();
            /// Repository of the chart. Empty where the chart's name says where it is (oci://).
            helm_chart_repo: String as Text = "https://azimuth-cloud.github.io/capi-helm-charts".to_owned();
            /// Name of the chart.
            helm_chart_name: String as Text = "openstack-cluster".to_owned();
            /// Version of the chart, where a template's label capi_helm_chart_version names no other.
            default_helm_chart_version: String as Text = "0.10.1".to_owned();
            /// Least memory of a node's flavor, in MB.
            minimum_flavor_ram: u32 as Int<0, 4_294_967_295> = 2048;
            /// Least number of a node's processors.
            minimum_flavor_vcpus: u32 as Int<0, 4_294_967_295> = 2;
            /// Volume type of the default storage class. Empty: Cinder's first.
            csi_cinder_default_volume_type: String as Text = String::new();
            /// Topologies that storage classes are kept to.
            csi_cinder_allowed_topologies: Vec<String> as List<Text> = Vec::new();
            /// Interface in the credential that a cluster has for the cloud.
            app_cred_interface_type: String as Text = "public".to_owned();
            /// Conditions that a control plane has to meet to be ready.
            k8s_control_plane_resource_conditions: Vec<String> as List<Text> = [
                "MachinesReady",
                "Ready",
                "EtcdClusterHealthy",
                "ControlPlaneComponentsHealthy",
            ].map(str::to_owned).to_vec();
        }
    }
}

mod labels {
    use super::{BindingMode, BlockDevice, ReclaimPolicy, config_section};

    config_section! {
        /// What labels of clusters say where neither the cluster nor its template has them.
        LabelDefaultsSection "capi_helm_cluster_labels" {
            /// Size, in GB, of etcd's disk. 0: etcd is on the root disk.
            etcd_blockdevice_size: i64 as Int<0, 2_147_483_647> = 0;
            /// Whether etcd's disk is a volume or one of the hypervisor's.
            etcd_blockdevice_type: BlockDevice as Choice = BlockDevice::Volume;
            /// Volume type of etcd's disk. Empty: Cinder's default.
            etcd_blockdevice_volume_type: String as Text = String::new();
            /// Availability zone of etcd's disk. Empty: any.
            etcd_blockdevice_volume_az: String as Text = String::new();
            /// Monitoring.
            monitoring_enabled: bool as Bool = false;
            /// Dashboard.
            kube_dashboard_enabled: bool as Bool = true;
            /// Whether nodes that are not ready are replaced.
            auto_healing_enabled: bool as Bool = true;
            /// Whether groups are scaled between their bounds.
            auto_scaling_enabled: bool as Bool = false;
            /// Lower bound of the default worker group. Empty: the group's.
            min_node_count: Option<i64> as Opt<Int<0, 2_147_483_647>> = None;
            /// Upper bound of the default worker group. Empty: the group's.
            max_node_count: Option<i64> as Opt<Int<0, 2_147_483_647>> = None;
            /// Whether users of the cloud are users of the cluster.
            keystone_auth_enabled: bool as Bool = false;
            /// Availability zone of volumes.
            csi_cinder_availability_zone: String as Text = "nova".to_owned(),
                was [("capi_helm", "csi_cinder_availability_zone")];
            /// What becomes of a volume that nobody claims any more.
            csi_cinder_reclaim_policy: ReclaimPolicy as Choice = ReclaimPolicy::Retain,
                was [("capi_helm", "csi_cinder_reclaim_policy")];
            /// When a volume is made.
            csi_cinder_volume_binding_mode: BindingMode as Choice = BindingMode::WaitForFirstConsumer,
                was [("capi_helm", "csi_cinder_volume_binding_mode")];
            /// File system of volumes.
            csi_cinder_fstype: String as Text = "ext4".to_owned(),
                was [("capi_helm", "csi_cinder_fstype")];
            /// Whether volumes may grow.
            csi_cinder_allow_volume_expansion: bool as Bool = true,
                was [("capi_helm", "csi_cinder_allow_volume_expansion")];
            /// Octavia's provider.
            octavia_provider: String as Text = "amphora".to_owned();
            /// How load is spread. Empty: SOURCE_IP_PORT with the provider ovn, ROUND_ROBIN else.
            octavia_lb_algorithm: String as Text = String::new();
            /// Whether load balancers look after their members.
            octavia_lb_healthcheck: bool as Bool = true;
            /// Whether the cluster's API has a floating IP.
            master_lb_floating_ip_enabled: bool as Bool = true;
            /// Addresses of nodes, in a cluster without a fixed network.
            fixed_subnet_cidr: String as Text = "10.0.0.0/24".to_owned();
            /// Who may reach the cluster's API, in CIDRs with commas between. Empty: everybody.
            api_master_lb_allowed_cidrs: String as Text = String::new();
            /// Further networks of nodes, by name, with blanks between.
            extra_network_names: String as Text = String::new(),
                was [("capi_helm_cluster_labels", "extra_network_name")];
            /// Volume type of root disks. Empty: [cinder] default_boot_volume_type.
            boot_volume_type: String as Text = String::new();
            /// Size, in GB, of root disks. Empty: [cinder] default_boot_volume_size.
            boot_volume_size: Option<i64> as Opt<Int<0, 2_147_483_647>> = None;
        }
    }
}

/// A kind of disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockDevice {
    /// A volume of Cinder.
    Volume,
    /// A disk of the hypervisor.
    Local,
}

/// What becomes of a volume that nobody claims any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReclaimPolicy {
    /// It stays.
    Retain,
    /// It is deleted.
    Delete,
}

/// When a volume is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindingMode {
    /// When a pod needs it.
    WaitForFirstConsumer,
    /// When it is claimed.
    Immediate,
}

impl Keyword for BlockDevice {
    const WORDS: &'static [(Self, &'static str)] = &[(Self::Volume, "volume"), (Self::Local, "local")];

    fn word(self) -> &'static str {
        match self {
            Self::Volume => "volume",
            Self::Local => "local",
        }
    }
}

impl Keyword for ReclaimPolicy {
    const WORDS: &'static [(Self, &'static str)] = &[(Self::Retain, "Retain"), (Self::Delete, "Delete")];

    fn word(self) -> &'static str {
        match self {
            Self::Retain => "Retain",
            Self::Delete => "Delete",
        }
    }
}

impl Keyword for BindingMode {
    const WORDS: &'static [(Self, &'static str)] = &[
        (Self::WaitForFirstConsumer, "WaitForFirstConsumer"),
        (Self::Immediate, "Immediate"),
    ];

    fn word(self) -> &'static str {
        match self {
            Self::WaitForFirstConsumer => "WaitForFirstConsumer",
            Self::Immediate => "Immediate",
        }
    }
}
