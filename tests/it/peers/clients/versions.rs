//! The versions in `docs/clients.md` are those that the tests install, and every test of clients has its row.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// What the document says before the names of Debian's packages.
const DEBIAN: &str = "Debian";

fn read(path: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// The cells of each row of the first table, that of clients: client, versions, from, modules, what it does, notes.
fn rows(document: &str) -> Vec<Vec<&str>> {
    let lines = document.lines().skip_while(|line| !line.starts_with('|'));
    let table = lines.take_while(|line| line.starts_with('|'));
    let rows = table
        .filter(|line| line.starts_with("| "))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect());
    // The first one is the head.
    rows.skip(1).collect()
}

/// The version of a package, without what Debian adds behind it.
fn installed(name: &str) -> Result<String> {
    let found = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${Version}", name])
        .output()
        .context("dpkg-query")?;
    ensure!(
        found.status.success(),
        "{name} is not installed: tests/run does that"
    );
    let version = String::from_utf8(found.stdout)?;
    let version = version.rsplit_once('-').map_or(version.as_str(), |(own, _)| own);
    Ok(version
        .rsplit_once(':')
        .map_or(version, |(_, own)| own)
        .to_owned())
}

/// The version that a list of requirements pins.
fn pinned(list: &str, name: &str) -> Result<String> {
    let text = read(list)?;
    let pins = text.lines().filter_map(|line| line.split_once("=="));
    let found = pins.into_iter().find(|(pinned, _)| *pinned == name);
    let (_, version) = found.with_context(|| format!("{list} has no {name}"))?;
    Ok(version.to_owned())
}

#[test]
fn the_versions_in_the_document_are_those_of_the_tests() -> Result<()> {
    let document = read("docs/clients.md")?;
    let rows = rows(&document);
    ensure!(rows.len() > 8, "{rows:#?}");
    for row in &rows {
        let [client, versions, from, ..] = row.as_slice() else {
            anyhow::bail!("{row:?}");
        };
        let lists: Vec<&str> = from.split(", ").map(|list| list.trim_matches('`')).collect();
        for package in versions.split(", ") {
            let (name, said) = package
                .split_once(' ')
                .with_context(|| format!("{client}: {package} has no version"))?;
            let found = if lists == [DEBIAN] {
                installed(name)
            } else {
                let found = lists.iter().find_map(|list| pinned(list, name).ok());
                found.with_context(|| format!("{client}: no {name} in {lists:?}"))
            };
            let found = found?;
            ensure!(
                found == said,
                "{client}: {name} is {found}, the document says {said}"
            );
        }
    }
    Ok(())
}

#[test]
fn every_module_of_clients_is_in_the_document() -> Result<()> {
    let document = read("docs/clients.md")?;
    let told: BTreeSet<String> = rows(&document)
        .iter()
        .filter_map(|row| row.get(3))
        .flat_map(|modules| modules.split(", "))
        .map(|module| module.trim_matches('`').to_owned())
        .collect();
    let clients = read("tests/it/peers/clients.rs")?;
    let modules = clients
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
        .filter(|module| !["world", "versions"].contains(module))
        .map(|module| format!("clients::{module}"));
    let modules: BTreeSet<String> = modules.chain(["dashboard_forms".to_owned()]).collect();
    let different: Vec<_> = modules.symmetric_difference(&told).collect();
    ensure!(different.is_empty(), "in one and not in the other: {different:?}");
    Ok(())
}
