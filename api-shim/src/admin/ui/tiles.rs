//! The first row of the overview: servers and their state, then numbers that lead to what they count.

use magnum_db::read::operations::Operation;
use maud::{Markup, html};

use super::filter::Filter;
use super::text::counted;
use super::{MOST, attention};
use crate::admin::services::ServicesState;
use crate::store::overview::Overview;

/// What ended longer ago is history, in milliseconds.
const DAY_MS: i64 = 24 * 3600 * 1000;

/// The servers, each with its state, what it says, and where it is.
pub fn servers(services: &ServicesState) -> Markup {
    let keystone = match &services.keystone {
        Ok(Some(identity)) => server("Keystone", "up", identity, ""),
        Ok(None) => server("Keystone", "not asked", "[api] auth_strategy = noauth", ""),
        Err(why) => server("Keystone", "down", why, ""),
    };
    let broker = match &services.queues {
        Ok(queues) => {
            let says = match queues.requests {
                None => "no queue of requests".to_owned(),
                Some(queue) => format!(
                    "{}, {}",
                    counted(queue.messages, "request waits", "requests wait"),
                    counted(queue.consumers, "conductor takes them", "conductors take them")
                ),
            };
            server("Broker", "up", &says, &services.broker_place)
        }
        Err(why) => server("Broker", "down", why, &services.broker_place),
    };
    let database = match &services.database {
        Ok(()) => server("Database", "up", "it answers", &services.database_place),
        Err(why) => server("Database", "down", why, &services.database_place),
    };
    html! { div.servers { (database) (broker) (keystone) } }
}

fn server(name: &str, state: &str, says: &str, place: &str) -> Markup {
    let class = match state {
        "up" => "state good",
        "down" => "state bad",
        _ => "state",
    };
    html! {
        div.server {
            div { strong { (name) } " " span class=(class) { (state) } }
            div.says { (says) }
            @if !place.is_empty() {
                // A list of hosts is broken between them, if it has to be.
                code.place { @for (number, part) in place.split(',').enumerate() {
                    @if number > 0 { "," wbr; } (part)
                } }
            }
        }
    }
}

/// A number, what it counts, and where that is.
struct Tile {
    number: String,
    about: &'static str,
    address: String,
    worry: Worry,
}

/// How much a number should be noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worry {
    None,
    Look,
    Broken,
}

impl Worry {
    fn look_if(is_worry: bool) -> Self {
        if is_worry { Self::Look } else { Self::None }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::None => "tile",
            Self::Look => "tile look",
            Self::Broken => "tile broken",
        }
    }
}

/// The numbers.
pub fn numbers(services: &ServicesState, seen: &Overview, concerns: &[attention::Concern<'_>]) -> Markup {
    let queues = services.queues.as_ref().ok();
    let waiting = queues
        .and_then(|queues| queues.requests)
        .map(|queue| queue.messages);
    let dead = queues
        .and_then(|queues| queues.dead_letters)
        .map(|queue| queue.messages);
    let known = |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let open = |state: &'static str| Tile {
        number: seen.open_in(state).to_string(),
        about: state,
        address: Filter::of_state(state).address(),
        worry: Worry::look_if(state == "retrying" && seen.open_in(state) > 0),
    };
    let ended = |state: &'static str, about| {
        let lately = lately(seen, state);
        Tile {
            number: shown(lately, seen.failed.len()),
            about,
            address: Filter::of_state(state).address(),
            worry: Worry::look_if(state == "failed" && lately > 0),
        }
    };
    let tiles = [
        Tile {
            number: concerns.len().to_string(),
            about: "need attention",
            address: "#attention".to_owned(),
            worry: if concerns.iter().any(|concern| concern.is_broken) {
                Worry::Broken
            } else {
                Worry::look_if(!concerns.is_empty())
            },
        },
        open("queued"),
        open("running"),
        open("retrying"),
        open("observing"),
        ended("failed", "failed within a day"),
        ended("refused", "refused within a day"),
        Tile {
            number: known(waiting),
            about: "requests in the queue",
            address: "#servers".to_owned(),
            worry: Worry::None,
        },
        Tile {
            number: known(dead),
            about: "dead letters",
            address: "#attention".to_owned(),
            worry: Worry::look_if(dead.is_some_and(|dead| dead > 0)),
        },
    ];
    html! {
        div.tiles { @for tile in tiles {
            a class=(tile.worry.class()) href=(tile.address) { strong { (tile.number) } " " (tile.about) }
        } }
    }
}

/// How many of the operations that were read ended in this state within a day.
fn lately(seen: &Overview, state: &str) -> usize {
    let since = seen.now_ms.saturating_sub(DAY_MS);
    let is_late = |one: &&Operation| one.state == state && one.ended_ms.is_some_and(|ended| ended >= since);
    seen.failed.iter().filter(is_late).count()
}

/// A number of operations, of which not more were `read` than [`MOST`].
fn shown(number: usize, read: usize) -> String {
    if number > 0 && u32::try_from(read).is_ok_and(|read| read >= MOST) {
        format!("{number}+")
    } else {
        number.to_string()
    }
}
