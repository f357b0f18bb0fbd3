//! A message on its way in or out: body, properties, headers.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use super::compression::compress;
use super::error::PublishError;
use super::target::Route;
use super::topology::Declaration;
use super::wire_format::WireFormat;
use magnum_config::Compression;
use magnum_telemetry::trace::TraceContext;

/// A message to publish. Always persistent, priority 0, confirmed by the broker.
#[derive(Clone)]
pub struct OutgoingMessage {
    /// Exchange and routing key.
    pub route: Route,
    /// Whether the broker must tell when no queue takes it.
    pub mandatory: bool,
    /// `content_type`.
    pub content_type: Option<String>,
    /// `content_encoding`.
    pub content_encoding: Option<String>,
    /// After this the broker drops it.
    pub expiration: Option<Duration>,
    /// Text headers; oslo's are an empty table.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// What has to exist before it is published; declared once per connection.
    pub declare: Vec<Declaration>,
}

impl OutgoingMessage {
    /// A message of `format` with oslo's properties.
    pub fn new(route: Route, format: WireFormat, body: impl Into<Bytes>) -> Self {
        Self {
            route,
            mandatory: true,
            content_type: Some(format.content_type().to_owned()),
            content_encoding: Some(format.content_encoding().to_owned()),
            expiration: None,
            headers: Vec::new(),
            body: body.into(),
            declare: Vec::new(),
        }
    }

    /// Compresses the body, and adds the header that says so.
    ///
    /// # Errors
    /// The compressor fails, as with too little memory.
    pub fn compressed(mut self, compression: Option<Compression>) -> Result<Self, PublishError> {
        if let Some(compression) = compression {
            let (label, body) =
                compress(&self.body, compression).map_err(|error| PublishError::Encode(error.to_string()))?;
            self.headers.push(("compression".to_owned(), label.to_owned()));
            self.body = body;
        }
        Ok(self)
    }
}

impl fmt::Debug for OutgoingMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The body holds a token.
        f.debug_struct("OutgoingMessage")
            .field("route", &self.route)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// A message as it came, not decoded.
#[derive(Clone, Default)]
pub struct RawMessage {
    /// The queue it came from, as far as the consumer knows.
    pub queue: String,
    /// `content_type`.
    pub content_type: Option<String>,
    /// `content_encoding`.
    pub content_encoding: Option<String>,
    /// The `compression` header.
    pub compression: Option<String>,
    /// The trace of its headers; none where they break the rules, and on most messages of Python's programs.
    pub trace: Option<TraceContext>,
    /// The signature of its headers, unchecked.
    pub signature: Option<String>,
    /// Whether it was delivered before.
    pub redelivered: bool,
    /// Where in a stream it stands, if it came from one.
    pub stream_offset: Option<i64>,
    /// The body.
    pub body: Bytes,
}

impl fmt::Debug for RawMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The body holds a token.
        f.debug_struct("RawMessage")
            .field("queue", &self.queue)
            .field("content_type", &self.content_type)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
