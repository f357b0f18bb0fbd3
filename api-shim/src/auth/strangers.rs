//! Addresses that send tokens which are not valid: all of them together have a share of the questions to Keystone, so that who
//! sends random tokens keeps nobody else from being answered.
//!
//! Not given: anything against a client that hides behind a proxy which other clients use, too, unless the proxy says who it
//! is (`[oslo_middleware] enable_proxy_headers_parsing`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use moka::future::Cache;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Invalid tokens that may come from one address within [`REMEMBERED_FOR`]: of a client whose token was just revoked, or of a
/// network whose clients have one address.
const TOLERATED: usize = 20;
/// How long an address is remembered, from its first invalid token on.
const REMEMBERED_FOR: Duration = Duration::from_secs(60);
/// Most addresses that are remembered; the ones that are seldom seen are forgotten first.
const MOST_REMEMBERED: u64 = 10_000;
/// Questions to Keystone at once for all such addresses together, of 64.
const TURNS: usize = 16;

/// Who has sent invalid tokens.
pub(super) struct Strangers {
    invalid: Cache<String, Arc<AtomicUsize>>,
    turns: Semaphore,
}

impl Strangers {
    pub(super) fn new() -> Self {
        Self {
            invalid: Cache::builder()
                .max_capacity(MOST_REMEMBERED)
                .time_to_live(REMEMBERED_FOR)
                .build(),
            turns: Semaphore::new(TURNS),
        }
    }

    /// Waits until Keystone may be asked for this address. `None`: at once, it is not one of these.
    pub(super) async fn turn(&self, address: &str) -> Option<SemaphorePermit<'_>> {
        let invalid = self.invalid.get(address).await?;
        if invalid.load(Ordering::Relaxed) < TOLERATED {
            return None;
        }
        // Nobody closes it.
        self.turns.acquire().await.ok()
    }

    /// A token that came from this address is not valid.
    pub(super) async fn sent_invalid(&self, address: &str) {
        let count = self.invalid.entry_by_ref(address).or_default().await;
        count.value().fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn only_addresses_that_have_sent_many_invalid_tokens_wait_for_each_other() {
        let strangers = Strangers::new();
        for _ in 0..TOLERATED {
            assert!(strangers.turn("192.0.2.1").await.is_none());
            strangers.sent_invalid("192.0.2.1").await;
        }
        let mut taken = Vec::new();
        for _ in 0..TURNS {
            taken.push(strangers.turn("192.0.2.1").await.expect("a turn of the share"));
        }
        assert!(
            strangers.turn("192.0.2.1").now_or_never().is_none(),
            "the share is used up"
        );
        assert!(strangers.turn("192.0.2.2").await.is_none(), "others do not wait");
        taken.pop();
        assert!(strangers.turn("192.0.2.1").await.is_some());
    }
}
