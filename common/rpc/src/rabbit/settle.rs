//! Settlements of deliveries (ack, reject), sent to the broker in order and in few frames.
//!
//! Handlers only settle a delivery; the listener's own task sends the frames. While one round of
//! frames is on its way the next one gathers, so under load an acknowledgement costs a fraction of a frame.
//!
//! A frame with `multiple` speaks for every unsettled delivery of its channel up to a tag. So
//! the [`Ledger`] knows what is held: such a frame never reaches a delivery that is still held, one that has not
//! come out of its consumer's buffer yet, or one that was returned.

use std::collections::BTreeSet;

use lapin::Channel;
use lapin::options::{BasicAckOptions, BasicRejectOptions};
use lapin::types::DeliveryTag;
use tokio::sync::mpsc;

use crate::delivery::Settle;

/// How a delivery was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settlement {
    /// It was processed: the broker may forget it.
    Ack(DeliveryTag),
    /// It was not: the broker puts it back into its queue, or drops it.
    Reject { tag: DeliveryTag, requeue: bool },
}

/// A frame to the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    Ack { tag: DeliveryTag, multiple: bool },
    Reject { tag: DeliveryTag, requeue: bool },
}

/// The deliveries of one channel that are held.
#[derive(Debug)]
pub(super) struct Ledger {
    held: BTreeSet<DeliveryTag>,
    /// Every tag below this one has come out of its consumer.
    next: DeliveryTag,
    /// Tags beyond it that have: consumers share the channel, and their buffers are not emptied in order.
    early: BTreeSet<DeliveryTag>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            held: BTreeSet::new(),
            // Tags of a channel count from 1.
            next: 1,
            early: BTreeSet::new(),
        }
    }
}

impl Ledger {
    /// A delivery has come out of its consumer.
    pub(super) fn lent(&mut self, tag: DeliveryTag) {
        self.held.insert(tag);
        self.early.insert(tag);
        while self.early.remove(&self.next) {
            self.next += 1;
        }
    }

    /// The frames for these settlements. To be sent in order, each only after the one before it.
    pub(super) fn settle(&mut self, settlements: &[Settlement]) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut done = BTreeSet::new();
        for settlement in settlements {
            match *settlement {
                Settlement::Ack(tag) => {
                    if self.held.remove(&tag) {
                        done.insert(tag);
                    }
                }
                // Sent before any acknowledgement that could include it.
                Settlement::Reject { tag, requeue } => {
                    if self.held.remove(&tag) {
                        frames.push(Frame::Reject { tag, requeue });
                    }
                }
            }
        }
        let border = self.held.first().map_or(self.next, |first| self.next.min(*first));
        let beyond = done.split_off(&border);
        if let Some(last) = done.last() {
            frames.push(Frame::Ack {
                tag: *last,
                multiple: done.len() > 1,
            });
        }
        let alone = |tag| Frame::Ack { tag, multiple: false };
        frames.extend(beyond.into_iter().map(alone));
        frames
    }
}

/// Sends frames, each after the one before it was written.
pub(super) async fn send_frames(channel: Channel, frames: Vec<Frame>) -> lapin::Result<()> {
    for frame in frames {
        match frame {
            Frame::Ack { tag, multiple } => channel.basic_ack(tag, BasicAckOptions { multiple }).await?,
            Frame::Reject { tag, requeue } => {
                channel.basic_reject(tag, BasicRejectOptions { requeue }).await?;
            }
        }
    }
    Ok(())
}

/// Settles through the session that the delivery came from. Once that is lost, the message is redelivered.
pub(super) struct Settler {
    pub(super) tag: DeliveryTag,
    pub(super) settlements: mpsc::UnboundedSender<Settlement>,
}

impl Settle for Settler {
    fn ack(&self) {
        self.send(Settlement::Ack(self.tag));
    }

    fn reject(&self, requeue: bool) {
        self.send(Settlement::Reject {
            tag: self.tag,
            requeue,
        });
    }
}

impl Settler {
    fn send(&self, settlement: Settlement) {
        if self.settlements.send(settlement).is_err() {
            tracing::debug!(?settlement, "came after the connection was lost");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Settlement::Ack;

    fn lent(tags: impl IntoIterator<Item = u64>) -> Ledger {
        let mut ledger = Ledger::default();
        tags.into_iter().for_each(|tag| ledger.lent(tag));
        ledger
    }

    const fn ack(tag: u64, multiple: bool) -> Frame {
        Frame::Ack { tag, multiple }
    }

    #[test]
    fn a_run_of_acknowledgements_is_one_frame() {
        let mut ledger = lent(1..=4);
        assert_eq!(ledger.settle(&[Ack(2), Ack(1), Ack(3)]), [ack(3, true)]);
        assert_eq!(ledger.settle(&[Ack(4)]), [ack(4, false)]);
        assert_eq!(ledger.settle(&[]), []);
    }

    #[test]
    fn a_held_delivery_is_never_spoken_for() {
        let mut ledger = lent(1..=5);
        assert_eq!(
            ledger.settle(&[Ack(1), Ack(2), Ack(4), Ack(5)]),
            [ack(2, true), ack(4, false), ack(5, false)]
        );
        assert_eq!(ledger.settle(&[Ack(3)]), [ack(3, false)]);
    }

    #[test]
    fn a_delivery_in_another_consumers_buffer_is_never_spoken_for() {
        let mut ledger = lent([1, 3, 4]);
        assert_eq!(
            ledger.settle(&[Ack(1), Ack(3), Ack(4)]),
            [ack(1, false), ack(3, false), ack(4, false)]
        );
        [2, 5, 6].into_iter().for_each(|tag| ledger.lent(tag));
        assert_eq!(ledger.settle(&[Ack(2), Ack(5), Ack(6)]), [ack(6, true)]);
    }

    #[test]
    fn a_rejection_goes_before_the_frame_that_passes_it() {
        let mut ledger = lent(1..=3);
        let returned = Settlement::Reject {
            tag: 2,
            requeue: true,
        };
        assert_eq!(
            ledger.settle(&[Ack(1), Ack(3), returned]),
            [
                Frame::Reject {
                    tag: 2,
                    requeue: true
                },
                ack(3, true)
            ]
        );
    }

    #[test]
    fn second_settlement_is_ignored() {
        let mut ledger = lent(1..=2);
        assert_eq!(ledger.settle(&[Ack(1), Ack(1)]), [ack(1, false)]);
        assert_eq!(ledger.settle(&[Ack(1)]), []);
    }
}
