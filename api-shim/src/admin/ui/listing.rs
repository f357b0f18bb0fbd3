//! The list of operations: the form, one page of what it found, and the way to older ones.

use maud::{Markup, html};

use super::filter::Filter;
use super::table;
use crate::store::operation_search::{FoundOperations, LOOKED_THROUGH};

/// The content of the page.
pub fn content(filter: &Filter, found: &FoundOperations) -> Markup {
    html! {
        h1 { "Operations" }
        (filter.form())
        @if found.is_partial {
            p.note { "Of the newest " (LOOKED_THROUGH) " operations. A cluster or a state finds older ones, too." }
        }
        @if found.operations.is_empty() { (nothing(filter)) } @else {
            (table::operations(found.operations.iter(), found.now_ms, |cluster| found.name_of(cluster)))
        }
        (pages(filter, found))
    }
}

fn nothing(filter: &Filter) -> Markup {
    html! {
        p.none {
            @if !filter.is_narrow() { "The journal is empty." }
            @else if let Some(name) = filter.name() {
                "No operation fits, of a cluster named " strong { (name) }
                ". Names are those of clusters that exist; operations of one that is gone are found by its uuid."
            }
            @else { "No operation fits." }
        }
    }
}

fn pages(filter: &Filter, found: &FoundOperations) -> Markup {
    let last = found.operations.last().filter(|_| found.has_older);
    html! {
        p.pages {
            @if !filter.is_first_page() { a href=(filter.first_page().address()) { "Newest" } }
            @if let Some(last) = last { a href=(filter.before(last.id).address()) { "Older" } }
        }
    }
}
