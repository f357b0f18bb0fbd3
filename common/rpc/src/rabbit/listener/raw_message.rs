//! From a delivery of the AMQP client to a message.

use lapin::types::AMQPValue;

use crate::authentication::SIGNATURE;
use crate::message::RawMessage;
use crate::rabbit::streams;
use magnum_telemetry::trace::TraceContext;

/// The message in a delivery from `queue`.
pub(super) fn raw_message(delivery: lapin::message::Delivery, queue: &str) -> RawMessage {
    let properties = &delivery.properties;
    let header = |name: &str| {
        let value = properties.headers().as_ref()?.inner().get(name)?;
        match value {
            AMQPValue::LongString(text) => Some(text.to_string()),
            AMQPValue::ShortString(text) => Some(text.to_string()),
            _ => None,
        }
    };
    RawMessage {
        stream_offset: properties.headers().as_ref().and_then(streams::offset),
        queue: queue.to_owned(),
        content_type: properties.content_type().as_ref().map(ToString::to_string),
        content_encoding: properties.content_encoding().as_ref().map(ToString::to_string),
        compression: header("compression"),
        trace: header(TraceContext::PARENT)
            .and_then(|parent| TraceContext::parse(&parent, header(TraceContext::STATE).as_deref())),
        signature: header(SIGNATURE),
        redelivered: delivery.redelivered,
        body: delivery.data.into(),
    }
}
