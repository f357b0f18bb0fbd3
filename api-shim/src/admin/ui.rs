//! `/ui`: what goes on, on one page, for operators.
//!
//! Who is alive, what is being done and what failed, which drivers there are and why one is not. Server-rendered
//! (crate `maud`, whose templates escape every text that they are given, checked by the compiler); no script, nothing
//! from elsewhere, and the browser is told so (`Content-Security-Policy`). It reads and changes nothing; it shows every
//! project's clusters, so it is on the admin interface only.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::DateTime;
use magnum_common::clock;
use magnum_common::model::{MagnumService, Timestamp};
use magnum_db::read::announced_drivers::AnnouncedDriver;
use magnum_db::read::operations::Operation;
use maud::{DOCTYPE, Markup, html};

use super::Admin;
use crate::store::overview::{self, Overview};

/// Most operations in each table.
const MOST: u32 = 100;

/// How long the database may take.
const PATIENCE: Duration = Duration::from_secs(5);

const STYLE: &str = include_str!("ui.css");

/// Nothing but this page and its style; nowhere else, and not kept.
fn headers() -> [(HeaderName, HeaderValue); 5] {
    [
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(
                "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            ),
        ),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ]
}

/// `GET /ui/style.css`
pub async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response()
}

/// `GET /ui`
pub async fn page(State(admin): State<Admin>) -> Response {
    let (status, text) = match look(&admin).await {
        Ok(overview) => {
            let down_after = i64::try_from(admin.app.service_down_time.as_secs()).unwrap_or(i64::MAX);
            let seen = PageData {
                overview,
                now: clock::utc_now().naive_utc(),
                down_after,
            };
            (StatusCode::OK, frame(&seen.content()))
        }
        Err(why) => {
            let content = html! { p.bad { (why) " Until it does, this page knows nothing." } };
            (StatusCode::SERVICE_UNAVAILABLE, frame(&content))
        }
    };
    let html = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (status, headers(), html, text.into_string()).into_response()
}

async fn look(admin: &Admin) -> Result<Overview, String> {
    // Hangs are found out once for everybody, and not by another query.
    Arc::clone(&admin.database)
        .ask()
        .await
        .map_err(|why| format!("The database does not answer. {why}."))?;
    let looking = overview::look(&admin.app.database, admin.app.service_down_time, MOST);
    match tokio::time::timeout(PATIENCE, looking).await {
        Ok(Ok(overview)) => Ok(overview),
        // What went wrong was logged where it became a fault.
        Ok(Err(_)) | Err(_) => Err("The database does not answer.".to_owned()),
    }
}

fn frame(content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="refresh" content="15";
                title { "Magnum" }
                link rel="stylesheet" href="/ui/style.css";
            }
            body {
                header { h1 { "Magnum" } nav {
                    a href="#conductors" { "Conductors" } " " a href="#open" { "In flight" } " "
                    a href="#failed" { "Failed" } " " a href="#drivers" { "Drivers" }
                } }
                main { (content) }
                footer { "magnum-api " (env!("CARGO_PKG_VERSION")) ". Times are UTC. Renewed every 15 seconds." }
            }
        }
    }
}

/// What is shown, and when it was looked at.
struct PageData {
    overview: Overview,
    now: Timestamp,
    down_after: i64,
}

impl PageData {
    fn content(&self) -> Markup {
        let overview = &self.overview;
        html! {
            (self.summary())
            (self.conductors())
            section id="open" {
                h2 { "In flight " (count(overview.open.len())) }
                (self.operations(&overview.open, "Accepted", "Nothing is being done."))
            }
            section id="failed" {
                h2 { "Failed " (count(overview.failed.len())) }
                (self.operations(&overview.failed, "Failed", "No operation in the journal has failed."))
            }
            (self.drivers())
        }
    }

    /// What an operator wants to know at a glance.
    fn summary(&self) -> Markup {
        let Overview {
            services,
            drivers,
            open,
            failed,
            ..
        } = &self.overview;
        let up = services.iter().filter(|service| self.is_up(service)).count();
        let retrying = open.iter().filter(|one| one.state == "retrying").count();
        let loaded = drivers.iter().filter(|driver| driver.error.is_none()).count();
        let tile = |place: &str, is_well: bool, number: String, about: &str| {
            html! {
                a.tile.worry[!is_well] href=(place) { strong { (number) } " " (about) }
            }
        };
        let all_up = up > 0 && up == services.len();
        let all_loaded = loaded > 0 && loaded == drivers.len();
        html! {
            div.tiles {
                (tile("#conductors", all_up, format!("{up} of {}", services.len()), "conductors up"))
                (tile("#open", true, shown(open.len()), "in flight"))
                (tile("#open", retrying == 0, shown(retrying), "of them retrying"))
                (tile("#failed", failed.is_empty(), shown(failed.len()), "failed"))
                (tile("#drivers", all_loaded, format!("{loaded} of {}", drivers.len()), "drivers registered"))
            }
        }
    }

    fn is_up(&self, service: &MagnumService) -> bool {
        service.is_up(self.now, self.down_after)
    }

