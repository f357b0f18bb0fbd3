//! The documents know their way around: what they name is there, and every room is on the map.

use std::fs;

use super::crates::MAY_LIST;
use super::sources::{Source, files, root};

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
