//! Inside of a program rooms name only lower ones: there are no circles. diesel, which the conductor lists, is named
//! only in its store and in the part of its operations that *is* the journal.

use std::collections::BTreeSet;
use std::fs;

use super::sources::{Source, files, in_one_of, is_module, names, offenders, root};

/// The rooms of a program, from what puts it together down to what knows nobody: a room may name those after it.
struct Program {
    src: &'static str,
    rooms: &'static [&'static str],
}

/// From the wire to the drivers. Sealing and metrics are named by any.
const CONDUCTOR: Program = Program {
    src: "conductor/src",
    rooms: &[
        "cli",
        "app",
        "http",
        "rpc",
        "handlers",
        "periodic",
        "notifications",
        "operations",
        "objects_rpc",
        "certificates",
        "trusts",
        "store",
        "workflows",
        "drivers",
        "seal",
        "metric_definitions",
    ],
};

/// From the table of routes to the socket: what a handler reaches, then what a request has met before.
const API: Program = Program {
    src: "api-shim/src",
    rooms: &[
        "cli",
        "app",
        "router",
        "description",
        "routes",
        "openapi",
        "v1",
        "views",
        "request",
        "admin",
        "state",
        "driver_catalog",
        "conductor_api",
        "auth",
        "edge",
        "faults",
        "cloud",
        "image_catalog",
        "health",
        "store",
        "policy",
        "validation",
        "microversion",
        "connections",
        "metric_definitions",
    ],
};

/// The modules of its own crate that a file names: `crate::room` and `crate::{room, …}`.
fn own_modules(code: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for after in code.split("crate::").skip(1) {
        match after.strip_prefix('{').and_then(|rest| rest.split_once("};")) {
            Some((group, _)) => {
                found.extend(group.split(|c: char| !is_name(c)).filter(|name| !name.is_empty()))
            }
            None => found.extend(after.split(|c: char| !is_name(c)).next()),
        }
    }
    found
}

/// A file's code without its unit tests: these may look at what comes out above.
fn without_tests(source: &Source) -> &str {
    let is_test = source.path.ends_with("/tests.rs") || source.path.contains("/tests/");
    let code = source.code.split("#[cfg(test)]").next().unwrap_or_default();
    if is_test { "" } else { code }
}

/// What a program's files name of rooms above their own.
fn upward(program: &Program) -> Vec<String> {
    let mut found = Vec::new();
    for source in files(&[".rs"]) {
        let own = program
            .rooms
            .iter()
            .position(|room| is_module(&source.path, &format!("{}/{room}", program.src)));
        let above = own.map_or(&[][..], |own| &program.rooms[..own]);
        let named = own_modules(without_tests(&source));
        let named = named.iter().filter(|named| above.contains(named));
        found.extend(named.map(|named| format!("{} names {named}", source.path)));
    }
    found
}

#[test]
fn a_group_of_modules_is_read_like_single_ones() {
    assert_eq!(
        own_modules("use crate::{a, b::C};\nuse crate::d::E;"),
        ["a", "b", "C", "d"]
    );
}

#[test]
fn rooms_of_the_conductor_name_only_lower_ones() {
    let upward = upward(&CONDUCTOR);
    assert!(
        upward.is_empty(),
        "the order is CONDUCTOR:\n  {}",
        upward.join("\n  ")
    );
}

#[test]
fn rooms_of_the_api_name_only_lower_ones() {
    let upward = upward(&API);
    assert!(upward.is_empty(), "the order is API:\n  {}", upward.join("\n  "));
}

#[test]
fn every_room_has_its_place_in_the_order() {
    for program in [CONDUCTOR, API] {
        let folder = fs::read_dir(root().join(program.src)).expect("readable folder");
        let found: BTreeSet<String> = folder
            .map(|entry| entry.expect("readable entry").file_name())
            .map(|name| name.to_string_lossy().trim_end_matches(".rs").to_owned())
            .filter(|room| !["lib", "main", "bin"].contains(&room.as_str()))
            .collect();
        let placed: BTreeSet<String> = program.rooms.iter().map(|room| (*room).to_owned()).collect();
        assert_eq!(found, placed, "{}", program.src);
    }
}

#[test]
fn diesel_is_named_where_rows_are() {
    let allowed = [
        "common/db/src",
        "conductor/src/store",
        "conductor/src/operations",
        "tests/it",
        "tests/src",
    ];
    offenders(
        "diesel may be named in common/db/src, conductor/src/store and conductor/src/operations only",
        |source| {
            let named = names(&source.code, "diesel");
            named && !in_one_of(&source.path, &allowed)
        },
    );
}

/// Modules of `conductor/src/operations` that are the journal in the database; the others are pure or go
/// through them.
const JOURNAL_MODULES: &[&str] = &["journal", "lease"];

#[test]
fn inside_operations_only_the_journal_knows_the_database() {
    offenders(
        "only the modules of the journal may name diesel inside operations",
        |source| {
            let allowed: Vec<String> = JOURNAL_MODULES
                .iter()
                .map(|module| format!("conductor/src/operations/{module}"))
                .collect();
            let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
            is_module(&source.path, "conductor/src/operations")
                && names(&source.code, "diesel")
                && !in_one_of(&source.path, &allowed)
        },
    );
}
