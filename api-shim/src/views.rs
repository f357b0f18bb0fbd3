//! Response shapes. Each is made from domain types and never from rows, and shows what its microversion has.
//!
//! Most are tables ([`attribute`]), which the API's document is made from too. Keys stand in Magnum's order. A key is
//! present with null when the attribute is unset, and absent when the version or the kind of view does not have it.

pub mod attribute;
pub mod cell;
pub mod certificate;
pub mod cluster;
pub mod cluster_template;
pub mod collection;
pub mod federation;
pub mod links;
pub mod mservice;
pub mod node_group;
pub mod operation;
pub mod quota;
pub mod root;
