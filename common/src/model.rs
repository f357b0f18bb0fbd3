//! The domain, without diesel and without the wire: what a cluster, a template, a node group is.
//!
//! Rows (`db::rows`) and versioned objects (`objects`) convert to and from these types; views of the REST API
//! are made from them. Field order is the order of Magnum's object fields, which is the wire order.

pub mod cluster;
pub mod cluster_template;
pub mod node_group;
pub mod reboot;
pub mod records;
pub mod status;

use indexmap::IndexMap;

pub use cluster::Cluster;
pub use cluster_template::ClusterTemplate;
pub use node_group::{NodeCounts, NodeGroup, Role};
pub use reboot::RebootType;
pub use records::{Federation, MagnumService, Quota, X509KeyPair};
pub use status::{Action, ClusterStatus, HealthStatus, Outcome};

/// A map of strings in insertion order: JSON columns and wire objects keep the order they were written in.
pub type StringMap = IndexMap<String, String>;

/// A point in time as rows hold it: UTC without a zone.
pub type Timestamp = chrono::NaiveDateTime;
