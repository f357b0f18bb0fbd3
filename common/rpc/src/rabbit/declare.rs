//! Declaring, with a way out where something exists with other arguments.
//!
//! RabbitMQ answers such a declaration with 406 and closes the channel. The thing is there all the same, and
//! works: it is then declared passively, which only checks that it exists, and used as it is. The log names the
//! option to align, once per name.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use lapin::options::{
    BasicCancelOptions, BasicConsumeOptions, BasicQosOptions, ExchangeDeclareOptions, QueueBindOptions,
    QueueDeclareOptions,
};
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Connection, Consumer, ErrorKind};

use super::open::short;
use crate::topology::{Argument, Arguments, Declaration, ExchangeKind};
use magnum_telemetry::field;

/// Names that were found with other arguments than ours, so that each is reported once.
#[derive(Default)]
pub(super) struct Mismatches(Mutex<HashSet<String>>);

impl Mismatches {
    fn report(&self, name: &str, error: &lapin::Error) {
        let first = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.to_owned());
        if first {
            let text = error.to_string();
            tracing::warn!(
                { field::QUEUE_OR_EXCHANGE } = name,
                broker = %text,
                "exists on the broker with other arguments and is used as it is; {}",
                option_to_align(&text)
            );
        }
    }
}

/// A channel on which declarations are made. Replaced when the broker closes it over a mismatch.
pub(super) struct Declarer<'a> {
    connection: &'a Connection,
    mismatches: &'a Mismatches,
    channel: Channel,
    prefetch: Option<u16>,
}

impl<'a> Declarer<'a> {
    pub(super) async fn new(connection: &'a Connection, mismatches: &'a Mismatches) -> lapin::Result<Self> {
        Ok(Self {
            channel: connection.create_channel().await?,
            connection,
            mismatches,
            prefetch: None,
        })
    }

    /// Limits unsettled deliveries per consumer.
    pub(super) async fn prefetch(&mut self, count: u16) -> lapin::Result<()> {
        self.prefetch = Some(count);
        self.channel
            .basic_qos(count, BasicQosOptions { global: false })
            .await
    }

    /// Makes one declaration. Consumers are made by [`consume`].
    pub(super) async fn declare(&mut self, declaration: &Declaration) -> lapin::Result<()> {
        let name = match declaration {
            Declaration::Prefetch(count) => return self.prefetch(*count).await,
            Declaration::Consume { .. } => return Ok(()),
            Declaration::Bind {
                queue,
                exchange,
                routing_key,
            } => {
                return self
                    .channel
                    .queue_bind(
                        name(queue)?,
                        name(exchange)?,
                        name(routing_key)?,
                        QueueBindOptions::default(),
                        FieldTable::default(),
                    )
                    .await;
            }
            Declaration::Exchange(exchange) => &exchange.name,
            Declaration::Queue(queue) => &queue.name,
        };
        let Err(error) = create(&self.channel, declaration, false).await else {
            return Ok(());
        };
        if !has_code(&error, &AMQPSoftError::PRECONDITIONFAILED) {
            return Err(error);
        }
        self.channel = self.connection.create_channel().await?;
        if let Some(count) = self.prefetch {
            self.prefetch(count).await?;
        }
        match create(&self.channel, declaration, true).await {
            // It is not there: the broker refuses these arguments at all.
            Err(missing) if has_code(&missing, &AMQPSoftError::NOTFOUND) => Err(error),
            Err(other) => Err(other),
            Ok(()) => {
                self.mismatches.report(name, &error);
                Ok(())
            }
        }
    }

    /// Takes a binding back. One that is not there, of a queue that is not there, is no error to the broker.
    pub(super) async fn unbind(&self, binding: &Declaration) -> lapin::Result<()> {
        let Declaration::Bind {
            queue,
            exchange,
            routing_key,
        } = binding
        else {
            return Ok(());
        };
        self.channel
            .queue_unbind(
                name(queue)?,
                name(exchange)?,
                name(routing_key)?,
                FieldTable::default(),
            )
            .await
    }

    /// The channel in its final state.
    pub(super) fn into_channel(self) -> Channel {
        self.channel
    }
}

/// Declares an exchange or a queue; with `passive` only asks whether it is there. Other steps of a list are left out.
///
/// # Errors
/// The broker's, which closes the channel: 404 for what is not there, 406 for what exists with other arguments.
pub async fn create(channel: &Channel, declaration: &Declaration, passive: bool) -> lapin::Result<()> {
    match declaration {
        Declaration::Exchange(exchange) => {
            let kind = match exchange.kind {
                ExchangeKind::Topic => lapin::ExchangeKind::Topic,
                ExchangeKind::Fanout => lapin::ExchangeKind::Fanout,
            };
            let options = ExchangeDeclareOptions {
                passive,
                durable: exchange.durable,
                auto_delete: exchange.auto_delete,
                ..ExchangeDeclareOptions::default()
            };
            let table = FieldTable::default();
            channel
                .exchange_declare(name(&exchange.name)?, kind, options, table)
                .await
        }
        Declaration::Queue(queue) => {
            let options = QueueDeclareOptions {
                passive,
                durable: queue.durable,
                auto_delete: queue.auto_delete,
                ..QueueDeclareOptions::default()
            };
            let table = field_table(&queue.arguments);
            channel
                .queue_declare(name(&queue.name)?, options, table)
                .await
                .map(drop)
        }
        Declaration::Prefetch(_) | Declaration::Bind { .. } | Declaration::Consume { .. } => Ok(()),
    }
}

