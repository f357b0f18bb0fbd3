//! Checks of what a client sent. All of it is pure: no database, no clock, no network.
//!
//! | module | topic |
//! |---|---|
//! | [`body`] | types of a JSON body, attribute by attribute |
//! | [`patch`] | the rules of a JSON patch, and its application |
//! | [`query`] | arguments of the query string, paging |
//! | [`cluster_template`], [`cluster`], [`node_group`], [`actions`], [`certificate`], [`quota`], [`federation`] | what the attributes of each resource mean together |
//! | [`labels`], [`names`] | labels' inheritance and differences, generated names |
//! | [`python`] | how Python writes values, where the contract shows it |
//!
//! A refusal names the attribute and the value. Texts are Magnum's where it has one; where Magnum answers 500
//! for a client's mistake, it is a 400 here.

pub mod actions;
pub mod body;
pub mod certificate;
pub mod cluster;
pub mod cluster_template;
pub mod federation;
pub mod labels;
pub mod names;
pub mod node_group;
pub mod patch;
pub mod python;
pub mod query;
pub mod quota;
