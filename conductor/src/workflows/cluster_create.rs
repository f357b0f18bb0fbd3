//! `cluster_create`: choose the driver, have it build the cluster.
//!
//! The rows exist already: they were written when the request was accepted, so a 202 is visible at once. A
//! failure ends in `CREATE_FAILED` with the driver's message; nothing that was built is undone, since the
//! contract with users is an explicit delete.
//!
//! Differs from Magnum: the node groups fail with the cluster (Magnum leaves them `CREATE_IN_PROGRESS` for
//! ever), and `create_timeout` is enforced for every driver.

use std::time::Duration;

use super::Step;

/// The steps, in order.
pub const STEPS: &[Step] = &[Step::ChooseDriver, Step::CreateCluster];

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
