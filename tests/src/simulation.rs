//! Simulation: the real code of several conductors in one thread, with virtual time, on schedules that a seed decides.
//!
//! ```text
//! seed ─▶ plan: conductors, requests, troubles          requests ─▶ broker in this process ─▶ consumers
//!                                                                                               │ the conductor's own code
//!            verdict ◀─ history ◀─ rows, driver's record ◀─ database (one connection, SQLite) ◀─┘─▶ scripted driver
//! ```
//!
//! Each schedule has two to five conductors, clusters of a few tenants, and troubles: conductors that die before or after any
//! of their accesses to the database or at a call of their driver, that stop in good order, come back or do not; a database that
//! is away, slow, swallows commits, speaks in unknown words, holds rows locked; lines that stand still; hosts on which nothing can
//! be started, or that come back without a driver; clocks that differ; messages that are repeated,
//! late, or lost before they are confirmed; drivers that fail, hang, panic, go on in a cloud, or are loaded on one conductor
//! only. Then all troubles end, everything has to end, too, and [`checker`](crate::checker) says whether what was promised was
//! kept.
//!
//! Time is tokio's paused clock: when all wait, it jumps to the next moment for which somebody waits. All that is random comes
//! from one source: each schedule runs on a thread of its own, whose name is its seed, and a shim before libc's `getrandom`
//! answers from a generator with that seed ([`randomness`]). So a seed is replayed exactly, by the hash of everything that
//! happened, and the programs know nothing of it but the seam of their database ([`magnum_db::simulated`]).
//!
//! Not seen: what happens inside of a transaction. They are interleaved, and never overlap: what isolation levels make of
//! concurrent ones is for the tests on real servers, and so are sockets, processes and the real brokers.
//!
//! | module | topic |
//! |---|---|
//! | [`randomness`] | one source of it |
//! | [`plan`] | what a seed means |
//! | [`database`] | the connection that all share, and its clock |
//! | [`mod@line`] | a conductor's way to the database, and its death |
//! | [`driver`] | the driver |
//! | [`cloud`] | what drivers have built |
//! | [`record`] | what drivers wrote down |
//! | [`conductor`] | a conductor's parts |
//! | [`client`] | requests on their way to the broker |
//! | [`schedule`] | one schedule from begin to end |
//! | [`trace`] | all that happened, as a hash and in words |
//! | [`verdict`] | what was promised |
//! | [`command`] | many schedules, replays, smaller ones |

pub mod client;
pub mod cloud;
pub mod command;
pub mod conductor;
pub mod database;
pub mod driver;
pub mod line;
pub mod plan;
pub mod randomness;
pub mod record;
pub mod schedule;
pub mod trace;
pub mod verdict;
