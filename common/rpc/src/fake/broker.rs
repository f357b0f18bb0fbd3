//! The broker's state and its rules. Synchronous: one lock, no waiting inside.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use crate::authentication::SIGNATURE;
use crate::message::{OutgoingMessage, RawMessage};
use crate::topology::{Declaration, ExchangeKind};
use crate::transport::QueueState;
use magnum_telemetry::trace::TraceContext;

/// Names a consumer of this broker.
pub(super) type ConsumerId = u64;
/// Names a delivery of this broker.
pub(super) type Tag = u64;

/// A message lent to a consumer.
pub(super) struct Lent {
    pub(super) tag: Tag,
    pub(super) message: RawMessage,
}

#[derive(Default)]
pub(super) struct Broker(Mutex<State>);

#[derive(Default)]
struct State {
    exchanges: HashMap<String, ExchangeKind>,
    bindings: Vec<Binding>,
    queues: HashMap<String, Queue>,
    consumers: BTreeMap<ConsumerId, Consumer>,
    lent: BTreeMap<Tag, Loan>,
    next_id: u64,
}

struct Binding {
    exchange: String,
    routing_key: String,
    queue: String,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Stored>,
    /// The consumer served last; the next one gets the next message.
    last_served: ConsumerId,
}

#[derive(Clone)]
struct Stored {
    message: RawMessage,
    expires: Option<Instant>,
}

struct Consumer {
    queue: String,
    /// Most unsettled deliveries; 0 is no limit.
    prefetch: usize,
    held: usize,
    deliveries: UnboundedSender<Lent>,
}

struct Loan {
    consumer: ConsumerId,
    queue: String,
    stored: Stored,
}

impl Broker {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change below is complete before anything that can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Declares an exchange, a queue or a binding; other declarations are the listener's.
    pub(super) fn declare(&self, declaration: &Declaration) {
        let mut state = self.lock();
        match declaration {
            Declaration::Exchange(exchange) => {
                state.exchanges.insert(exchange.name.clone(), exchange.kind);
            }
            Declaration::Queue(queue) => {
                state.queues.entry(queue.name.clone()).or_default();
            }
            Declaration::Bind {
                queue,
                exchange,
                routing_key,
            } => {
                let known = state
                    .bindings
                    .iter()
                    .any(|b| b.queue == *queue && b.exchange == *exchange && b.routing_key == *routing_key);
                if !known {
                    state.bindings.push(Binding {
                        exchange: exchange.clone(),
                        routing_key: routing_key.clone(),
                        queue: queue.clone(),
                    });
                }
            }
            Declaration::Prefetch(_) | Declaration::Consume { .. } => {}
        }
    }

    /// What is in a queue, and who consumes from it.
    pub(super) fn queue(&self, name: &str) -> Option<QueueState> {
        let state = self.lock();
        let consumers = state.consumers.values().filter(|consumer| consumer.queue == name);
        let queue = state.queues.get(name)?;
        Some(QueueState {
            messages: u32::try_from(queue.messages.len()).unwrap_or(u32::MAX),
            consumers: u32::try_from(consumers.count()).unwrap_or(u32::MAX),
        })
    }

    /// Puts a message into every queue it routes to. Tells whether there was one.
    pub(super) fn publish(&self, outgoing: &OutgoingMessage) -> bool {
        let mut state = self.lock();
        let queues = state.routes(&outgoing.route.exchange, &outgoing.route.routing_key);
        let header = |name: &str| {
            let found = outgoing.headers.iter().find(|(header, _)| header == name);
            found.map(|(_, value)| value.clone())
        };
        for queue in &queues {
            let stored = Stored {
                message: RawMessage {
                    queue: queue.clone(),
                    content_type: outgoing.content_type.clone(),
                    content_encoding: outgoing.content_encoding.clone(),
                    compression: header("compression"),
                    trace: header(TraceContext::PARENT).and_then(|parent| {
                        TraceContext::parse(&parent, header(TraceContext::STATE).as_deref())
                    }),
                    signature: header(SIGNATURE),
                    redelivered: false,
                    stream_offset: None,
                    body: outgoing.body.clone(),
                },
                expires: outgoing.expiration.map(|after| Instant::now() + after),
            };
            if let Some(entry) = state.queues.get_mut(queue) {
                entry.messages.push_back(stored);
            }
            state.serve(queue);
        }
        !queues.is_empty()
    }

    /// Adds a consumer; messages come through `deliveries` at once.
    pub(super) fn consume(
        &self,
        queue: &str,
        prefetch: u16,
        deliveries: UnboundedSender<Lent>,
    ) -> ConsumerId {
        let mut state = self.lock();
        let id = state.fresh_id();
        state.consumers.insert(
            id,
            Consumer {
                queue: queue.to_owned(),
                prefetch: usize::from(prefetch),
                held: 0,
                deliveries,
            },
        );
        state.serve(queue);
        id
    }

