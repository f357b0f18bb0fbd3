//! magnum-conductor as a library.
//!
//! A request's way: [`rpc`] takes it from the queue, [`handlers`] records it together with the rows it changes,
//! [`operations`] claim it and walk it through its steps, [`workflows`] say which steps and call [`drivers`].
//! Each of these knows the ones after it and none before. [`store`] writes Magnum's tables for them, and
//! [`notifications`] tells other services. [`objects_rpc`] answers what needs no operation: methods of Magnum's objects.
//! [`certificates`] and [`trusts`] are what a cluster has elsewhere.

pub mod app;
pub mod certificates;
pub mod cli;
pub mod drivers;
pub mod handlers;
pub mod http;
pub mod metric_definitions;
pub mod notifications;
pub mod objects_rpc;
pub mod operations;
pub mod periodic;
pub mod rpc;
pub mod seal;
pub mod store;
pub mod trusts;
pub mod workflows;
