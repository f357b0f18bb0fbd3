//! The house keeps its order, checked by reading its sources:
//!
//! | file | topic |
//! |---|---|
//! | `crates` | which crate may list which; only the crates of the wire list lapin |
//! | `rooms` | inside of a program rooms name only lower ones; where diesel may be named |
//! | `names` | fields of the log and metrics stand in one list each |
//! | `map` | what the documents name is there, and every room is on the map |
//! | `files` | how long a file may be, that it says what it is for, that nothing is ignored |

mod crates;
mod files;
mod map;
mod names;
mod rooms;
mod sources;
