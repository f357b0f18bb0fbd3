//! `/ui`: what goes on, for operators who look with a browser.
//!
//! | path | shows | file |
//! |---|---|---|
//! | `/ui` | what needs somebody and why, what is in flight, what has ended, conductors, drivers | `overview`, `attention`, `tiles`, `installation` |
//! | `/ui/operations` | operations by project, kind, state, id or name, a page at a time | `listing`, `filter` |
//! | `/ui/operations/{id}` | one operation with everything that happened to it | `history` |
//! | `/` | the way to `/ui` | |
//!
//! What the pages have in common is in `frame` (head, navigation, headers), `table` (operations as rows) and `text`
//! (how times, ages, ids and states are written).
//!
//! Server-rendered (crate `maud`, whose templates escape every text that they are given, checked by the compiler); no
//! script, nothing from elsewhere, and the browser is told so (`Content-Security-Policy`). It reads and changes nothing; it
//! shows every project's clusters, so it is on the admin interface only. A page costs a fixed number of statements, each
//! of which reads a bounded number of rows.
//!
//! The overview renews itself. The list does not: it has a form, and a renewal would take away what is being typed.

mod attention;
mod filter;
mod frame;
mod history;
mod installation;
mod listing;
mod overview;
mod table;
mod text;
mod tiles;

use std::time::Duration;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use magnum_common::clock;
use maud::html;
use uuid::Uuid;

use self::filter::Filter;
use self::frame::Frame;
use super::Admin;
use crate::store::StoreError;
use crate::store::operation_search;
use crate::store::overview::{self as overview_store, OverviewLimits};

/// How long the database may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A queued operation whose turn it is begins sooner than this on a conductor that has room.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);

/// Most operations of each kind that the overview reads, and that a page of the list shows.
const MOST: u32 = 100;

const STYLE: &str = include_str!("ui.css");

/// The routes of the pages.
pub fn routes() -> Router<Admin> {
    Router::new()
        .route("/", get(|| async { Redirect::temporary("/ui") }))
        .route("/ui", get(overview_page))
        .route("/ui/operations", get(listing_page))
        .route("/ui/operations/{id}", get(history_page))
        .route("/ui/style.css", get(style))
}

async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response()
}

async fn overview_page(State(admin): State<Admin>) -> Response {
    let limits = OverviewLimits {
        announced_within: admin.app.service_down_time,
        begins_within: BEGINS_WITHIN,
        most: MOST,
    };
    // Asked at once: none of them holds up the others.
    let (services, seen) = tokio::join!(
        admin.services.ask(),
        read(&admin, overview_store::look(&admin.app.database, limits))
    );
    let page = overview::Page {
        services,
        seen: seen.as_ref().map_err(|away| away.text()),
        now: clock::utc_now().naive_utc(),
        down_after: admin.app.service_down_time,
    };
    let status = match &seen {
        Ok(_) => StatusCode::OK,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    Frame::renewed("Magnum", "/ui").response(status, &page.content())
}

async fn listing_page(
    State(admin): State<Admin>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Response {
    let frame = Frame::still("Operations - Magnum", "/ui/operations");
    let given = match query {
        Ok(Query(given)) => given,
        Err(_) => {
            let content = html! { p.bad { "The query of this address cannot be read." } };
            return frame.response(StatusCode::BAD_REQUEST, &content);
        }
    };
    let filter = match Filter::parse(given) {
        Ok(filter) => filter,
        Err(bad) => return frame.response(StatusCode::BAD_REQUEST, &bad.content()),
    };
    let finding = operation_search::find(&admin.app.database, filter.search(), MOST);
    match read(&admin, finding).await {
        Ok(found) => frame.response(StatusCode::OK, &listing::content(&filter, &found)),
        Err(away) => away.response(&frame),
    }
}

async fn history_page(State(admin): State<Admin>, Path(id): Path<String>) -> Response {
    let frame = Frame::still("Operation - Magnum", "/ui/operations");
    let unknown = || {
        let content = html! {
            h1 { "No such operation" }
            p.bad { "The journal has no operation " code { (id) } ". Old ones leave it after [conductor] operation_history." }
        };
        frame.response(StatusCode::NOT_FOUND, &content)
    };
    let Ok(uuid) = Uuid::try_parse(&id) else {
        return unknown();
    };
    match read(&admin, operation_search::history(&admin.app.database, uuid)).await {
        Ok(None) => unknown(),
        Ok(Some(found)) => frame.response(StatusCode::OK, &history::content(&found)),
        Err(away) => away.response(&frame),
    }
}

/// Why nothing can be shown: the database is away.
struct Away(String);

impl Away {
    fn text(&self) -> &str {
        &self.0
    }

    fn response(&self, frame: &Frame) -> Response {
        let content = html! { p.bad { (self.0) " Until it does, this page knows nothing." } };
        frame.response(StatusCode::SERVICE_UNAVAILABLE, &content)
    }
}

/// Reads, unless it is known that the database does not answer, and no longer than [`PATIENCE`].
async fn read<T>(admin: &Admin, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, Away> {
    // Hangs are found out once for everybody, and not by another query.
    admin
        .services
        .database()
        .await
        .map_err(|why| Away(format!("The database does not answer. {why}.")))?;
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(Ok(done)) => Ok(done),
        // What went wrong was logged where it became a fault.
        Ok(Err(_)) | Err(_) => Err(Away("The database does not answer.".to_owned())),
    }
}
