//! How times, ages, ids and states are written on every page.

use chrono::DateTime;
use magnum_db::read::operations::{OPEN_STATES, Operation};
use maud::{Markup, html};

/// A time of the journal, such as `2026-01-31 14:00:00`; milliseconds since 1970.
pub fn time(ms: i64) -> String {
    DateTime::from_timestamp_millis(ms)
        .map_or_else(|| ms.to_string(), |at| at.format("%Y-%m-%d %H:%M:%S").to_string())
}

/// A length of time in its two largest units, such as `3 h 5 min`, from milliseconds. Negative ones are none.
pub fn age(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{minutes} min"),
        7200..=172_799 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// An id, which is kept in one piece.
pub fn id(id: &str) -> Markup {
    html! { code.id { (id) } }
}

/// A sentence in which commands stand between backquotes.
pub fn with_commands(sentence: &str) -> Markup {
    let parts = sentence.split('`').enumerate();
    html! { @for (number, part) in parts { @if number % 2 == 1 { (command(part)) } @else { (part) } } }
}

/// A command to copy, kept on one line.
pub fn command(command: &str) -> Markup {
    html! { code.command { (command) } }
}

/// A number of things, such as `1 request` or `2 requests`.
pub fn counted(number: u32, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

/// A state of an operation in its colour.
pub fn state(state: &str) -> Markup {
    let class = match state {
        "succeeded" => "state good",
        "failed" => "state bad",
        "retrying" | "refused" => "state warn",
        "running" | "observing" => "state busy",
        _ => "state",
    };
    html! { span class=(class) { (state) } }
}

/// Whether there is still something to do.
pub fn is_open(operation: &Operation) -> bool {
    OPEN_STATES.contains(&operation.state.as_str())
}

/// The page of an operation.
pub fn page_of(operation: &Operation) -> String {
    format!("/ui/operations/{}", operation.uuid)
}

/// What the operation says: its reason, or else how far its driver has got.
pub fn said(operation: &Operation) -> Option<&str> {
    [&operation.reason, &operation.progress_text]
        .into_iter()
        .flatten()
        .map(|text| text.trim())
        .find(|text| !text.is_empty())
}

/// How old an open operation is, and what of its time limit is over. The limit begins with the work.
pub fn age_and_limit(operation: &Operation, now_ms: i64) -> Markup {
    let lived = now_ms - operation.created_ms;
    html! {
        span.number { (age(lived)) }
        @if let Some(deadline) = operation.deadline_ms {
            @let left = deadline - now_ms;
            @let whole = (deadline - operation.created_ms).max(1);
            br;
            // Above `low` it is late, above `high` too late: the browser colours it by that.
            meter min="0" max=(whole) low=(whole * 3 / 4) high=(whole - 1) optimum="0" value=(lived.clamp(0, whole))
                title=(format!("until {}", time(deadline))) {}
            br;
            @if left >= 0 { small { (age(left)) " left" } }
            @else { small.over { "over by " (age(-left)) } }
        } @else {
            br; small { (if operation.state == "queued" { "not begun" } else { "no limit" }) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_its_two_largest_units() {
        let seconds = |seconds: i64| age(seconds * 1000);
        assert_eq!(seconds(-5), "0 s");
        assert_eq!(seconds(119), "119 s");
        assert_eq!(seconds(120), "2 min");
        assert_eq!(seconds(7199), "119 min");
        assert_eq!(seconds(7200 + 5 * 60), "2 h 5 min");
        assert_eq!(seconds(2 * 86_400 + 3 * 3600 + 59), "2 d 3 h");
    }
}
