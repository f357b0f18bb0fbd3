//! The handlers, one file per resource: what a request means, in the order of its checks.
//!
//! Types of the body first, then policy, then what needs a look-up, then what needs the database's or a
//! conductor's consent. (Magnum looks images up before it asks whether the caller may create anything.)
//!
//! # Errors of every route
//!
//! The handlers name what is theirs besides.
//!
//! | status | when |
//! |---|---|
//! | 400 | an argument of the query that the route does not have; a path that is not UTF-8 |
//! | 400 | a body that is not JSON, or that the route does not take; a value that the database cannot store |
//! | 401 | no valid token |
//! | 403 | the policy denies it |
//! | 406 | a microversion that is not served, or an `Accept` that excludes JSON |
//! | 408, 413, 415 | a body that is late, too large for us or for the broker, or of another type |
//! | 414, 429, 431 | a path too long, too many requests, headers too large: [`crate::edge::limits`] |
//! | 500 | a mistake of the service's own |
//! | 503 | Keystone or the database is away, or the broker, where a conductor is asked |
//!
//! # Errors of some routes
//!
//! Where a cluster, a template or a federation is given by name: 409 for a name that several have.
//!
//! Look-ups in other services ([`crate::cloud`]): 400 for what does not exist, 409 for a name that several
//! have, 401 or 403 where the service refuses the caller, 503 where it is away.
//!
//! Calls of a conductor, whose answer is waited for: a refusal keeps the status of its exception (404 for a
//! cluster that is gone meanwhile); 501 from a conductor that does not know the method; 503 without an answer
//! within `[DEFAULT] rpc_response_timeout`.

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
mod node_names;
pub mod operations;
pub mod quotas;
pub mod root;
pub mod stats;
