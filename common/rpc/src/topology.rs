//! What is declared on the broker, as pure data.
//!
//! Queues and exchanges are shared with Python peers, and RabbitMQ refuses a second declaration with other
//! arguments. So the lists here must equal oslo.messaging's for the same options, flag for flag and in order;
//! tests compare them with recordings of the real one.
//!
//! With `rabbit_stream_fanout` all servers read one stream instead of a fanout queue each.

use std::borrow::Cow;

use super::options::RabbitOptions;
use super::target::Names;

/// The consumer argument that says where in a stream to begin; also the header that says where a message was.
pub const STREAM_OFFSET: &str = "x-stream-offset";

/// One step of a declaration list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Declaration {
    /// `basic.qos`, per consumer.
    Prefetch(u16),
    /// `exchange.declare`.
    Exchange(Exchange),
    /// `queue.declare`.
    Queue(Queue),
    /// `queue.bind`.
    Bind {
        /// Queue.
        queue: String,
        /// Exchange.
        exchange: String,
        /// Key.
        routing_key: String,
    },
    /// `basic.consume`, acknowledged.
    Consume {
        /// Queue.
        queue: String,
        /// Tag, unique on its channel.
        tag: String,
        /// Consumer arguments.
        arguments: Arguments,
    },
}

impl Declaration {
    /// The queue that it is about.
    pub fn queue(&self) -> Option<&str> {
        match self {
            Self::Queue(queue) => Some(&queue.name),
            Self::Bind { queue, .. } | Self::Consume { queue, .. } => Some(queue),
            Self::Prefetch(_) | Self::Exchange(_) => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn queue_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Queue(queue) => Some(&mut queue.name),
            Self::Bind { queue, .. } | Self::Consume { queue, .. } => Some(queue),
            Self::Prefetch(_) | Self::Exchange(_) => None,
        }
    }
}

/// Arguments of a queue or consumer, in oslo's order.
pub type Arguments = Vec<(&'static str, Argument)>;

/// The value of an argument.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Argument {
    /// Text.
    Text(Cow<'static, str>),
    /// Number.
    Number(i64),
    /// Flag.
    Flag(bool),
}

/// How an exchange routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExchangeKind {
    /// By pattern of the key.
    Topic,
    /// To every bound queue.
    Fanout,
}

/// An exchange.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Exchange {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: ExchangeKind,
    /// Survives a broker restart.
    pub durable: bool,
    /// Goes with its last binding.
    pub auto_delete: bool,
}

/// A queue. None of ours is exclusive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Queue {
    /// Name.
    pub name: String,
    /// Survives a broker restart.
    pub durable: bool,
    /// Goes with its last consumer.
    pub auto_delete: bool,
    /// Arguments.
    pub arguments: Arguments,
}

/// A server's start: both topic queues, its fanout queue, three consumers.
pub fn server(
    names: &Names,
    server_id: &str,
    fanout_queue: &str,
    options: &RabbitOptions,
) -> Vec<Declaration> {
    let mut list = prefetch(options);
    for queue in [names.topic_queue().to_owned(), names.server_queue(server_id)] {
        list.push(control_exchange(names, options));
        list.push(Declaration::Queue(topic_queue(&queue, options)));
        list.push(Declaration::Bind {
            routing_key: queue.clone(),
            queue,
            exchange: names.exchange.clone(),
        });
    }
    list.push(fanout_exchange(names, options));
    list.push(Declaration::Queue(if options.rabbit_stream_fanout {
        stream(fanout_queue, options)
    } else {
        transient_queue(fanout_queue, options)
    }));
    list.push(Declaration::Bind {
        queue: fanout_queue.to_owned(),
        exchange: names.fanout_exchange(),
        routing_key: names.topic.clone(),
    });
    list.push(consume(names.topic_queue(), "1", options));
    list.push(consume(&names.server_queue(server_id), "2", options));
    list.push(if options.rabbit_stream_fanout {
        consume_stream(fanout_queue, "3")
    } else {
        consume(fanout_queue, "3", options)
    });
    list
}

/// A caller's reply queue and its consumer.
pub fn reply_listener(queue: &str, options: &RabbitOptions) -> Vec<Declaration> {
    let mut list = prefetch(options);
    list.push(Declaration::Queue(transient_queue(queue, options)));
    list.push(consume(queue, "1", options));
    list
}

/// What a caller declares before its first request: only the exchange, never the queue.
pub fn control_exchange(names: &Names, options: &RabbitOptions) -> Declaration {
    Declaration::Exchange(Exchange {
        name: names.exchange.clone(),
        kind: ExchangeKind::Topic,
        durable: options.durable_topics(),
        auto_delete: options.amqp_auto_delete,
    })
}

/// What a fanout caller declares besides.
pub fn fanout_exchange(names: &Names, options: &RabbitOptions) -> Declaration {
    Declaration::Exchange(Exchange {
        name: names.fanout_exchange(),
        kind: ExchangeKind::Fanout,
        durable: options.rabbit_transient_quorum_queue || options.rabbit_stream_fanout,
        auto_delete: true,
    })
}

/// A queue of the topic, or one that must live as long: the dead-letter queue.
pub fn topic_queue(name: &str, options: &RabbitOptions) -> Queue {
    Queue {
        name: name.to_owned(),
        durable: options.durable_topics(),
        auto_delete: options.amqp_auto_delete,
        arguments: queue_kind(options.rabbit_quorum_queue, options),
    }
}

