//! One operation: what is known of it, what can be done about it, and everything that happened to it. The same as
//! `magnum-conductor operations show` prints.

use magnum_db::read::operations::{Operation, OperationEvent};
use maud::{Markup, html};

use super::filter::Filter;
use super::text::{age, age_and_limit, command, id, is_open, page_of, said, state, time};
use crate::store::operation_search::History;

/// The content of the page.
pub fn content(history: &History) -> Markup {
    let operation = &history.record.operation;
    let name = history.cluster_name.as_deref();
    html! {
        h1 {
            (operation.kind) " of " (name.unwrap_or("a cluster that is gone, or nameless")) " " (state(&operation.state))
        }
        @if let Some(said) = said(operation) { p.quote { (said) } }
        (what_to_do(history))
        section {
            h2 { "What is known" }
            dl.facts { (facts(history)) }
        }
        section {
            h2 { "What happened" }
            @if history.events.is_empty() { p.none { "Nothing is recorded." } } @else { (events(history)) }
        }
    }
}

/// A row of the facts.
fn fact(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

fn facts(history: &History) -> Markup {
    let operation = &history.record.operation;
    let now_ms = history.now_ms;
    let of_cluster = Filter::of_text(&operation.cluster_uuid).address();
    let moment = |ms: Option<i64>| ms.map(|ms| html! { (time(ms)) " " small { (near(ms, now_ms)) } });
    let text = |text: &Option<String>| text.as_deref().map(|text| html! { (text) });
    let code = |text: &Option<String>| text.as_deref().map(id);
    let ahead = |ms: Option<i64>| moment(ms.filter(|_| is_open(operation)));
    let yes = |is_so: bool| is_so.then(|| html! { "yes" });
    let trace = history.record.traceparent.as_deref();
    let trace = trace.and_then(|parent| parent.split('-').nth(1)).map(id);
    let driver = operation.driver.as_ref().map(|driver| {
        html! { (driver) " " (operation.driver_version.as_deref().unwrap_or_default()) }
    });
    let rows = [
        ("Operation", Some(id(&operation.uuid))),
        (
            "Cluster",
            Some(html! { (id(&operation.cluster_uuid)) " " a href=(of_cluster) { "its operations" } }),
        ),
        ("Project", code(&operation.project_id)),
        ("User", code(&operation.user_id)),
        ("Request", code(&operation.request_id)),
        ("Message", code(&operation.message_id)),
        ("Trace", trace),
        (
            "Age and limit",
            is_open(operation).then(|| age_and_limit(operation, now_ms)),
        ),
        ("Step", text(&operation.step)),
        ("Driver", driver),
        (
            "Attempts",
            Some(html! { (operation.attempts) ", " (operation.failures) " failed" }),
        ),
        ("Next attempt", ahead(operation.next_attempt_ms)),
        ("Conductor", text(&operation.owner)),
        (
            "Lease ends",
            ahead(operation.lease_expires_ms.filter(|ms| *ms > 0)),
        ),
        ("To be stopped", yes(operation.stop_requested)),
        // Where there is no reason, it stands above already.
        (
            "Progress",
            text(&operation.progress_text).filter(|_| operation.reason.is_some()),
        ),
        ("Accepted", moment(Some(operation.created_ms))),
        ("Changed", moment(Some(operation.updated_ms))),
        ("Time limit", moment(operation.deadline_ms)),
        ("Ended", moment(operation.ended_ms)),
        ("Sender waits for an answer", yes(history.record.is_call)),
        ("Answer is to be sent", yes(operation.reply_pending)),
    ];
    html! { @for (name, value) in rows { @if let Some(value) = value { (fact(name, &value)) } } }
}

/// How far away a time is, on either side.
fn near(ms: i64, now_ms: i64) -> String {
    if ms > now_ms {
        format!("in {}", age(ms - now_ms))
    } else {
        format!("{} ago", age(now_ms - ms))
    }
}

/// The commands that fit the state.
fn what_to_do(history: &History) -> Markup {
    let operation = &history.record.operation;
    let uuid = &operation.uuid;
    let retry = command(&format!("magnum-conductor operations retry {uuid}"));
    let discard = command(&format!(
        "magnum-conductor operations discard {uuid} --reason TEXT"
    ));
    html! {
        p.next { @match operation.state.as_str() {
            "queued" => {
                @match &history.ahead {
                    Some(ahead) => { "Waits for " a href=(page_of(ahead)) { (ahead.kind) } " of the same cluster, which is " (ahead.state) ". " }
                    None => "Waits for a conductor. ",
                }
                (discard) " gives it up."
            }
            "retrying" => {
                (retry) " tries at once, " (discard) " gives it up."
            }
            "failed" => {
                "When the cause is gone, " (retry) " begins again; "
                (discard) " takes it off the list of failures."
            }
            "running" | "observing" => {
                (discard) (if operation.state == "running" { " stops it at its next step." } else { " gives it up." })
            }
            _ => {},
        } }
    }
}

fn events(history: &History) -> Markup {
    html! {
        table.events {
            thead { tr { th { "Time" } th { "Event" } th { "Attempt" } th { "Conductor" } th { "Detail" } } }
            tbody { @for event in &history.events { (row(event, &history.record.operation)) } }
        }
    }
}

fn row(event: &OperationEvent, operation: &Operation) -> Markup {
    let class = match event.kind.as_str() {
        "failed" | "panicked" | "refused" | "answer_lost" => Some("warn"),
        _ => None,
    };
    html! {
        tr class=[class] {
            td data-label="Time" {
                div.cell {
                    span.when { (time(event.at_ms)) } br; small { "+" (age(event.at_ms - operation.created_ms)) }
                }
            }
            td data-label="Event" {
                div.cell { strong { (event.kind) } @if let Some(step) = &event.step { br; (step) } }
            }
            td data-label="Attempt" { div.cell.number { (event.attempt) @if event.epoch > 0 { small { " epoch " (event.epoch) } } } }
            td data-label="Conductor" { div.cell { (event.conductor.as_deref().unwrap_or("-")) } }
            td.said data-label="Detail" { div.cell { (event.detail.as_deref().unwrap_or_default()) } }
        }
    }
}
