//! How long building a cluster may take. Enforced for every driver; Magnum leaves it to the driver.

use std::time::Duration;

/// What `openstack coe cluster create` sends when the user gives no `--timeout`.
const DEFAULT_TIMEOUT_MINUTES: i32 = 60;

/// How long the operation may take: `create_timeout` in minutes; 0 or less means no limit.
pub fn time_limit(create_timeout: Option<i32>) -> Option<Duration> {
    let minutes = create_timeout.unwrap_or(DEFAULT_TIMEOUT_MINUTES);
    u64::try_from(minutes)
        .ok()
        .filter(|minutes| *minutes > 0)
        .map(|minutes| Duration::from_secs(minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_timeout_counts_and_zero_means_none() {
        assert_eq!(time_limit(Some(5)), Some(Duration::from_secs(300)));
        assert_eq!(time_limit(None), Some(Duration::from_secs(3600)));
        assert_eq!(time_limit(Some(0)), None);
        assert_eq!(time_limit(Some(-1)), None);
    }
}
