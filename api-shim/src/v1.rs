//! The handlers, one file per resource: what a request means, in the order of its checks.
//!
//! Types of the body first, then policy, then what needs a look-up, then what needs the database's or a
//! conductor's consent. (Magnum looks images up before it asks whether the caller may create anything.)

mod accepted;
pub mod actions;
pub mod certificates;
pub mod cluster_templates;
pub mod clusters;
pub mod credentials;
pub mod driver_api;
pub mod federations;
pub mod mservices;
pub mod node_groups;
pub mod operations;
pub mod quotas;
pub mod root;
pub mod stats;