    /// Removes a consumer; what it holds stays with it until settled or returned.
    pub(super) fn cancel(&self, consumer: ConsumerId) {
        self.lock().consumers.remove(&consumer);
    }

    /// Removes consumers and gives back all they hold, in the old order.
    pub(super) fn disconnect(&self, consumers: &[ConsumerId]) {
        let mut state = self.lock();
        for consumer in consumers {
            state.consumers.remove(consumer);
        }
        let tags: Vec<Tag> = state
            .lent
            .iter()
            .filter(|(_, loan)| consumers.contains(&loan.consumer))
            .map(|(tag, _)| *tag)
            .collect();
        // Last lent first, so that the first one ends at the head.
        for tag in tags.into_iter().rev() {
            state.give_back(tag);
        }
        state.serve_all();
    }

    /// Settles a delivery; one that is not lent any more is left alone.
    pub(super) fn settle(&self, tag: Tag, requeue: bool) {
        let mut state = self.lock();
        let queue = if requeue {
            state.give_back(tag)
        } else {
            state.end_loan(tag).map(|loan| loan.queue)
        };
        if let Some(queue) = queue {
            state.serve(&queue);
        }
    }

    pub(super) fn delete_queue(&self, queue: &str) {
        let mut state = self.lock();
        state.queues.remove(queue);
        state.bindings.retain(|binding| binding.queue != queue);
    }
}

impl State {
    fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn routes(&self, exchange: &str, routing_key: &str) -> Vec<String> {
        if exchange.is_empty() {
            // The default exchange routes by queue name.
            let known = self.queues.contains_key(routing_key);
            return known.then(|| routing_key.to_owned()).into_iter().collect();
        }
        let fanout = self.exchanges.get(exchange) == Some(&ExchangeKind::Fanout);
        let mut queues: Vec<String> = self
            .bindings
            .iter()
            .filter(|binding| binding.exchange == exchange && (fanout || binding.routing_key == routing_key))
            .map(|binding| binding.queue.clone())
            .collect();
        queues.sort_unstable();
        queues.dedup();
        queues
    }

    fn end_loan(&mut self, tag: Tag) -> Option<Loan> {
        let loan = self.lent.remove(&tag)?;
        if let Some(consumer) = self.consumers.get_mut(&loan.consumer) {
            consumer.held = consumer.held.saturating_sub(1);
        }
        Some(loan)
    }

    fn give_back(&mut self, tag: Tag) -> Option<String> {
        let loan = self.end_loan(tag)?;
        let mut stored = loan.stored;
        stored.message.redelivered = true;
        self.queues.get_mut(&loan.queue)?.messages.push_front(stored);
        Some(loan.queue)
    }

    fn serve_all(&mut self) {
        let queues: Vec<String> = self.queues.keys().cloned().collect();
        for queue in queues {
            self.serve(&queue);
        }
    }

    /// Lends messages of `queue` to its consumers in turn, as long as one has room.
    fn serve(&mut self, queue: &str) {
        let now = Instant::now();
        loop {
            let Some(entry) = self.queues.get_mut(queue) else {
                return;
            };
            entry
                .messages
                .retain(|stored| stored.expires.is_none_or(|expires| expires > now));
            if entry.messages.is_empty() {
                return;
            }
            let last = entry.last_served;
            let ready = |(id, consumer): &(&ConsumerId, &mut Consumer)| {
                let room = consumer.prefetch == 0 || consumer.held < consumer.prefetch;
                (consumer.queue == queue && room).then_some(**id)
            };
            let mut candidates: Vec<ConsumerId> = self
                .consumers
                .iter_mut()
                .filter_map(|pair| ready(&pair))
                .collect();
            candidates.sort_unstable_by_key(|id| (*id <= last, *id));
            let Some(id) = candidates.first().copied() else {
                return;
            };
            self.lend(queue, id);
        }
    }

    fn lend(&mut self, queue: &str, id: ConsumerId) {
        let tag = self.fresh_id();
        let Some(entry) = self.queues.get_mut(queue) else {
            return;
        };
        let Some(stored) = entry.messages.pop_front() else {
            return;
        };
        entry.last_served = id;
        let Some(consumer) = self.consumers.get_mut(&id) else {
            return;
        };
        let lent = Lent {
            tag,
            message: stored.message.clone(),
        };
        if consumer.deliveries.send(lent).is_ok() {
            consumer.held += 1;
            self.lent.insert(
                tag,
                Loan {
                    consumer: id,
                    queue: queue.to_owned(),
                    stored,
                },
            );
        } else {
            // The listener ended without saying so.
            self.consumers.remove(&id);
            if let Some(entry) = self.queues.get_mut(queue) {
                entry.messages.push_front(stored);
            }
        }
    }
}
