//! The house keeps its order: who may name what, how long a file may be, that nothing is ignored, and that the
//! documents know their way around.
//!
//! The rule of dependencies, in one place and checked on every run:
//!
//! - Crates are walls: which crate may list which is a table here, and Cargo keeps it. Only the crates of the
//!   wire, `common/rpc` and `conductor/rpc-server`, list lapin.
//! - diesel, which the conductor lists, is named there only in its store and in the part of its operations that *is*
//!   the journal.
//! - Inside the conductor rooms name only lower ones, from rpc to drivers.
//!
//! Comments are left out of the search: prose may name anything.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file: its path from the root of the workspace, and its code without comments.
struct Source {
    path: String,
    text: String,
    code: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the workspace")
        .to_path_buf()
}

/// Every file of the workspace whose name ends so, build output and what git does not keep left out.
fn files(endings: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("readable folder") {
            let path = entry.expect("readable entry").path();
            let name = path.file_name().expect("named").to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | ".git" | ".run" | "__pycache__") {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let Ok(text) = fs::read_to_string(&path) else {
                    continue;
                };
                let code = text.lines().map(code_of).collect::<Vec<_>>().join("\n");
                let path = path
                    .strip_prefix(root())
                    .expect("inside")
                    .to_string_lossy()
                    .into_owned();
                found.push(Source { path, text, code });
            }
        }
    }
    assert!(!found.is_empty(), "found no file that ends in {endings:?}");
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// The code of a line: neither its comment nor what stands between quotes.
fn code_of(line: &str) -> String {
    let mut code = String::new();
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if quoted => drop(letters.next()),
            '"' => quoted = !quoted,
            '/' if !quoted && letters.peek() == Some(&'/') => break,
            _ if quoted => {}
            _ => code.push(letter),
        }
    }
    code
}

/// Whether `code` names the crate or module `word` as a path: `word::`.
fn names(code: &str, word: &str) -> bool {
    let needle = format!("{word}::");
    code.match_indices(&needle).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        // `other::word::` is a module of something else, `my_word::` another word.
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    })
}

fn offenders(rule: &str, breaks: impl Fn(&Source) -> bool) {
    let found: Vec<String> = files(&[".rs"])
        .into_iter()
        .filter(|source| breaks(source))
        .map(|source| source.path)
        .collect();
    assert!(found.is_empty(), "{rule}\n  {}", found.join("\n  "));
}

/// Whether the file is module `module` of `crate_src`: `module.rs` or anything below `module/`.
fn is_module(path: &str, module: &str) -> bool {
    path == format!("{module}.rs") || path.starts_with(&format!("{module}/"))
}

fn in_one_of(path: &str, modules: &[&str]) -> bool {
    modules.iter().any(|module| is_module(path, module))
}

/// Which crates a crate of ours may list: the walls that Cargo then keeps. A crate that is not here fails the test.
/// `tests` and `deploy/dev` may list any.
const MAY_LIST: &[(&str, &[&str])] = &[
    ("common", &[]),
    ("common/tls", &[]),
    ("common/config", &["magnum-common"]),
    ("common/telemetry", &["magnum-config"]),
    ("common/objects", &["magnum-common"]),
    (
        "common/otlp",
        &["magnum-common", "magnum-config", "magnum-telemetry"],
    ),
    ("common/drivers", &["magnum-common", "magnum-config"]),
    (
        "common/rpc",
        &["magnum-common", "magnum-config", "magnum-telemetry", "magnum-tls"],
    ),
    (
        "common/openstack",
        &["magnum-common", "magnum-config", "magnum-tls"],
    ),
    ("common/db", &["magnum-common", "magnum-config", "magnum-drivers"]),
    ("conductor", BELOW_THE_CONDUCTOR),
    (
        "conductor/driver-api",
        &[
            "magnum-common",
            "magnum-config",
            "magnum-drivers",
            "magnum-openstack",
        ],
    ),
    (
        "conductor/engines/exec",
        &[
            "magnum-common",
            "magnum-config",
            "magnum-driver-api",
            "magnum-drivers",
            "magnum-kubernetes",
            "magnum-telemetry",
        ],
    ),
    ("conductor/kubernetes", &["magnum-common", "magnum-driver-api"]),
    (
        "conductor/rpc-server",
        &["magnum-common", "magnum-rpc", "magnum-telemetry"],
    ),
    ("api-shim", BELOW_THE_API),
    (
        "api-shim/rpc-client",
        &["magnum-common", "magnum-rpc", "magnum-telemetry"],
    ),
    ("deploy/dev", ANY),
    ("tests", ANY),
    ("tests/fuzz", ANY),
];

