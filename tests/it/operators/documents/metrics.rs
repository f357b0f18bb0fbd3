//! Every metric that a document names exists: an alert on one that does not would never fire.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use super::{documents, root};

/// How names of metrics end; other names that begin with `magnum_` are crates and columns.
const ENDINGS: &[&str] = &[
    "_total",
    "_seconds",
    "_keys",
    "_connections",
    "_open",
    "_loaded",
    "_failed",
];

fn named_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with("magnum_") && ENDINGS.iter().any(|ending| word.ends_with(ending)))
}

#[test]
fn documents_name_metrics_that_exist() -> Result<()> {
    let defined: BTreeSet<&str> = [
        magnum_api_shim::metric_definitions::ALL,
        magnum_conductor::metric_definitions::ALL,
    ]
    .into_iter()
    .flatten()
    .map(|metric| metric.name)
    .collect();
    let mut in_operations = 0;
    for name in documents()? {
        let text = std::fs::read_to_string(root().join(&name))?;
        for metric in named_in(&text) {
            ensure!(defined.contains(metric), "{name}: there is no metric {metric}");
            in_operations += usize::from(name == "docs/OPERATIONS.md");
        }
    }
    ensure!(
        in_operations >= 10,
        "docs/OPERATIONS.md names {in_operations} metrics"
    );
    Ok(())
}
