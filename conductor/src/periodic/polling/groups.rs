//! Clusters of one driver, cut into groups that are polled together. Pure.

use std::sync::Arc;

use magnum_driver_api::{ClusterRef, Driver};

/// Most clusters in one poll of a driver without [`Driver::observe_batch`]: a simple driver asks its cloud about one
/// cluster after the other.
const LARGEST_GROUP: usize = 50;

/// Clusters of one driver.
pub(in crate::periodic) struct Group {
    pub(in crate::periodic) driver: Arc<dyn Driver>,
    pub(in crate::periodic) clusters: Vec<ClusterRef>,
}

impl Group {
    pub(super) fn of(driver: Arc<dyn Driver>) -> Self {
        Self {
            driver,
            clusters: Vec::new(),
        }
    }

    /// Cuts the group so that `parallelism` polls can run at once.
    pub(super) fn cut(self, parallelism: usize) -> Vec<Self> {
        let size = size(self.clusters.len(), self.driver.observe_batch(), parallelism);
        let chunks = chunks(self.clusters, size).into_iter();
        let cut = chunks.map(|clusters| Self {
            driver: Arc::clone(&self.driver),
            clusters,
        });
        cut.collect()
    }
}

/// The size of a group: the `wanted` one, else the clusters spread evenly over `parallelism` polls.
fn size(clusters: usize, wanted: Option<usize>, parallelism: usize) -> usize {
    wanted
        .unwrap_or_else(|| clusters.div_ceil(parallelism.max(1)).min(LARGEST_GROUP))
        .max(1)
}

fn chunks<T>(mut items: Vec<T>, size: usize) -> Vec<Vec<T>> {
    let mut chunks = Vec::new();
    while items.len() > size {
        let rest = items.split_off(size);
        chunks.push(std::mem::replace(&mut items, rest));
    }
    if !items.is_empty() {
        chunks.push(items);
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_spread_over_the_permits_unless_the_driver_sets_a_batch_size() {
        assert_eq!(size(500, None, 32), 16);
        assert_eq!(size(3, None, 32), 1);
        assert_eq!(size(500, None, 1), LARGEST_GROUP);
        assert_eq!(size(500, Some(500), 32), 500);
        assert_eq!(size(500, Some(200), 32), 200);
        assert_eq!(chunks(vec![1, 2, 3, 4, 5], 2), [vec![1, 2], vec![3, 4], vec![5]]);
    }
}
