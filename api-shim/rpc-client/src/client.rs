//! The asking side: cast, fanout, call.
//!
//! A cast returns when the broker has confirmed the request and some queue has taken it; a lost confirmation
//! is answered by sending the *same* message again, which the receiver's journal recognises by its unique id.
//! When the bounded retries are used up the caller learns it: no request vanishes behind a success.
//!
//! Differs from oslo.messaging, which casts without `mandatory` (a cast before any conductor ever ran is
//! dropped there) and retries connecting for ever.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;

use super::call::{CallEvent, Calls};
use magnum_common::context::RequestContext;
use magnum_common::ids::MessageId;
use magnum_rpc::{
    Addressing, MAX_BODY_BYTES, OutgoingMessage, PublishDeadlines, PublishError, RemoteFailure, ReplyAddress,
    Request, Target, Transport, TransportError, encode, publish_until, topology,
};
use magnum_telemetry::field;
use magnum_telemetry::trace::{self, TraceContext};

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The request was not taken.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// No reply queue could be had.
    #[error("no reply queue: {0}")]
    Listen(#[from] TransportError),
    /// Nobody answered in time. The request may still be under way.
    #[error("no reply to {method} within {}", humantime(*.waited))]
    TimedOut {
        /// Name of the method.
        method: String,
        /// Time since the call was published.
        waited: Duration,
    },
    /// Nobody takes requests: it was not published.
    #[error("no conductor takes requests from the queue `{queue}`")]
    NoConductor {
        /// The queue of all conductors.
        queue: String,
    },
    /// The peer raised an exception.
    #[error("{0}")]
    Remote(RemoteFailure),
    /// The reply makes no sense.
    #[error("the reply to {method} cannot be read: {reason}")]
    BadReply {
        /// Name of the method.
        method: String,
        /// Why it cannot be decoded.
        reason: String,
    },
}

fn humantime(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// How a call is made, where it differs from the settings.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// To this server only.
    pub server: Option<String>,
    /// Whole patience; `rpc_response_timeout` if none.
    pub timeout: Option<Duration>,
    /// Ask for signs of life, and give up when none came for this long. At least 2 s.
    pub monitor: Option<Duration>,
}

/// A client of the conductors.
#[derive(Clone)]
pub struct RpcClient {
    transport: Arc<dyn Transport>,
    addressing: Arc<Addressing>,
    calls: Arc<Calls>,
    /// When a conductor has replied last.
    heard: Arc<Mutex<Option<Instant>>>,
}

/// For so long after a reply the conductors are taken to be there.
const RECENT: Duration = Duration::from_secs(5);

impl RpcClient {
    /// A client on `transport`. Nothing is declared before the first request.
    pub fn new(transport: Arc<dyn Transport>, addressing: impl Into<Addressing>) -> Self {
        Self {
            calls: Arc::new(Calls::new(Arc::clone(&transport))),
            transport,
            addressing: Arc::new(addressing.into()),
            heard: Arc::default(),
        }
    }

    /// Publishes a cast to any one conductor, until the broker confirms it. Returns its message id, under which the
    /// conductor deduplicates it.
    ///
    /// # Errors
    /// The broker did not confirm the cast within `[api] publish_timeout`, refused it, or has no queue for it. See
    /// [`PublishError`] for which of them may have stored it.
    pub async fn cast(
        &self,
        context: &RequestContext,
        method: &str,
        args: Map<String, Value>,
    ) -> Result<MessageId, PublishError> {
        let request = request(context, method, args);
        self.publish_request(&request, &Target::AnyServer, None).await
    }

    /// Publishes a cast to all conductors. Those that are not running miss it, so it is not mandatory.
    ///
    /// # Errors
    /// As [`Self::cast`].
    pub async fn fanout_cast(
        &self,
        context: &RequestContext,
        method: &str,
        args: Map<String, Value>,
    ) -> Result<MessageId, PublishError> {
        let request = request(context, method, args);
        self.publish_request(&request, &Target::AllServers, None).await
    }

    /// Calls any one conductor, and waits for its reply for at most `[DEFAULT] rpc_response_timeout`.
    ///
    /// # Errors
    /// The call was not published, had no reply in time, or raised an exception. Without a reply it may still be carried out.
    pub async fn call(
        &self,
        context: &RequestContext,
        method: &str,
        args: Map<String, Value>,
    ) -> Result<Value, CallError> {
        self.call_with(context, method, args, CallOptions::default())
            .await
    }