    fn conductors(&self) -> Markup {
        let services = &self.overview.services;
        html! {
            section id="conductors" {
                h2 { "Conductors " span.count { (services.len()) } }
                @if services.is_empty() {
                    p.bad { "No conductor has ever reported: requests wait in the broker, or are answered 503." }
                } @else {
                    div.wide { table.conductors {
                        thead { tr { th { "Host" } th { "Program" } th { "State" } th { "Last seen" } } }
                        tbody { @for service in services { (self.conductor(service)) } }
                    } }
                }
            }
        }
    }

    fn conductor(&self, service: &MagnumService) -> Markup {
        let seen = service.last_seen_up.or(service.updated_at).or(service.created_at);
        html! {
            tr {
                td { (service.host.as_deref().unwrap_or("?")) }
                td { (service.binary.as_deref().unwrap_or("?")) }
                td {
                    @if self.is_up(service) { span.state.good { "up" } } @else { span.state.bad { "down" } }
                    @if service.disabled {
                        " disabled" @if let Some(why) = &service.disabled_reason { ": " (why) }
                    }
                }
                td { @if let Some(seen) = seen { (time(seen)) " (" (ago(self.now, seen)) ")" } @else { "never" } }
            }
        }
    }

    fn operations(&self, operations: &[Operation], when: &str, none: &str) -> Markup {
        if operations.is_empty() {
            return html! { p.none { (none) } };
        }
        html! {
            div.wide { table.operations {
                thead { tr {
                    th { "Cluster" } th { "Operation" } th { "State" } th { "Attempts" } th { (when) }
                    th { "What it says" }
                } }
                tbody { @for operation in operations { (self.operation(operation)) } }
            } }
        }
    }

    fn operation(&self, operation: &Operation) -> Markup {
        let said = [&operation.reason, &operation.progress_text]
            .into_iter()
            .flatten()
            .find(|text| !text.is_empty());
        let when = moment(operation.ended_ms.or(Some(operation.created_ms)));
        let class = match operation.state.as_str() {
            "failed" => "state bad",
            "retrying" => "state warn",
            _ => "state",
        };
        html! {
            tr {
                td {
                    @if let Some(name) = self.overview.name_of(&operation.cluster_uuid) { strong { (name) } br; }
                    code { (operation.cluster_uuid) }
                }
                td {
                    strong { (operation.kind) } @if let Some(step) = &operation.step { ", step " (step) }
                    @if let Some(driver) = &operation.driver {
                        br; "driver " (driver) " " (operation.driver_version.as_deref().unwrap_or_default())
                    }
                    br; code { (operation.uuid) }
                    @if let Some(request) = &operation.request_id { br; code { (request) } }
                }
                td {
                    span class=(class) { (operation.state) }
                    @if operation.stop_requested { ", to be stopped" }
                    @if let Some(owner) = &operation.owner { br; (owner) }
                    @if let Some(next) = moment(operation.next_attempt_ms).filter(|_| operation.ended_ms.is_none()) {
                        br; "again at " (time(next))
                    }
                }
                td.number { (operation.attempts) @if operation.failures > 0 { br; (operation.failures) " failed" } }
                td { @if let Some(when) = when { (time(when)) br; (ago(self.now, when)) } }
                td.said { @if let Some(said) = said { (said) } @else { span.none { (if operation.ended_ms.is_none() { "nothing yet" } else { "nothing" }) } } }
            }
        }
    }

    fn drivers(&self) -> Markup {
        let drivers = &self.overview.drivers;
        html! {
            section id="drivers" {
                h2 { "Drivers " span.count { (drivers.len()) } }
                @if drivers.is_empty() {
                    p.bad { "No living conductor has announced a driver: new clusters are refused." }
                } @else {
                    div.wide { table.drivers {
                        thead { tr {
                            th { "Driver" } th { "Version" } th { "Conductor" } th { "State" } th { "Cluster types" }
                        } }
                        tbody { @for driver in drivers { (self.driver(driver)) } }
                    } }
                }
            }
        }
    }

    fn driver(&self, driver: &AnnouncedDriver) -> Markup {
        let announcement = &driver.announcement;
        html! {
            tr {
                td { strong { (announcement.name) } @if announcement.beta { " (beta)" } }
                td { (announcement.version) }
                td { (driver.conductor) }
                td.said {
                    @match &driver.error {
                        None => span.state.good { "registered" },
                        Some(why) => { span.state.bad { "not loaded" } " " (why) }
                    }
                }
                td { @for kind in cluster_types(&announcement.cluster_types) { (kind) br; } }
            }
        }
    }
}

fn count(number: usize) -> Markup {
    html! { span.count { (shown(number)) } }
}

/// A number of operations, of which not more are read than fit.
fn shown(number: usize) -> String {
    if u32::try_from(number).is_ok_and(|number| number < MOST) {
        number.to_string()
    } else {
        format!("{MOST} or more")
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

fn moment(ms: Option<i64>) -> Option<Timestamp> {
    ms.and_then(DateTime::from_timestamp_millis)
        .map(|at| at.naive_utc())
}

fn time(at: Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M:%S").to_string()
}

fn ago(now: Timestamp, at: Timestamp) -> String {
    match (now - at).num_seconds().max(0) {
        seconds @ 0..=119 => format!("{seconds} s ago"),
        seconds @ 120..=7199 => format!("{} min ago", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h ago", seconds / 3600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}
