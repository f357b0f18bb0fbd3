//! Queues that only this process uses, and what takes the place of one that the broker serves no more.
//!
//! RabbitMQ 3.10 that is killed just after it has made a quorum queue keeps its name, but its Raft member never has a leader
//! again: whoever declares it, consumes from it or deletes it gets no answer. Python servers hang then. A queue whose name no
//! other process knows can have another name instead; who publishes goes on by the same exchange and key. What is in the old
//! queue stays there, and only an administrator of the broker can remove it.
//!
//! A queue that several processes share, such as the topic's, cannot be replaced by one of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::topology::Declaration;

/// A broker that has just come back may leave a question unanswered, and answer it on the next connection.
const UNANSWERED_BEFORE_REPLACED: u32 = 2;

/// The queues of one listener. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct OwnQueues(Arc<Mutex<HashMap<String, Own>>>);

#[derive(Debug, Default)]
struct Own {
    /// How many have had to be replaced.
    replaced: u32,
    /// How often in a row the broker left a question about the present one unanswered.
    unanswered: u32,
}

impl OwnQueues {
    /// These names are known to nobody else.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let owns = names.into_iter().map(|name| (name, Own::default()));
        Self(Arc::new(Mutex::new(owns.collect())))
    }

    /// The present name of `queue`, which is its own unless it was replaced.
    pub fn present_name(&self, queue: &str) -> String {
        let replaced = self.lock().get(queue).map_or(0, |own| own.replaced);
        name(queue, replaced)
    }

    /// The declarations with present names. Keys of bindings stay: they are what others publish to.
    pub(super) fn present(&self, declarations: &[Declaration]) -> Vec<Declaration> {
        let mut present = declarations.to_vec();
        for queue in present.iter_mut().filter_map(Declaration::queue_mut) {
            *queue = self.present_name(queue);
        }
        present
    }

    /// Whether the queue with this present name is one of them.
    pub(super) fn has(&self, present: Option<&str>) -> bool {
        let owns = self.lock();
        let mut names = owns.iter().map(|(queue, own)| name(queue, own.replaced));
        names.any(|own| Some(own.as_str()) == present)
    }

    /// The bindings of those that were replaced: what is published must not wait for a queue that confirms nothing.
    pub(super) fn replaced(&self, declarations: &[Declaration]) -> Vec<Declaration> {
        let owns = self.lock();
        let mut replaced = Vec::new();
        for declaration in declarations {
            if let Declaration::Bind { queue, .. } = declaration {
                for number in 0..owns.get(queue).map_or(0, |own| own.replaced) {
                    let mut binding = declaration.clone();
                    if let Some(old) = binding.queue_mut() {
                        *old = name(queue, number);
                    }
                    replaced.push(binding);
                }
            }
        }
        replaced
    }

    /// The broker has answered about all of them.
    pub(super) fn answered(&self) {
        for own in self.lock().values_mut() {
            own.unanswered = 0;
        }
    }

    /// The broker has left a question about the queue with this present name unanswered. Returns the name of the one that takes
    /// its place, if one does.
    pub(super) fn unanswered(&self, present: &str) -> Option<String> {
        let mut owns = self.lock();
        let (queue, own) = owns
            .iter_mut()
            .find(|(queue, own)| name(queue, own.replaced) == present)?;
        own.unanswered += 1;
        if own.unanswered < UNANSWERED_BEFORE_REPLACED {
            return None;
        }
        own.unanswered = 0;
        own.replaced += 1;
        Some(name(queue, own.replaced))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Own>> {
        // Counts only: each is valid at any moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(queue: &str, replaced: u32) -> String {
    match replaced {
        0 => queue.to_owned(),
        number => format!("{queue}.{}", number + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::RabbitOptions;
    use crate::target::Names;
    use crate::topology;

    fn names() -> Names {
        Names {
            exchange: "magnum".into(),
            topic: "t".into(),
        }
    }

    #[test]
    fn an_own_queue_is_replaced_the_second_time_in_a_row_and_others_never() {
        let owns = OwnQueues::new(["t.id".to_owned()]);
        assert_eq!(owns.unanswered("t.id"), None);
        owns.answered();
        assert_eq!(owns.unanswered("t.id"), None);
        assert_eq!(owns.unanswered("t.id").as_deref(), Some("t.id.2"));
        // A late word about the old one is about nothing that is used.
        assert_eq!(owns.unanswered("t.id"), None);
        assert_eq!(owns.unanswered("t.id.2"), None);
        assert_eq!(owns.unanswered("t.id.2").as_deref(), Some("t.id.3"));
        for _ in 0..5 {
            assert_eq!(owns.unanswered("t"), None);
        }
        assert!(owns.has(Some("t.id.3")) && !owns.has(Some("t.id")) && !owns.has(None));
    }

    #[test]
    fn the_new_queue_has_the_key_of_the_old_one_which_is_unbound() {
        let list = topology::server(&names(), "id", "f", &RabbitOptions::default());
        let owns = OwnQueues::new(["t.id".to_owned(), "f".to_owned()]);
        assert_eq!(owns.present(&list), list);
        assert_eq!(owns.replaced(&list), []);
        owns.unanswered("t.id");
        owns.unanswered("t.id");
        let binding = |queue: &str| Declaration::Bind {
            queue: queue.into(),
            exchange: "magnum".into(),
            routing_key: "t.id".into(),
        };
        let present = owns.present(&list);
        assert!(present.contains(&binding("t.id.2")) && !present.contains(&binding("t.id")));
        let queues = |list: &[Declaration]| -> Vec<_> {
            let consumed = list.iter().filter_map(|declaration| match declaration {
                Declaration::Consume { queue, .. } => Some(queue.clone()),
                _ => None,
            });
            consumed.collect()
        };
        assert_eq!(queues(&present), ["t", "t.id.2", "f"]);
        assert_eq!(owns.replaced(&list), [binding("t.id")]);
    }
}
