//! The metrics of the API: names, kinds and meanings, in one place; `docs/metrics.md` is the same list.

use std::sync::OnceLock;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use magnum_telemetry::metric::{self, Kind, Metric};
use metrics::{counter, gauge, histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

const REQUESTS: &str = "magnum_api_requests_total";
const DURATION: &str = "magnum_api_request_duration_seconds";
const LIMITED: &str = "magnum_api_rate_limited_total";
const CONNECTIONS: &str = "magnum_api_connections";
const VALIDATIONS: &str = "magnum_api_token_validations_total";
const VALIDATION_DURATION: &str = "magnum_api_token_validation_duration_seconds";
const REMEMBERED: &str = "magnum_api_token_cache_hits_total";
const LOOKUPS: &str = "magnum_api_lookup_duration_seconds";

/// All of them.
pub const ALL: &[Metric] = &[
    Metric {
        name: REQUESTS,
        kind: Kind::Counter,
        labels: &["method", "route", "status"],
        meaning: "Requests answered",
    },
    Metric {
        name: DURATION,
        kind: Kind::Seconds,
        labels: &["method", "route"],
        meaning: "Time from request to response",
    },
    Metric {
        name: LIMITED,
        kind: Kind::Counter,
        labels: &["by"],
        meaning: "Requests refused with 429, by what was limited: project, address",
    },
    Metric {
        name: CONNECTIONS,
        kind: Kind::Gauge,
        labels: &[],
        meaning: "Open connections, those of the admin interface included",
    },
    Metric {
        name: VALIDATIONS,
        kind: Kind::Counter,
        labels: &["result"],
        meaning: "Tokens that Keystone was asked about: valid, invalid, failed",
    },
    Metric {
        name: VALIDATION_DURATION,
        kind: Kind::Seconds,
        labels: &[],
        meaning: "Time that asking Keystone about a token took, retries included",
    },
    Metric {
        name: REMEMBERED,
        kind: Kind::Counter,
        labels: &["cache"],
        meaning: "Tokens that needed no question to Keystone, by where they were known: process, memcached",
    },
    Metric {
        name: LOOKUPS,
        kind: Kind::Seconds,
        labels: &["service", "outcome"],
        meaning: "Time that other services took to answer a look-up, by service and whether the answer could be used",
    },
];

static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Starts recording for `/metrics`; called by the program, not by the library, since a process has one recorder.
pub fn record() {
    match PrometheusBuilder::new().install_recorder() {
        Ok(handle) => {
            // Only this function sets it, and installing twice fails before it gets here.
            let _ = RECORDER.set(handle);
        }
        Err(error) => tracing::warn!(error = %error, "metrics are not recorded"),
    }
}

/// What was recorded, in Prometheus' text form; `None` when this process does not record here.
pub fn rendered() -> Option<String> {
    RECORDER.get().map(PrometheusHandle::render)
}

/// Describes all metrics to the recorder, once at start.
pub fn describe() {
    metric::describe(ALL);
}

/// What asking Keystone about a token has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validation {
    /// The token is valid.
    Valid,
    /// The token is not valid.
    Invalid,
    /// Keystone could not be asked.
    Failed,
}

/// Counts one question to Keystone about a token.
pub fn token_was_validated(result: Validation, took: Duration) {
    let result = match result {
        Validation::Valid => "valid",
        Validation::Invalid => "invalid",
        Validation::Failed => "failed",
    };
    counter!(VALIDATIONS, "result" => result).increment(1);
    histogram!(VALIDATION_DURATION).record(took.as_secs_f64());
}

/// Counts one token that needed no question.
pub fn token_was_remembered(place: &'static str) {
    counter!(REMEMBERED, "cache" => place).increment(1);
}

/// Counts one answered request. `route` is the route's template, `none` where there is none. Unknown methods share a
/// label, so that a client cannot invent labels.
pub fn request_answered(method: &Method, route: &str, status: StatusCode, took: Duration) {
    let method = match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    };
    let route = route.to_owned();
    counter!(REQUESTS, "method" => method, "route" => route.clone(), "status" => status.as_u16().to_string())
        .increment(1);
    histogram!(DURATION, "method" => method, "route" => route).record(took.as_secs_f64());
}

/// Counts one request that came too soon, by `project` or `address`.
pub fn rate_limited(whose: &'static str) {
    counter!(LIMITED, "by" => whose).increment(1);
}

/// A connection, counted for as long as the value lives.
#[derive(Debug)]
pub struct OpenConnection(());

impl OpenConnection {
    /// Counts one more open connection, until it is dropped.
    pub fn counted() -> Self {
        gauge!(CONNECTIONS).increment(1);
        Self(())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        gauge!(CONNECTIONS).decrement(1);
    }
}

/// Counts one question to another service.
pub fn looked_up(service: &'static str, usable: bool, took: Duration) {
    let outcome = if usable { "answered" } else { "failed" };
    histogram!(LOOKUPS, "service" => service, "outcome" => outcome).record(took.as_secs_f64());
}
