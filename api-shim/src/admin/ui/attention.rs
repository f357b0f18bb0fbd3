//! What needs somebody, why it does not go on by itself, and what to do: first the parts of the installation, then the
//! operations that are stuck, the oldest first.
//!
//! The same judgement as `magnum-conductor doctor`, from what the overview has read. Pure.

use std::time::Duration;

use magnum_common::model::{MagnumService, Timestamp};
use magnum_db::read::announced_drivers::AnnouncedDriver;
use magnum_db::read::operations::Operation;
use maud::{Markup, html};

use super::BEGINS_WITHIN;
use super::filter::Filter;
use super::text::{age, counted, id, page_of, said, with_commands};
use crate::admin::services::ServicesState;
use crate::store::overview::Overview;

/// Most concerns that are shown at once: whoever has more begins with the oldest.
const SHOWN: usize = 20;

/// Something that needs somebody.
#[derive(Debug)]
pub struct Concern<'a> {
    /// It does not go on by itself.
    pub is_broken: bool,
    /// What it is about.
    pub about: About<'a>,
    /// What is so, and why.
    pub why: String,
    /// What to do; commands stand between backquotes.
    pub next: String,
}

/// What a concern is about.
#[derive(Debug, Clone, Copy)]
pub enum About<'a> {
    /// A part of the installation.
    Part(&'static str),
    /// An operation.
    Operation(&'a Operation),
}

impl<'a> Concern<'a> {
    fn part(is_broken: bool, part: &'static str, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            is_broken,
            about: About::Part(part),
            why: why.into(),
            next: next.into(),
        }
    }

    fn operation(is_broken: bool, operation: &'a Operation, why: String, next: String) -> Self {
        Self {
            is_broken,
            about: About::Operation(operation),
            why,
            next,
        }
    }
}

/// What servers say that needs somebody. The database is not among them: without it there is no page.
pub fn of_services(services: &ServicesState) -> Vec<Concern<'static>> {
    let mut concerns = Vec::new();
    match &services.queues {
        Err(why) => concerns.push(Concern::part(
            true,
            "Broker",
            why,
            "see that it runs, and [DEFAULT] transport_url; requests get 503 until it answers",
        )),
        Ok(queues) => {
            match queues.requests {
                None => concerns.push(Concern::part(
                    true,
                    "Broker",
                    "it has no queue of requests: no conductor has ever run",
                    "start magnum-conductor; the API answers 503 until then",
                )),
                Some(queue) if queue.consumers == 0 => concerns.push(Concern::part(
                    true,
                    "Broker",
                    format!("{} in its queue, and nobody takes them", counted(queue.messages, "request", "requests")),
                    "start magnum-conductor, or see in its log why it takes none: it pauses while its database is away",
                )),
                Some(_) => {}
            }
            if let Some(dead) = queues.dead_letters.filter(|dead| dead.messages > 0) {
                concerns.push(Concern::part(
                    false,
                    "Dead letters",
                    format!(
                        "{} set aside",
                        counted(dead.messages, "message was", "messages were")
                    ),
                    "`magnum-conductor dead-letters list` has their reasons",
                ));
            }
        }
    }
    if let Err(why) = &services.keystone {
        concerns.push(Concern::part(
            true,
            "Keystone",
            why,
            "see [keystone_authtoken]; requests with tokens that are not remembered get 503 until it answers",
        ));
    }
    concerns
}

/// What the database says that needs somebody. A service not seen for `down_after` before `now` is down.
pub fn of_overview(seen: &Overview, now: Timestamp, down_after: Duration) -> Vec<Concern<'_>> {
    let is_up = |service: &MagnumService| service.is_up(now, seconds(down_after));
    let mut concerns = conductors(&seen.services, is_up);
    concerns.extend(drivers(&seen.drivers));
    let any_up = seen.services.iter().any(is_up);
    // Without a conductor nothing goes on: that is said once, above.
    let stuck = seen.stuck.iter().filter(|_| any_up);
    concerns.extend(stuck.filter_map(|operation| stuck_operation(operation, seen)));
    concerns
}

fn conductors(services: &[MagnumService], is_up: impl Fn(&MagnumService) -> bool) -> Vec<Concern<'static>> {
    if services.is_empty() {
        return vec![Concern::part(
            true,
            "Conductors",
            "No conductor has ever reported: requests wait in the broker, or are answered 503",
            "start magnum-conductor",
        )];
    }
    if !services.iter().any(&is_up) {
        return vec![Concern::part(
            true,
            "Conductors",
            "none is up: what was accepted is not carried out",
            "start magnum-conductor",
        )];
    }
    let down = services.iter().filter(|service| !is_up(service));
    let hosts: Vec<&str> = down
        .map(|service| service.host.as_deref().unwrap_or("?"))
        .collect();
    if hosts.is_empty() {
        return Vec::new();
    }
    vec![Concern::part(
        false,
        "Conductors",
        format!("down: {}", hosts.join(", ")),
        "start them, or forget those that were taken away: others do their work",
    )]
}

