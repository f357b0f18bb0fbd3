//! What is around every page: head, navigation, footer, and the headers that keep the browser to this page.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

/// Nothing but this page, its style and its form; nowhere else, and not kept.
fn headers() -> [(HeaderName, HeaderValue); 6] {
    [
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(
                "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
            ),
        ),
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
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

/// The places that the navigation has: path and name.
const PLACES: &[(&str, &str)] = &[("/ui", "Overview"), ("/ui/operations", "Operations")];

/// A page without its content.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    title: &'static str,
    /// Where in the navigation it is.
    place: &'static str,
    is_renewed: bool,
}

impl Frame {
    /// A page that the browser loads anew every 15 seconds.
    pub const fn renewed(title: &'static str, place: &'static str) -> Self {
        Self {
            title,
            place,
            is_renewed: true,
        }
    }

    /// A page that stays as it is.
    pub const fn still(title: &'static str, place: &'static str) -> Self {
        Self {
            title,
            place,
            is_renewed: false,
        }
    }

    /// The whole page as an answer.
    pub fn response(&self, status: StatusCode, content: &Markup) -> Response {
        (status, headers(), self.page(content).into_string()).into_response()
    }

    fn page(self, content: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    @if self.is_renewed { meta http-equiv="refresh" content="15"; }
                    title { (self.title) }
                    link rel="stylesheet" href="/ui/style.css";
                }
                body {
                    header {
                        a.brand href="/ui" { "Magnum" }
                        nav { @for (path, name) in PLACES {
                            @if *path == self.place { a.here href=(path) { (name) } } @else { a href=(path) { (name) } }
                        } }
                    }
                    main { (content) }
                    footer {
                        "magnum-api " (env!("CARGO_PKG_VERSION")) ". Times are UTC. "
                        @if self.is_renewed { "Renewed every 15 seconds." } @else { "Not renewed by itself." }
                    }
                }
            }
        }
    }
}
