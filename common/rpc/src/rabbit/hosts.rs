//! In which order the nodes of `transport_url` are tried.
//!
//! As in oslo.messaging, each connection shuffles the list once and then goes round it (`round-robin`), or
//! shuffles it each time (`shuffle`). A round begins with the node behind the last one that was tried, whatever came
//! of it: a node that hangs would cost its whole time limit again, and a publisher whose own patience ends first
//! would never get beyond it.

use rand::seq::SliceRandom;

use magnum_config::FailoverStrategy;

/// The order of one connection.
#[derive(Debug)]
pub(super) struct HostOrder {
    /// Indexes into the list of hosts.
    order: Vec<usize>,
    /// Where in `order` the next round begins.
    next: usize,
    strategy: FailoverStrategy,
}

impl HostOrder {
    /// Of so many hosts.
    pub(super) fn new(hosts: usize, strategy: FailoverStrategy) -> Self {
        let mut order: Vec<usize> = (0..hosts).collect();
        order.shuffle(&mut rand::rng());
        Self {
            order,
            next: 0,
            strategy,
        }
    }

    /// Every host once, in the order in which they are to be tried now.
    pub(super) fn round(&mut self) -> Vec<usize> {
        if self.strategy == FailoverStrategy::Shuffle {
            self.order.shuffle(&mut rand::rng());
            self.next = 0;
        }
        let (before, from) = self.order.split_at(self.next);
        [from, before].concat()
    }

    /// This one is tried now: the next round begins behind it.
    pub(super) fn trying(&mut self, host: usize) {
        if let Some(position) = self.order.iter().position(|other| *other == host) {
            self.next = (position + 1) % self.order.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_robin_goes_round_one_shuffled_list() {
        let mut hosts = HostOrder::new(4, FailoverStrategy::RoundRobin);
        let first = hosts.round();
        assert_eq!(hosts.round(), first);
        hosts.trying(first[0]);
        hosts.trying(first[1]);
        assert_eq!(hosts.round(), [first[2], first[3], first[0], first[1]]);
        hosts.trying(first[2]);
        hosts.trying(first[3]);
        assert_eq!(hosts.round(), first);
    }

    #[test]
    fn lists_of_different_connections_differ() {
        let orders: std::collections::HashSet<Vec<usize>> = (0..100)
            .map(|_| HostOrder::new(4, FailoverStrategy::RoundRobin).round())
            .collect();
        assert!(orders.len() > 1);
    }

    #[test]
    fn shuffle_gives_another_order_each_time_and_leaves_nobody_out() {
        let mut hosts = HostOrder::new(4, FailoverStrategy::Shuffle);
        let rounds: std::collections::HashSet<Vec<usize>> = (0..100).map(|_| hosts.round()).collect();
        assert!(rounds.len() > 1);
        for mut round in rounds {
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3]);
        }
    }
}
