//! What every file keeps to: its length, its documentation, and that nothing is ignored or outside of the checkout.

use super::sources::{files, offenders};

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
fn every_module_has_a_description() {
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
