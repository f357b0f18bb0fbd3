//! Operations as rows of a table; on a narrow screen each row is a card, whose cells name their column.

use magnum_db::read::operations::Operation;
use maud::{Markup, html};

use super::filter::Filter;
use super::text::{age, age_and_limit, id, is_open, page_of, said, state, time};

/// Longest text of a reason in a row, in characters; the operation's page has all of it.
const LONGEST: usize = 400;

/// The operations in this order. `name_of` knows the names of clusters by uuid.
pub fn operations<'a, 'n>(
    operations: impl Iterator<Item = &'a Operation>,
    now_ms: i64,
    name_of: impl Fn(&str) -> Option<&'n str>,
) -> Markup {
    html! {
        table.operations {
            thead { tr {
                th { "Cluster" } th { "Operation" } th { "State" } th { "Age" } th { "What it says" }
            } }
            tbody { @for operation in operations {
                (row(operation, now_ms, name_of(&operation.cluster_uuid)))
            } }
        }
    }
}

fn row(operation: &Operation, now_ms: i64, name: Option<&str>) -> Markup {
    let of_cluster = Filter::of_text(&operation.cluster_uuid).address();
    html! {
        tr {
            td data-label="Cluster" {
                div.cell {
                    a href=(of_cluster) { @if let Some(name) = name { strong { (name) } } @else { "gone, or nameless" } }
                    br; (id(&operation.cluster_uuid))
                }
            }
            td data-label="Operation" {
                div.cell {
                    a href=(page_of(operation)) { strong { (operation.kind) } }
                    br; (id(&operation.uuid))
                    @let means = means(operation);
                    @if !means.is_empty() { br; small { (means) } }
                }
            }
            td data-label="State" { div.cell { (state(&operation.state)) (attempts(operation, now_ms)) } }
            td data-label="Age" {
                div.cell {
                    @if let Some(ended) = operation.ended_ms {
                        span.number title=(time(ended)) { (age(now_ms - ended)) " ago" }
                        br; small { "took " (age(ended - operation.created_ms)) }
                    } @else { (age_and_limit(operation, now_ms)) }
                }
            }
            td.said data-label="What it says" {
                div.cell { @match said(operation) {
                    Some(text) => (cut(text)),
                    None => span.none { (if is_open(operation) { "nothing yet" } else { "nothing" }) },
                } }
            }
        }
    }
}

/// Where it is, while it is open, and by which driver it is done.
fn means(operation: &Operation) -> String {
    let step = operation.step.as_ref().filter(|_| is_open(operation));
    let driver = operation.driver.as_ref().map(|driver| {
        let version = operation.driver_version.as_deref().unwrap_or_default();
        format!("driver {driver} {version}").trim_end().to_owned()
    });
    let parts: Vec<String> = step
        .map(|step| format!("step {step}"))
        .into_iter()
        .chain(driver)
        .collect();
    parts.join(", ")
}

/// Who works on it, how often that failed, and when it is tried again.
fn attempts(operation: &Operation, now_ms: i64) -> Markup {
    html! {
        @if operation.failures > 0 {
            br; small { "attempt " (operation.attempts) ", " (operation.failures) " failed" }
        }
        @if is_open(operation) {
            @if let Some(due) = operation.next_attempt_ms.filter(|_| operation.state == "retrying") {
                br; small { @if due > now_ms { "again in " (age(due - now_ms)) } @else { "due now" } }
            }
            @if operation.stop_requested { br; small { "to be stopped" } }
            @if let Some(owner) = &operation.owner { br; small { (owner) } }
        }
    }
}

/// The beginning of a text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} …", text[..at].trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        let long = "ä".repeat(LONGEST + 1);
        assert_eq!(cut(&long), format!("{} …", "ä".repeat(LONGEST)));
    }
}