fn drivers(announced: &[AnnouncedDriver]) -> Vec<Concern<'static>> {
    let mut concerns = Vec::new();
    if announced.iter().all(|driver| driver.error.is_some()) {
        concerns.push(Concern::part(
            true,
            "Drivers",
            "No living conductor has announced a driver that loads: new clusters are refused",
            "`magnum-driver-manage create` makes one, `magnum-driver-manage adopt` takes over those of a Python environment",
        ));
    }
    for driver in announced {
        if let Some(why) = &driver.error {
            concerns.push(Concern::part(
                false,
                "Drivers",
                format!(
                    "{} on {} does not load: {why}",
                    driver.announcement.name, driver.host
                ),
                "`magnum-driver-manage check FOLDER` names every mistake; then SIGHUP to the conductor",
            ));
        }
    }
    concerns
}

/// Why an operation does not go on, if it does not.
fn stuck_operation<'a>(operation: &'a Operation, seen: &Overview) -> Option<Concern<'a>> {
    let uuid = &operation.uuid;
    if let Some(driver) = missing_driver(operation, &seen.drivers) {
        return Some(Concern::operation(
            true,
            operation,
            format!("waits for a conductor that has the driver {driver}"),
            format!("start one, or `magnum-conductor operations discard {uuid} --reason TEXT`"),
        ));
    }
    if let Some(deadline) = operation.deadline_ms.filter(|deadline| *deadline < seen.now_ms) {
        return Some(Concern::operation(
            false,
            operation,
            format!("is {} over its time limit", age(seen.now_ms - deadline)),
            format!(
                "its conductor gives it up; `magnum-conductor operations discard {uuid} --reason TEXT` does it now"
            ),
        ));
    }
    match operation.state.as_str() {
        "queued" => Some(Concern::operation(
            false,
            operation,
            format!(
                "has been waiting for a conductor for {}",
                age(seen.now_ms - operation.created_ms)
            ),
            "conductors may all be at work: [conductor] operation_workers, or more conductors".to_owned(),
        )),
        "retrying" => {
            let due = operation.next_attempt_ms.map_or(0, |due| due - seen.now_ms);
            let again = if due > 0 {
                format!("in {}", age(due))
            } else {
                "now".to_owned()
            };
            let reason = said(operation).unwrap_or("it says nothing");
            Some(Concern::operation(
                false,
                operation,
                format!(
                    "has failed {} times and is tried again {again}: {reason}",
                    operation.failures
                ),
                format!("remove the cause; `magnum-conductor operations retry {uuid}` tries at once"),
            ))
        }
        "running" | "observing" => {
            let expired = operation.lease_expires_ms.filter(|expires| *expires > 0)?;
            let owner = operation.owner.as_deref().unwrap_or("its conductor");
            Some(Concern::operation(
                true,
                operation,
                format!(
                    "was lost by {owner} {} ago, and no other has taken it",
                    age(seen.now_ms - expired)
                ),
                "see the logs of the conductors that are up".to_owned(),
            ))
        }
        _ => None,
    }
}

/// The driver that a waiting operation needs and no conductor has announced.
fn missing_driver(operation: &Operation, announced: &[AnnouncedDriver]) -> Option<String> {
    let name = operation.driver.as_ref()?;
    let waits = matches!(operation.state.as_str(), "queued" | "retrying");
    let is_there = announced
        .iter()
        .any(|driver| driver.error.is_none() && driver.announcement.name == *name);
    let version = operation.driver_version.as_deref().unwrap_or_default();
    (waits && !is_there).then(|| format!("{name} {version}").trim_end().to_owned())
}

pub(super) fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

/// The section: the concerns, or that there is none. `name_of` knows the names of clusters by uuid.
pub fn section<'n>(
    concerns: &[Concern<'_>],
    is_all: bool,
    name_of: impl Fn(&str) -> Option<&'n str>,
) -> Markup {
    html! {
        section id="attention" {
            h2 { "Needs attention " span.count { (concerns.len()) @if !is_all { " or more" } } }
            @if concerns.is_empty() {
                p.well {
                    "Nothing is stuck: no operation retries, is late, was lost, or has waited for more than "
                    (age(i64::try_from(BEGINS_WITHIN.as_millis()).unwrap_or(i64::MAX))) "."
                }
            } @else {
                ul.concerns { @for concern in concerns.iter().take(SHOWN) { (shown(concern, &name_of)) } }
                @if concerns.len() > SHOWN {
                    p.more { "The first " (SHOWN) " are shown. " a href=(Filter::open().address()) { "all in flight" } }
                }
            }
        }
    }
}

fn shown<'n>(concern: &Concern<'_>, name_of: &impl Fn(&str) -> Option<&'n str>) -> Markup {
    let class = if concern.is_broken { "broken" } else { "look" };
    html! {
        li class=(class) {
            div.about { @match concern.about {
                About::Part(part) => strong { (part) },
                About::Operation(operation) => {
                    @match name_of(&operation.cluster_uuid) {
                        Some(name) => strong { (name) },
                        None => (id(&operation.cluster_uuid)),
                    }
                    br; a href=(page_of(operation)) { (operation.kind) }
                }
            } }
            div.why { (concern.why) p.next { (with_commands(&concern.next)) } }
        }
    }
}

#[cfg(test)]
mod tests;