/// What the API is made of.
const BELOW_THE_API: &[&str] = &[
    "magnum-common",
    "magnum-config",
    "magnum-db",
    "magnum-drivers",
    "magnum-objects",
    "magnum-openstack",
    "magnum-otlp",
    "magnum-rpc",
    "magnum-rpc-client",
    "magnum-telemetry",
    "magnum-tls",
];

/// What the conductor is made of.
const BELOW_THE_CONDUCTOR: &[&str] = &[
    "magnum-common",
    "magnum-config",
    "magnum-db",
    "magnum-driver-api",
    "magnum-drivers",
    "magnum-engine-exec",
    "magnum-objects",
    "magnum-openstack",
    "magnum-otlp",
    "magnum-rpc",
    "magnum-rpc-server",
    "magnum-telemetry",
];

/// Every crate of ours.
const ANY: &[&str] = &["magnum-"];

/// Crates of others that only these of ours may list.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("lapin", &["common/rpc", "conductor/rpc-server", "tests"]),
    ("backoff", &["common"]),
    ("diesel", &["common/db", "conductor", "tests"]),
    ("diesel_migrations", &["common/db"]),
    ("r2d2", &["common/db"]),
];

/// The names under `[dependencies]` and `[dev-dependencies]` of a manifest.
fn listed(manifest: &str) -> Vec<&str> {
    let mut listed = Vec::new();
    let mut is_dependency = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_dependency = line.ends_with("dependencies]") && !line.starts_with("[workspace");
        } else if is_dependency && let Some((name, _)) = line.split_once([' ', '.', '=']) {
            listed.push(name);
        }
    }
    listed
}

