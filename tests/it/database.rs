//! The three databases: the pool, the schema and the rows.
//!
//! | module | proves |
//! |---|---|
//! | `at_start` | an outage while the tables are looked at before the start is waited for |
//! | `galera_conflicts` | what a node of Galera's has rolled back, and not said so, is not half committed |
//! | `migrations` | what `magnum-db-manage upgrade` makes, adopts and refuses |
//! | `operations_read` | what operators search for and what is stuck, the same on all of them |
//! | `pool` | transactions, collisions, locks, outages |
//! | `prepared` | what is said to be kept is prepared once, and a server without room for it is an outage that passes |
//! | `rows` | rows that real Magnum wrote are read field by field, and ours are the same bytes |
//! | `seam` | work through a seam ends as the seam says: what simulations rely on |
//! | `silent_server` | a server that does not answer fails the work in time, threads come back, dead connections are replaced |

mod at_start;
mod galera_conflicts;
mod migrations;
mod operations_read;
mod pool;
mod prepared;
mod rows;
#[cfg(feature = "simulation")]
mod seam;
mod silent_server;
