//! The engine `cluster-api`: clusters as objects of Cluster API in a management cluster.
//!
//! | module | topic |
//! |---|---|
//! | `driver`, `ownership` | what `k8s_capi_helm_v1` does for each task, and with a cluster's credential |
//! | `host_needs` | what a conductor's host has to have |
//! | `options` | `[capi_helm]` and `[capi_helm_cluster_labels]` |
//! | `names` | what a cluster and its parts are called in the management cluster |
//! | `labels` | the labels of clusters and templates that the driver reads |
//! | `flavors` | whether a flavor is large enough for a node |
//! | `node_counts` | the bounds between which a group is scaled |
//! | `helm_values` | the values of the chart's release, from Magnum's rows and what the cloud has |
//! | `helm`, `release` | the program helm, and what it leaves when it is killed |
//! | `cloud`, `credentials`, `believed` | what the cloud has, and how a cluster talks to it |
//! | `management`, `secrets` | a project's room in the management cluster |
//! | `watched` | what is kept of objects that are watched |
//! | `observed`, `health` | what the objects of a cluster say of it |
//!
//! Names, values and statuses are those of the package magnum-capi-helm 1.4.0 (reference drivers.md, section 4): a cluster that its
//! conductor has made is operated by this one without a change in the management cluster, and the other way round.

mod believed;
mod cloud;
mod credentials;
mod driver;
mod flavors;
mod health;
mod helm;
mod helm_values;
mod host_needs;
mod labels;
mod management;
mod names;
mod node_counts;
mod observed;
mod options;
mod ownership;
mod release;
mod secrets;
mod watched;

pub use self::driver::CapiHelmDriver;
pub use self::host_needs::missing_here;

use magnum_config::Declared;

/// The sections of `magnum.conf` that the engine reads.
pub fn sections() -> Vec<Declared> {
    vec![
        Declared::of::<options::CapiHelmSection>(),
        Declared::of::<options::LabelDefaultsSection>(),
    ]
}
