//! Names of fields and metrics stand in one list each, and the document of metrics has every one.

use std::fs;

use super::sources::{offenders, root};

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
