//! What a driver needs of its management cluster.

use crate::rights::Right;

/// Kinds that a provider brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// The API group.
    pub name: &'static str,
    /// What has to be installed for it.
    pub provider: &'static str,
    /// The versions that the driver speaks, the best first.
    pub versions: &'static [&'static str],
    /// The kinds that it uses, as the API server's addresses have them.
    pub resources: &'static [&'static str],
}

/// Which driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The package magnum-capi-helm, 1.4.0: reference drivers.md 4.6 and 4.9.
    CapiHelm,
}

const CAPI_HELM: &[Group] = &[
    Group {
        name: "cluster.x-k8s.io",
        provider: "Cluster API",
        versions: &["v1beta1"],
        resources: &[
            "clusters",
            "machinedeployments",
            "machinehealthchecks",
            "machines",
        ],
    },
    Group {
        name: "bootstrap.cluster.x-k8s.io",
        provider: "Cluster API's bootstrap provider kubeadm",
        versions: &["v1beta1"],
        resources: &["kubeadmconfigtemplates"],
    },
    Group {
        name: "controlplane.cluster.x-k8s.io",
        provider: "Cluster API's control plane provider kubeadm",
        versions: &["v1beta1"],
        resources: &["kubeadmcontrolplanes"],
    },
    Group {
        name: "infrastructure.cluster.x-k8s.io",
        provider: "Cluster API's provider OpenStack",
        versions: &["v1beta1"],
        resources: &["openstackclusters", "openstackmachinetemplates"],
    },
    Group {
        name: "addons.stackhpc.com",
        provider: "the add-on provider of the chart",
        versions: &["v1alpha1"],
        resources: &["helmreleases", "manifests"],
    },
];

impl Needs {
    /// The groups of kinds.
    pub const fn groups(self) -> &'static [Group] {
        match self {
            Self::CapiHelm => CAPI_HELM,
        }
    }

    /// The account that has all the rights, and no others: what is installed is what is asked for.
    const fn account(self) -> &'static str {
        match self {
            Self::CapiHelm => include_str!("../../../deploy/kubernetes/magnum-capi-helm.yaml"),
        }
    }

    /// The rights.
    ///
    /// # Errors
    /// The manifest in this program cannot be read.
    pub fn rights(self) -> Result<Vec<Right>, String> {
        Right::all_in(self.account())
    }
}
