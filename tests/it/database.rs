//! The three databases: the pool, the schema and the rows.
//!
//! | module | proves |
//! |---|---|
//! | `migrations` | what `magnum-db-manage upgrade` makes, adopts and refuses |
//! | `pool` | transactions, collisions, locks, outages |
//! | `rows` | rows that real Magnum wrote are read field by field, and ours are the same bytes |

mod migrations;
mod pool;
mod rows;
