//! How long to wait before the next attempt to connect.
//!
//! oslo.messaging's rule: the first pause is `kombu_reconnect_delay`, then `rabbit_retry_interval`, growing by
//! `rabbit_retry_backoff` up to `rabbit_interval_max`; never giving up. A share of it is random here, so that a
//! broker that comes back is not met by all conductors at once; `kombu_reconnect_splay` adds to it.

use std::time::Duration;

use rand::RngExt;

use crate::options::RabbitOptions;

/// Up to this share of a pause is added at random.
const SPREAD: f64 = 0.2;

/// The pause after the `failures`-th failure in a row; the loss of the connection is the first.
pub(super) fn pause(options: &RabbitOptions, failures: u32) -> Duration {
    let spread = rand::rng().random_range(0.0..SPREAD);
    let splay = options
        .kombu_reconnect_splay
        .mul_f64(rand::rng().random_range(0.0..1.0));
    base(options, failures)
        .mul_f64(1.0 + spread)
        .saturating_add(splay)
}

fn base(options: &RabbitOptions, failures: u32) -> Duration {
    match failures {
        0 | 1 => options.kombu_reconnect_delay,
        more => {
            let grown = options.rabbit_retry_backoff.saturating_mul(more - 2);
            options
                .rabbit_retry_interval
                .saturating_add(grown)
                .min(options.rabbit_interval_max)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_by_the_backoff_up_to_the_maximum() {
        let options = RabbitOptions::default();
        let seconds: Vec<u64> = (1..=7).map(|n| base(&options, n).as_secs()).collect();
        assert_eq!(seconds, [1, 1, 3, 5, 7, 9, 11]);
        assert_eq!(base(&options, u32::MAX), Duration::from_secs(30));
    }

    #[test]
    fn the_splay_is_added_at_random() {
        let options = RabbitOptions {
            kombu_reconnect_splay: Duration::from_secs(100),
            ..RabbitOptions::default()
        };
        let longest = (0..100).map(|_| pause(&options, 2)).max().unwrap();
        assert!(
            (Duration::from_secs(10)..Duration::from_secs(102)).contains(&longest),
            "{longest:?}"
        );
    }

    #[test]
    fn the_random_share_is_small() {
        let options = RabbitOptions::default();
        for _ in 0..100 {
            let pause = pause(&options, 2).as_secs_f64();
            assert!((1.0..1.2).contains(&pause), "{pause}");
        }
    }
}