/// Starts a consumer, if that is what is declared.
pub(super) async fn consume(channel: &Channel, declaration: &Declaration) -> lapin::Result<Option<Consumer>> {
    let Declaration::Consume {
        queue,
        tag,
        arguments,
    } = declaration
    else {
        return Ok(None);
    };
    let options = BasicConsumeOptions::default();
    let consumer = channel
        .basic_consume(name(queue)?, name(tag)?, options, field_table(arguments))
        .await?;
    Ok(Some(consumer))
}

/// Ends the consumers of a list.
pub(super) async fn cancel(channel: &Channel, declarations: &[Declaration]) -> lapin::Result<()> {
    for declaration in declarations {
        if let Declaration::Consume { tag, .. } = declaration {
            channel
                .basic_cancel(name(tag)?, BasicCancelOptions::default())
                .await?;
        }
    }
    Ok(())
}

/// Whether the broker closed the channel with this code.
pub fn has_code(error: &lapin::Error, code: &AMQPSoftError) -> bool {
    match error.kind() {
        ErrorKind::ProtocolError(amqp) => matches!(amqp.kind(), AMQPErrorKind::Soft(soft) if soft == code),
        _ => false,
    }
}

fn name(text: &str) -> lapin::Result<lapin::types::ShortString> {
    short(text).map_err(|error| std::io::Error::other(format!("`{text}`: {error}")).into())
}

fn field_table(arguments: &Arguments) -> FieldTable {
    let mut table = FieldTable::default();
    for (key, value) in arguments {
        let value = match value {
            Argument::Text(text) => AMQPValue::LongString(text.as_ref().into()),
            Argument::Number(number) => match i32::try_from(*number) {
                Ok(small) => AMQPValue::LongInt(small),
                Err(_) => AMQPValue::LongLongInt(*number),
            },
            Argument::Flag(flag) => AMQPValue::Boolean(*flag),
        };
        table.insert((*key).into(), value);
    }
    table
}

/// The option behind the argument that the broker complains about. Only for people: nothing depends on it.
pub fn option_to_align(text: &str) -> &'static str {
    const OPTIONS: &[(&str, &str)] = &[
        (
            "'x-queue-type'",
            "align [oslo_messaging_rabbit] rabbit_quorum_queue (topic) or rabbit_transient_quorum_queue (fanout, reply) with its peers",
        ),
        (
            "'durable'",
            "align [oslo_messaging_rabbit] rabbit_quorum_queue or amqp_durable_queues with its peers",
        ),
        (
            "'auto_delete'",
            "align [oslo_messaging_rabbit] amqp_auto_delete with its peers",
        ),
        (
            "'x-expires'",
            "align [oslo_messaging_rabbit] rabbit_transient_queues_ttl with its peers",
        ),
        (
            "'x-delivery-limit'",
            "align [oslo_messaging_rabbit] rabbit_quorum_delivery_limit with its peers",
        ),
        (
            "'x-max-in-memory-length'",
            "align [oslo_messaging_rabbit] rabbit_quorum_max_memory_length with its peers",
        ),
        (
            "'x-max-in-memory-bytes'",
            "align [oslo_messaging_rabbit] rabbit_quorum_max_memory_bytes with its peers",
        ),
        (
            "'x-ha-policy'",
            "align [oslo_messaging_rabbit] rabbit_ha_queues with its peers",
        ),
        (
            "'type'",
            "something else uses this exchange name: check control_exchange and [conductor] topic",
        ),
    ];
    let found = OPTIONS.iter().find(|(argument, _)| text.contains(argument));
    found.map_or(
        "align [oslo_messaging_rabbit] with its peers, or delete it while nobody uses it",
        |(_, advice)| advice,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_names_the_option_behind_the_argument() {
        for (text, option) in [
            (
                "inequivalent arg 'durable' for queue 'magnum-conductor'",
                "amqp_durable_queues",
            ),
            (
                "inequivalent arg 'x-queue-type' for queue 'q'",
                "rabbit_quorum_queue",
            ),
            (
                "inequivalent arg 'x-expires' for queue 'q'",
                "rabbit_transient_queues_ttl",
            ),
            ("something new", "[oslo_messaging_rabbit]"),
        ] {
            assert!(option_to_align(text).contains(option), "{text}");
        }
    }

    #[test]
    fn a_name_that_does_not_fit_is_an_error_and_not_a_panic() {
        assert!(name(&"q".repeat(256)).is_err());
        assert!(name(&"q".repeat(255)).is_ok());
    }
}
