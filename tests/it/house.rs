//! The house keeps its order, which is checked by reading its sources, and its tools do what they say:
//!
//! | file | topic |
//! |---|---|
//! | `crates` | which crate may list which; only the crates of the wire list lapin |
//! | `rooms` | inside of a program rooms name only lower ones; where diesel may be named |
//! | `names` | fields of the log and metrics stand in one list each |
//! | `map` | what the documents name is there, and every room is on the map |
//! | `files` | how long a file may be, that it says what it is for, that nothing is ignored |
//! | `built_dependencies` | a new checkout gets the crates of others as they were built, and nothing of ours |
//! | `harness` | servers of the tests come up, can be taken down, and lines can be cut |
//! | `heat` | the tests' Heat runs stacks without machines, and shows them to a cluster's trustee |
//! | `helm` | the tests' helm keeps releases on a real API server as helm 3 does |
//! | `bench` | the benchmarks measure what they say |

mod bench;
mod built_dependencies;
mod crates;
mod files;
mod harness;
mod heat;
mod helm;
mod map;
mod names;
mod rooms;
mod sources;