#[test]
fn a_crate_lists_only_what_its_place_allows() {
    let mut wrong = Vec::new();
    for manifest in files(&["Cargo.toml"]) {
        let place = manifest.path.trim_end_matches("/Cargo.toml");
        if place == "Cargo.toml" {
            continue;
        }
        let Some((_, allowed)) = MAY_LIST.iter().find(|(known, _)| *known == place) else {
            wrong.push(format!(
                "{place}: which crates of ours may it list? Say so in MAY_LIST"
            ));
            continue;
        };
        for name in listed(&manifest.text) {
            let is_ours = name.starts_with("magnum-");
            let is_allowed = allowed.contains(&name) || *allowed == ANY;
            let is_elsewhere = ONLY_IN
                .iter()
                .any(|(only, places)| *only == name && !places.contains(&place));
            if (is_ours && !is_allowed) || is_elsewhere {
                wrong.push(format!("{place} may not list {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "walls:\n  {}", wrong.join("\n  "));
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

/// The arguments of every call of a macro whose name passes, without what stands between quotes.
fn macro_arguments(code: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("!(") {
        let before = &code[..at];
        let begin = before
            .rfind(|c: char| !c.is_alphanumeric() && c != '_')
            .map_or(0, |i| i + 1);
        if !is_wanted(&before[begin..]) {
            continue;
        }
        let arguments = &code[at + 2..];
        let mut depth = 1;
        let end = arguments.find(|c| {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        found.push(&arguments[..end.unwrap_or(arguments.len())]);
    }
    found
}

/// Whether a log macro's arguments name a field with a dot, such as `one.two = value`.
fn has_field_by_hand(arguments: &str) -> bool {
    arguments.match_indices('=').any(|(at, _)| {
        let is_comparison =
            arguments[at + 1..].starts_with('=') || arguments[..at].ends_with(['=', '!', '<', '>']);
        let word = arguments[..at]
            .trim_end()
            .rsplit(|c: char| !c.is_alphanumeric() && c != '_' && c != '.')
            .next()
            .unwrap_or_default();
        !is_comparison && word.contains('.') && word.starts_with(|c: char| c.is_ascii_lowercase())
    })
}

#[test]
fn field_names_stand_in_one_list() {
    let is_log = |name: &str| {
        let name = name.strip_suffix("_span").unwrap_or(name);
        ["trace", "debug", "info", "warn", "error", "event", "span"].contains(&name)
    };
    assert!(has_field_by_hand("a.b = %x, \n") && has_field_by_hand("%c, one.two.three\n = x"));
    assert!(!has_field_by_hand("{ field::A } = a.b(), kind = x.y == z"));
    offenders(
        "a field's name is a constant of common/telemetry/src/field.rs: `{ field::CLUSTER } = %uuid`",
        |source| {
            macro_arguments(&source.code, is_log)
                .into_iter()
                .any(has_field_by_hand)
        },
    );
}

#[test]
fn metric_names_stand_in_one_list_per_program() {
    let macros = ["counter", "gauge", "histogram"];
    offenders(
        "a metric's name is a constant of the program's metric_definitions.rs",
        |source| {
            let literal = |name: &str| {
                let called = format!("{name}!(");
                source
                    .text
                    .split(&called)
                    .skip(1)
                    .any(|after| after.trim_start().starts_with('"'))
            };
            macros.into_iter().any(literal)
        },
    );
}

#[test]
fn the_document_of_metrics_lists_every_metric() {
    let page = fs::read_to_string(root().join("docs/metrics.md")).expect("the page");
    let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let metrics = [
        magnum_api_shim::metric_definitions::ALL,
        magnum_conductor::metric_definitions::ALL,
    ];
    let defined: Vec<String> = metrics
        .into_iter()
        .flatten()
        .map(|metric| {
            let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let (kind, labels) = (metric.kind.as_str(), labels.join(", "));
            format!("| `{}` | {kind} | {labels} | {} |", metric.name, metric.meaning)
        })
        .collect();
    assert_eq!(
        listed, defined,
        "docs/metrics.md and the two metric_definitions.rs differ"
    );
}

/// The rooms of the conductor, from the wire to the drivers. A room may name those after it: there are no circles.
/// `app`, `cli` and `http` put them together; metrics and sealing are named by any.
const ROOMS: &[&str] = &[
    "rpc",
    "handlers",
    "objects_rpc",
    "periodic",
    "notifications",
    "operations",
    "certificates",
    "store",
    "workflows",
    "drivers",
];

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

#[test]
fn rooms_of_the_conductor_name_only_lower_ones() {
    assert_eq!(
        own_modules("use crate::{a, b::C};\nuse crate::d::E;"),
        ["a", "b", "C", "d"]
    );
    offenders(
        "a room of the conductor names a higher one; the order is ROOMS",
        |source| {
            let room = ROOMS
                .iter()
                .position(|room| is_module(&source.path, &format!("conductor/src/{room}")));
            room.is_some_and(|room| {
                own_modules(&source.code)
                    .iter()
                    .any(|named| ROOMS[..room].contains(named) || ["app", "cli", "http"].contains(named))
            })
        },
    );
}

/// The documents that say where things are.
fn documents() -> Vec<Source> {
    files(&[".md"])
        .into_iter()
        .filter(|source| {
            source.path == "README.md"
                || source.path == "migrations/README.md"
                || source.path.starts_with("docs/")
        })
        .collect()
}

/// What stands between backquotes outside of code blocks.
fn quoted(markdown: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            found.extend(line.split('`').skip(1).step_by(2));
        }
    }
    found
}

/// Folders of the checkout; a quoted text that begins with one is a path.
const FLOORS: &[&str] = &[
    "api-shim/",
    "common/",
    "conductor/",
    "deploy/",
    "docs/",
    "migrations/",
    "tests/",
];

#[test]
fn every_path_and_link_of_a_document_leads_somewhere() {
    let mut astray = Vec::new();
    for document in documents() {
        for path in quoted(&document.text) {
            let is_path = FLOORS.iter().any(|floor| path.starts_with(floor));
            let is_pattern = path.contains(['<', '{', '*', '…', ' ']) || path.starts_with("tests/.run");
            if is_path && !is_pattern && !root().join(path).exists() {
                astray.push(format!("{}: `{path}`", document.path));
            }
        }
        let folder = root().join(&document.path);
        let folder = folder.parent().expect("a file lies in a folder");
        for link in document.text.split("](").skip(1) {
            let link = link.split([')', '#']).next().unwrap_or_default();
            if !link.is_empty() && !link.contains("://") && !folder.join(link).exists() {
                astray.push(format!("{}: ({link})", document.path));
            }
        }
    }
    assert!(
        astray.is_empty(),
        "these lead nowhere:\n  {}",
        astray.join("\n  ")
    );
}

#[test]
fn the_map_of_the_house_has_every_room() {
    let map = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).expect("the map");
    let named = quoted(&map);
    let mut missing = Vec::new();
    for part in ["common/src", "conductor/src", "conductor/engines", "api-shim/src"] {
        for entry in fs::read_dir(root().join(part)).expect("readable folder") {
            let name = entry.expect("readable entry").file_name();
            let name = name.to_string_lossy();
            let room = name.strip_suffix(".rs").unwrap_or(&name);
            let path = format!("{part}/{room}");
            let is_named = named
                .iter()
                .any(|quoted| *quoted == format!("{path}.rs") || quoted.starts_with(&format!("{path}/")));
            if !is_named && !matches!(room, "lib" | "main" | "bin") {
                missing.push(path);
            }
        }
    }
    for (place, _) in MAY_LIST {
        let room = format!("{place}/");
        if !named.iter().any(|quoted| quoted.starts_with(&room)) {
            missing.push((*place).to_owned());
        }
    }
    missing.sort();
    assert!(
        missing.is_empty(),
        "docs/ARCHITECTURE.md does not say what is in\n  {}",
        missing.join("\n  ")
    );
}

#[test]
fn every_difference_has_its_reason() {
    let page = fs::read_to_string(root().join("docs/differences.md")).expect("the page");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| What"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(rows.len() > 50, "{} rows", rows.len());
    for row in &rows {
        assert!(
            row.len() == 4 && row.iter().all(|column| !column.is_empty()),
            "what, Magnum, here, why: {row:?}"
        );
    }
    let mut whats: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    whats.sort_unstable();
    let twice: Vec<&&str> = whats
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| &pair[0])
        .collect();
    assert!(twice.is_empty(), "said twice: {twice:?}");
}

const LIMIT: usize = 500;

#[test]
fn no_file_is_longer_than_one_topic_needs() {
    // Tests may be long: their length is cases, not topics.
    let rule = format!("more than {LIMIT} lines before the tests: are there two topics?");
    offenders(&rule, |source| {
        let is_test = source.path.starts_with("tests/it/") || source.path.ends_with("/tests.rs");
        let code = source
            .text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        !is_test && code.lines().count() > LIMIT
    });
}

#[test]
fn no_test_is_ignored() {
    let attribute = format!("#[{}", "ignore");
    offenders("a test that does not run proves nothing", |source| {
        source.code.contains(&attribute)
    });
}

#[test]
fn every_module_says_what_it_is_for() {
    offenders("a file without module documentation", |source| {
        source.path.contains("/src/")
            && !source.text.starts_with("//!")
            && !source.text.starts_with("// @generated")
    });
}

#[test]
fn nothing_depends_on_where_the_checkout_lies() {
    let outside = [
        ["..", "/shared"].concat(),
        ["/", "work/"].concat(),
        ["/", "home/"].concat(),
    ];
    let named: Vec<String> = files(&[".rs", ".toml", ".sh", ".py", ".md", ".sql", ".json", "run"])
        .into_iter()
        .filter(|source| !source.path.starts_with("tests/fixtures/"))
        .filter(|source| outside.iter().any(|path| source.text.contains(path)))
        .map(|source| source.path)
        .collect();
    assert!(
        named.is_empty(),
        "these files name a path outside of the checkout:\n  {}",
        named.join("\n  ")
    );
}
