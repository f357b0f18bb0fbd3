//! The one place that reads the wall clock.
//!
//! Row timestamps (`created_at`, `updated_at`) are wall-clock UTC, as Magnum writes them. Nothing that decides
//! ownership or a deadline may use them: leases compare database time (`db::now_ms`), deadlines compare
//! [`tokio::time::Instant`].

use chrono::{DateTime, NaiveDateTime, Utc};

/// Now in UTC, with sub-second precision.
#[expect(clippy::disallowed_methods, reason = "this is the place the lint points to")]
pub fn utc_now() -> DateTime<Utc> {
    Utc::now()
}

/// Now in UTC without a zone and cut to whole seconds: how Magnum's rows on MySQL hold time.
pub fn row_now() -> NaiveDateTime {
    let now = utc_now().naive_utc();
    now - chrono::Duration::nanoseconds(i64::from(now.and_utc().timestamp_subsec_nanos()))
}