/// A dead letter must outlast its last reader, and any number of them: unlike a topic queue this one never deletes
/// itself, and has no limit of deliveries.
pub fn dead_letter_queue(name: &str, options: &RabbitOptions) -> Declaration {
    let mut queue = topic_queue(name, options);
    queue.auto_delete = false;
    queue
        .arguments
        .retain(|(argument, _)| *argument != "x-delivery-limit");
    Declaration::Queue(queue)
}

/// What a notifier declares before its first message with this routing key: as long-lived as a topic.
pub fn notification_queue(exchange: &str, queue: &str, options: &RabbitOptions) -> Vec<Declaration> {
    vec![
        Declaration::Exchange(Exchange {
            name: exchange.to_owned(),
            kind: ExchangeKind::Topic,
            durable: options.durable_topics(),
            auto_delete: options.amqp_auto_delete,
        }),
        Declaration::Queue(topic_queue(queue, options)),
        Declaration::Bind {
            queue: queue.to_owned(),
            exchange: exchange.to_owned(),
            routing_key: queue.to_owned(),
        },
    ]
}

/// A queue of one process: fanout copies or replies.
fn transient_queue(name: &str, options: &RabbitOptions) -> Queue {
    let mut arguments = queue_kind(options.rabbit_transient_quorum_queue, options);
    let ttl_ms = i64::try_from(options.rabbit_transient_queues_ttl.as_millis()).unwrap_or(i64::MAX);
    if ttl_ms > 0 {
        arguments.push(("x-expires", Argument::Number(ttl_ms)));
    }
    Queue {
        name: name.to_owned(),
        durable: options.rabbit_transient_quorum_queue,
        auto_delete: false,
        arguments,
    }
}

/// The stream that all servers read.
fn stream(name: &str, options: &RabbitOptions) -> Queue {
    let mut arguments = vec![("x-queue-type", Argument::Text("stream".into()))];
    let ttl = options.rabbit_transient_queues_ttl.as_secs();
    if ttl > 0 {
        arguments.push(("x-max-age", Argument::Text(format!("{ttl}s").into())));
    }
    Queue {
        name: name.to_owned(),
        durable: true,
        auto_delete: false,
        arguments,
    }
}

fn queue_kind(quorum: bool, options: &RabbitOptions) -> Arguments {
    let mut arguments = Arguments::new();
    if options.rabbit_ha_queues {
        arguments.push(("x-ha-policy", Argument::Text("all".into())));
    }
    if quorum {
        arguments.push(("x-queue-type", Argument::Text("quorum".into())));
        for (name, limit) in [
            ("x-delivery-limit", options.rabbit_quorum_delivery_limit),
            ("x-max-in-memory-length", options.rabbit_quorum_max_memory_length),
            ("x-max-in-memory-bytes", options.rabbit_quorum_max_memory_bytes),
        ] {
            if limit > 0 {
                arguments.push((name, Argument::Number(limit)));
            }
        }
    }
    arguments
}

fn prefetch(options: &RabbitOptions) -> Vec<Declaration> {
    match options.rabbit_qos_prefetch_count {
        0 => Vec::new(),
        count => vec![Declaration::Prefetch(count)],
    }
}

fn consume(queue: &str, tag: &str, options: &RabbitOptions) -> Declaration {
    let mut arguments = Arguments::new();
    if options.enable_cancel_on_failover {
        arguments.push(("x-cancel-on-ha-failover", Argument::Flag(true)));
    }
    Declaration::Consume {
        queue: queue.to_owned(),
        tag: tag.to_owned(),
        arguments,
    }
}

fn consume_stream(queue: &str, tag: &str) -> Declaration {
    Declaration::Consume {
        queue: queue.to_owned(),
        tag: tag.to_owned(),
        arguments: vec![(STREAM_OFFSET, Argument::Text("last".into()))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names {
            exchange: "magnum".into(),
            topic: "magnum-conductor".into(),
        }
    }

    #[test]
    fn no_prefetch_option_means_no_qos() {
        let list = server(&names(), "id", "f", &RabbitOptions::default());
        assert_eq!(list.len(), 12);
        assert!(matches!(list[0], Declaration::Exchange(_)));
        let options = RabbitOptions {
            rabbit_qos_prefetch_count: 7,
            ..RabbitOptions::default()
        };
        assert_eq!(server(&names(), "id", "f", &options)[0], Declaration::Prefetch(7));
    }

    #[test]
    fn quorum_topics_leave_transient_queues_as_they_are() {
        let options = RabbitOptions {
            rabbit_quorum_queue: true,
            ..RabbitOptions::default()
        };
        let topic = topic_queue("t", &options);
        assert!(topic.durable);
        assert_eq!(
            topic.arguments,
            [("x-queue-type", Argument::Text("quorum".into()))]
        );
        assert!(!transient_queue("f", &options).durable);
    }

    #[test]
    fn a_dead_letter_queue_never_deletes_itself_or_a_letter() {
        let options = RabbitOptions {
            amqp_auto_delete: true,
            rabbit_quorum_queue: true,
            rabbit_quorum_delivery_limit: 3,
            ..RabbitOptions::default()
        };
        let Declaration::Queue(queue) = dead_letter_queue("d", &options) else {
            panic!("a queue");
        };
        assert!(!queue.auto_delete);
        assert_eq!(
            queue.arguments,
            [("x-queue-type", Argument::Text("quorum".into()))]
        );
    }
}
