//! The overview: servers, numbers, what needs attention, what is in flight, what has ended, conductors and drivers.

use std::time::Duration;

use magnum_common::model::Timestamp;
use magnum_db::read::operations::Operation;
use maud::{Markup, html};

use super::filter::Filter;
use super::{MOST, attention, installation, table, tiles};
use crate::admin::services::ServicesState;
use crate::store::overview::Overview;

/// Most rows of a table of the overview; the list has the others.
const ROWS: usize = 15;

/// The same of operations that are done, which matter least.
const DONE_ROWS: usize = 8;

/// What the page shows, and when it was looked at.
pub struct Page<'a> {
    /// What the servers say.
    pub services: ServicesState,
    /// What the database has; an error says why that is not known.
    pub seen: Result<&'a Overview, &'a str>,
    /// When.
    pub now: Timestamp,
    /// A conductor that has not reported for so long is down.
    pub down_after: Duration,
}

impl Page<'_> {
    /// The content.
    pub fn content(&self) -> Markup {
        let servers = html! { section id="servers" { (tiles::servers(&self.services)) } };
        match self.seen {
            Err(why) => html! {
                p.bad { (why) " Until it does, this page knows nothing of operations." }
                (servers)
            },
            Ok(seen) => html! { (servers) (self.known(seen)) },
        }
    }

    fn known(&self, seen: &Overview) -> Markup {
        let mut concerns = attention::of_services(&self.services);
        concerns.extend(attention::of_overview(seen, self.now, self.down_after));
        // What does not go on by itself first; within that, the parts of the installation, then the oldest operations.
        concerns.sort_by_key(|concern| !concern.is_broken);
        let has_all = u32::try_from(seen.stuck.len()).is_ok_and(|read| read < MOST);
        let is_well = |one: &&Operation| !matches!(one.state.as_str(), "failed" | "refused");
        let mut ended: Vec<&Operation> = seen.ended.iter().filter(is_well).collect();
        // They were read in the order in which they were accepted.
        ended.sort_by_key(|operation| std::cmp::Reverse(operation.ended_ms));
        ended.truncate(DONE_ROWS);
        let failed: Vec<&Operation> = seen.failed.iter().collect();
        let open: Vec<&Operation> = seen.open.iter().collect();
        let in_flight: i64 = seen.open_counts.iter().map(|(_, count)| count).sum();
        let both = html! {
            a href=(Filter::of_state("failed").address()) { "all failed" } " "
            a href=(Filter::of_state("refused").address()) { "all refused" }
        };
        html! {
            (tiles::numbers(&self.services, seen, &concerns))
            (attention::section(&concerns, has_all, |cluster| seen.name_of(cluster)))
            section id="open" {
                h2 { "In flight " span.count { (in_flight) } }
                (rows(seen, &open, "Nothing is being done."))
                p.more { a href=(Filter::open().address()) { "all in flight" } }
            }
            section id="failed" {
                h2 { "Failed and refused lately" }
                (rows(seen, &failed, "No operation in the journal has failed or was refused."))
                p.more { (both) }
            }
            section id="ended" {
                h2 { "Done lately" }
                (rows(seen, &ended, "No operation has succeeded or was cancelled lately."))
                p.more { a href=(Filter::of_state("succeeded").address()) { "all that succeeded" } }
            }
            (installation::conductors(&seen.services, self.now, self.down_after))
            (installation::drivers(&seen.drivers))
        }
    }
}

fn rows(seen: &Overview, operations: &[&Operation], none: &str) -> Markup {
    if operations.is_empty() {
        return html! { p.none { (none) } };
    }
    let shown = operations.iter().take(ROWS).copied();
    table::operations(shown, seen.now_ms, |cluster| seen.name_of(cluster))
}
