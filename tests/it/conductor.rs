//! The conductor's own work: operations, drivers, certificates, what it looks at and whom it answers.
//!
//! | module | proves |
//! |---|---|
//! | `certificates` | what we make, sign and keep is what others read, and the reverse |
//! | `engines` | every engine and every shipped driver keeps the same rules |
//! | `example_drivers` | the shipped example drivers do what their files say |
//! | `health_check`, `status_sync` | conductors share the clusters and write what the driver says, and nothing else |
//! | `health_garbage` | what makes no sense as a health becomes none |
//! | `kubernetes_health`, `kubernetes_monitor` | what a real API server makes of a cluster's health |
//! | `lease_model` | a model of leases: whatever happens in which order, one driver at a time works on a cluster |
//! | `objects_rpc` | each method of each object does the same through our conductor as directly on the database |
//! | `operations` | accepting, running, retrying, fencing, answering |
//! | `query_counts` | many clusters cost as many statements as one |
//! | `sealing` | what is sealed opens in its own row only; what an older release has sealed, and how it is brought to that |
//! | `simulation` | on thousands of random schedules in virtual time, everything ends as promised |
//! | `trusts` | users and trusts of clusters in the real Keystone: made once, removed whatever happens |
//! | `utilisation_check` | who shows what a cluster uses, and that health does not suffer by it |

mod certificates;
mod engines;
pub(crate) mod example_drivers;
mod health_check;
mod health_garbage;
mod kubernetes_health;
mod kubernetes_monitor;
mod lease_model;
mod objects_rpc;
mod operations;
mod query_counts;
mod sealing;
#[cfg(feature = "simulation")]
mod simulation;
mod status_sync;
mod trusts;
mod utilisation_check;