    /// Calls one conductor by its server id.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn call_to(
        &self,
        server: &str,
        context: &RequestContext,
        method: &str,
        args: Map<String, Value>,
    ) -> Result<Value, CallError> {
        let options = CallOptions {
            server: Some(server.to_owned()),
            ..CallOptions::default()
        };
        self.call_with(context, method, args, options).await
    }

    /// Calls with other time limits than the configured ones.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn call_with(
        &self,
        context: &RequestContext,
        method: &str,
        args: Map<String, Value>,
        options: CallOptions,
    ) -> Result<Value, CallError> {
        let patience = options.timeout.unwrap_or(self.addressing.response_timeout);
        let deadline = Instant::now() + patience;
        let timed_out = || CallError::TimedOut {
            method: method.to_owned(),
            waited: patience,
        };
        let opened = timeout_at(deadline, self.calls.open()).await;
        let mut waiter = opened.map_err(|_| timed_out())??;
        let request = Request {
            reply: Some(ReplyAddress {
                queue: waiter.queue().to_owned(),
                msg_id: waiter.msg_id().to_owned(),
                format: self.addressing.format,
            }),
            call_monitor: options.monitor,
            ..request(context, method, args)
        };
        let target = options.server.map_or(Target::AnyServer, Target::Server);
        if matches!(target, Target::AnyServer) {
            self.someone_takes_requests(deadline).await?;
        }
        self.publish_request(&request, &target, Some(deadline)).await?;
        loop {
            let silence = options
                .monitor
                .map_or(deadline, |monitor| deadline.min(Instant::now() + monitor));
            let event = timeout_at(silence, waiter.next()).await;
            if event
                .as_ref()
                .is_ok_and(|event| !matches!(event, CallEvent::Closed))
            {
                *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            }
            match event {
                Ok(CallEvent::Alive) => {}
                Ok(CallEvent::Result(result)) => return Ok(result),
                Ok(CallEvent::Failure(failure)) => return Err(CallError::Remote(failure)),
                Ok(CallEvent::Unreadable(reason)) => {
                    return Err(CallError::BadReply {
                        method: method.to_owned(),
                        reason,
                    });
                }
                Ok(CallEvent::Closed) => return Err(TransportError::Closed.into()),
                Err(_) => return Err(timed_out()),
            }
        }
    }

    /// Refuses a call that nobody would answer, before it is published: it could be carried out long after the caller
    /// has given up. A broker that cannot be asked is left to the publishing.
    async fn someone_takes_requests(&self, deadline: Instant) -> Result<(), CallError> {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.is_some_and(|heard| heard.elapsed() < RECENT) {
            return Ok(());
        }
        let queue = self.addressing.names.topic_queue();
        match timeout_at(deadline, self.transport.queue(queue)).await {
            Ok(Ok(state)) if state.is_none_or(|state| state.consumers == 0) => Err(CallError::NoConductor {
                queue: queue.to_owned(),
            }),
            Ok(Ok(_) | Err(_)) | Err(_) => Ok(()),
        }
    }

    /// Publishes with bounded retries of the same bytes.
    async fn publish_request(
        &self,
        request: &Request,
        target: &Target,
        expires: Option<Instant>,
    ) -> Result<MessageId, PublishError> {
        let id = request.unique_id.clone().unwrap_or_else(MessageId::random);
        let body = encode(request, self.addressing.format)
            .map_err(|error| PublishError::Encode(error.to_string()))?;
        if body.len() > MAX_BODY_BYTES {
            return Err(PublishError::TooLarge {
                size: body.len(),
                limit: MAX_BODY_BYTES,
            });
        }
        let names = &self.addressing.names;
        let options = self.transport.options();
        let mut message = OutgoingMessage::new(names.route(target), self.addressing.format, body)
            .compressed(options.kombu_compression)?;
        message.declare = match target {
            Target::AllServers => vec![topology::fanout_exchange(names, options)],
            Target::AnyServer | Target::Server(_) => vec![topology::control_exchange(names, options)],
        };
        message.mandatory = *target != Target::AllServers;
        let mut deadline = Instant::now() + self.addressing.publish_timeout;
        if let Some(expires) = expires {
            message.expiration = Some(expires.saturating_duration_since(Instant::now()));
            deadline = deadline.min(expires);
        }
        let span = tracing::info_span!(
            "publish",
            { field::SPAN_KIND } = "producer",
            { field::RPC_METHOD } = request.method,
            { field::MESSAGE } = id.as_str(),
        );
        let trace = span.in_scope(trace::current);
        let trace = trace.iter().flat_map(TraceContext::headers);
        message
            .headers
            .extend(trace.map(|(name, value)| (name.to_owned(), value)));
        self.transport.authentication().sign(&mut message);
        publish_until(self.transport.as_ref(), &message, PublishDeadlines::at(deadline))
            .instrument(span)
            .await?;
        Ok(id)
    }
}

fn request(context: &RequestContext, method: &str, args: Map<String, Value>) -> Request {
    Request {
        method: method.to_owned(),
        args,
        context: context.clone(),
        unique_id: Some(MessageId::random()),
        reply: None,
        call_monitor: None,
        namespace: None,
        version: None,
    }
}
