//! Requests that are refused before anybody works on them: a head that is too large (414, 431), a client or a
//! project that asks too often (429).
//!
//! Rates are counted by this process, with the generic cell rate algorithm (crate `governor`): a burst, then an even
//! rate. Addresses are what the nearest trusted proxy has seen. Not guaranteed: a limit over several processes.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use magnum_config::ApiSection;

use super::arrival::Ids;
use super::forwarded::Outside;
use crate::faults::ApiFault;
use crate::metric_definitions;

/// The longest path with its query. Every name and marker that exists fits in many times.
const LONGEST_TARGET: usize = 16 * 1024;

/// After so many questions, those who have been quiet are forgotten.
const FORGET_EVERY: usize = 10_000;

/// How often each may ask.
pub struct Rate {
    limiter: DefaultKeyedRateLimiter<String>,
    clock: DefaultClock,
    asked: AtomicUsize,
}

impl Rate {
    /// `None` for no limit.
    fn new(per_second: u32, burst: u32) -> Option<Self> {
        let per_second = NonZeroU32::new(per_second)?;
        let quota = Quota::per_second(per_second).allow_burst(NonZeroU32::new(burst)?);
        Some(Self {
            limiter: RateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            asked: AtomicUsize::new(0),
        })
    }

    /// Whether it may ask now; else how long it should wait.
    fn ask(&self, who: &str) -> Result<(), Duration> {
        if self.asked.fetch_add(1, Ordering::Relaxed) % FORGET_EVERY == FORGET_EVERY - 1 {
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
        self.limiter
            .check_key(&who.to_owned())
            .map_err(|until| until.wait_time_from(self.clock.now()))
    }
}

/// The limits of `[api]`.
pub struct RequestLimits {
    head_bytes: usize,
    by_address: Option<Rate>,
    by_project: Option<Rate>,
}

impl RequestLimits {
    /// By `[api] max_header_size` and `rate_limit_*`.
    pub fn new(api: &ApiSection) -> Self {
        Self {
            head_bytes: api.max_header_size,
            by_address: Rate::new(api.rate_limit_per_address, api.rate_limit_burst),
            by_project: Rate::new(api.rate_limit_per_project, api.rate_limit_burst),
        }
    }

    /// Whether a project, or a user without one, may ask now; else how long it should wait.
    ///
    /// # Errors
    /// The time to wait.
    pub fn ask_as_project(&self, who: &str) -> Result<(), Duration> {
        self.by_project.as_ref().map_or(Ok(()), |rate| rate.ask(who))
    }
}

/// Middleware outside of the routes.
pub async fn at_the_door(State(limits): State<Arc<RequestLimits>>, request: Request, next: Next) -> Response {
    let target = request
        .uri()
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    let head: usize = request
        .headers()
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
        .sum();
    let fault = if target > LONGEST_TARGET {
        Some(ApiFault::framework(
            StatusCode::URI_TOO_LONG,
            format!("The path with its query is longer than {LONGEST_TARGET} bytes"),
        ))
    } else if head.saturating_add(target) > limits.head_bytes {
        Some(ApiFault::framework(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "The headers are larger than [api] max_header_size allows",
        ))
    } else {
        None
    };
    if let Some(fault) = fault {
        return answer(&request, &fault);
    }
    let nearest = request
        .extensions()
        .get::<Outside>()
        .map(|outside| &outside.nearest);
    if let (Some(rate), Some(address)) = (&limits.by_address, nearest)
        && let Err(wait) = rate.ask(address)
    {
        return too_often(&request, "address", wait);
    }
    next.run(request).await
}

/// 429 with the time to wait.
pub fn too_often(request: &Request, whose: &'static str, wait: Duration) -> Response {
    metric_definitions::rate_limited(whose);
    // Whole seconds, and never "at once".
    let seconds = wait.as_secs().saturating_add(1);
    let fault = ApiFault::framework(
        StatusCode::TOO_MANY_REQUESTS,
        format!("This {whose} sends too many requests. Try again in {seconds} s."),
    );
    let mut response = answer(request, &fault);
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// The fault with its body: nobody further out would give it one.
fn answer(request: &Request, fault: &ApiFault) -> Response {
    let id = request
        .extensions()
        .get::<Ids>()
        .map(|ids| ids.own.as_str())
        .unwrap_or_default();
    fault.rendered(id, request.method()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_passes_and_the_next_request_gets_retry_after() {
        let rate = Rate::new(1, 3).unwrap();
        for _ in 0..3 {
            rate.ask("p").unwrap();
        }
        let wait = rate.ask("p").unwrap_err();
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
        rate.ask("another").unwrap();
        assert!(Rate::new(0, 3).is_none());
    }
}
