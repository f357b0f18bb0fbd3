//! Conductors and drivers, as tables.

use std::time::Duration;

use magnum_common::model::{MagnumService, Timestamp};
use magnum_db::read::announced_drivers::AnnouncedDriver;
use maud::{Markup, html};

use super::attention::seconds;
use super::text::{age, time};

/// Every conductor that has ever reported. One not seen for `down_after` before `now` is down.
pub fn conductors(services: &[MagnumService], now: Timestamp, down_after: Duration) -> Markup {
    html! {
        section id="conductors" {
            h2 { "Conductors " span.count { (services.len()) } }
            @if services.is_empty() { p.none { "None has ever reported." } } @else {
                table.conductors {
                    thead { tr { th { "Host" } th { "Program" } th { "State" } th { "Last seen" } } }
                    tbody { @for service in services { (conductor(service, now, down_after)) } }
                }
            }
        }
    }
}

fn conductor(service: &MagnumService, now: Timestamp, down_after: Duration) -> Markup {
    let seen = service.last_seen_up.or(service.updated_at).or(service.created_at);
    html! {
        tr {
            td data-label="Host" { div.cell { strong { (service.host.as_deref().unwrap_or("?")) } } }
            td data-label="Program" { div.cell { (service.binary.as_deref().unwrap_or("?")) } }
            td data-label="State" {
                div.cell {
                    @if service.is_up(now, seconds(down_after)) { span.state.good { "up" } } @else { span.state.bad { "down" } }
                    @if service.disabled {
                        " disabled" @if let Some(why) = &service.disabled_reason { ": " (why) }
                    }
                }
            }
            td data-label="Last seen" {
                div.cell { @match seen {
                    Some(seen) => {
                        span.when { (time(seen.and_utc().timestamp_millis())) } " "
                        small { (age((now - seen).num_milliseconds())) " ago" }
                    }
                    None => "never",
                } }
            }
        }
    }
}

/// Every driver that a living conductor has announced, with what does not load.
pub fn drivers(drivers: &[AnnouncedDriver]) -> Markup {
    html! {
        section id="drivers" {
            h2 { "Drivers " span.count { (drivers.len()) } }
            @if drivers.is_empty() { p.none { "None is announced." } } @else {
                table.drivers {
                    thead { tr {
                        th { "Driver" } th { "Version" } th { "Conductor" } th { "Cluster types" } th { "State" }
                    } }
                    tbody { @for driver in drivers { (row(driver)) } }
                }
            }
        }
    }
}

fn row(driver: &AnnouncedDriver) -> Markup {
    let announcement = &driver.announcement;
    html! {
        tr {
            td data-label="Driver" { div.cell { strong { (announcement.name) } @if announcement.beta { " (beta)" } } }
            td data-label="Version" { div.cell { (announcement.version) } }
            td data-label="Conductor" { div.cell { (driver.conductor) } }
            td data-label="Cluster types" {
                div.cell { @for kind in cluster_types(&announcement.cluster_types) { (kind) br; } }
            }
            td.said data-label="State" {
                div.cell { @match &driver.error {
                    None => span.state.good { "registered" },
                    Some(why) => { span.state.bad { "not loaded" } " " (why) }
                } }
            }
        }
    }
}

/// `vm, ubuntu, kubernetes`, for each of an announcement's types; the text itself when it is something else.
fn cluster_types(text: &str) -> Vec<String> {
    let Ok(serde_json::Value::Array(types)) = serde_json::from_str(text) else {
        return vec![text.to_owned()];
    };
    let words = |kind: &serde_json::Value| {
        let word = |key: &str| kind[key].as_str().unwrap_or("?").to_owned();
        ["server_type", "os", "coe"].map(word).join(", ")
    };
    types.iter().map(words).collect()
}
