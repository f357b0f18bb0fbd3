//! Calls under way: one reply queue per process, replies matched by message id.
//!
//! The queue and its listener are made at the first call and kept. Replies are acknowledged when they arrive:
//! a reply that its caller no longer waits for is of no use to anybody.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;
use tokio::sync::{OnceCell, mpsc};
use tokio_util::sync::CancellationToken;

use magnum_common::ids::MessageId;
use magnum_rpc::{
    Authentication, ListenSpec, Listener, MAX_BODY_BYTES, OwnQueues, RemoteFailure, ReplyContent, Seldom,
    Transport, TransportError, UniqueName, WireReply, decode, reply_queue, topology,
};
use magnum_telemetry::field;

/// What happens to a call that waits for its reply.
#[derive(Debug)]
pub(super) enum CallEvent {
    /// The server is still working.
    Alive,
    /// It has a result.
    Result(Value),
    /// It raised an exception.
    Failure(RemoteFailure),
    /// Its reply cannot be decoded.
    Unreadable(String),
    /// The listener of replies has ended.
    Closed,
}

type Waiting = Arc<Mutex<HashMap<String, mpsc::UnboundedSender<CallEvent>>>>;

/// The calls of one client.
pub(super) struct Calls {
    transport: Arc<dyn Transport>,
    waiting: Waiting,
    queue: OnceCell<ReplyQueue>,
    stop: CancellationToken,
}

/// Where replies arrive.
struct ReplyQueue {
    name: String,
    /// It alone.
    own: OwnQueues,
}

/// One call's place in the table; leaves it when dropped.
pub(super) struct Waiter {
    waiting: Waiting,
    queue: String,
    msg_id: String,
    events: mpsc::UnboundedReceiver<CallEvent>,
}

fn lock(waiting: &Waiting) -> MutexGuard<'_, HashMap<String, mpsc::UnboundedSender<CallEvent>>> {
    // The table stays valid whatever a panicking thread was doing.
    waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Calls {
    pub(super) fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            waiting: Waiting::default(),
            queue: OnceCell::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Registers a new call, before its request is sent.
    pub(super) async fn open(&self) -> Result<Waiter, TransportError> {
        let queue = self.queue.get_or_try_init(|| self.listen()).await?;
        let queue = queue.own.present_name(&queue.name);
        let msg_id = MessageId::random().into_string();
        let (sender, events) = mpsc::unbounded_channel();
        lock(&self.waiting).insert(msg_id.clone(), sender);
        Ok(Waiter {
            waiting: Arc::clone(&self.waiting),
            queue,
            msg_id,
            events,
        })
    }

    async fn listen(&self) -> Result<ReplyQueue, TransportError> {
        let unique = UniqueName::new(self.transport.options()).await?;
        let name = reply_queue(unique.as_str());
        let own = OwnQueues::new([name.clone()]);
        let listener = self
            .transport
            .listen(ListenSpec {
                purpose: "replies",
                declarations: topology::reply_listener(&name, self.transport.options()),
                default_prefetch: 0,
                heartbeat: None,
                delete_at_stop: None,
                own_queues: own.clone(),
            })
            .await?;
        let authentication = self.transport.authentication().clone();
        let delivering = deliver(
            listener,
            authentication,
            Arc::clone(&self.waiting),
            self.stop.clone(),
        );
        tokio::spawn(async move {
            delivering.await;
            // The queue was ours until now.
            drop(unique);
        });
        Ok(ReplyQueue { name, own })
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Waiter {
    pub(super) fn queue(&self) -> &str {
        &self.queue
    }

    pub(super) fn msg_id(&self) -> &str {
        &self.msg_id
    }

    pub(super) async fn next(&mut self) -> CallEvent {
        self.events.recv().await.unwrap_or(CallEvent::Closed)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        lock(&self.waiting).remove(&self.msg_id);
    }
}

/// Hands replies to the calls that wait for them, until the client or the listener ends.
async fn deliver(
    mut listener: Listener,
    authentication: Authentication,
    waiting: Waiting,
    stop: CancellationToken,
) {
    let refusals = Seldom::default();
    loop {
        let next = tokio::select! {
            () = stop.cancelled() => break,
            next = listener.recv() => next,
        };
        let Some(delivery) = next else {
            break;
        };
        if let Err(reason) = authentication.check(delivery.message()) {
            if let Some(left_out) = refusals.next() {
                tracing::warn!(%reason, left_out, "a reply that is not a conductor's was dropped");
            }
            delivery.ack().await;
            continue;
        }
        match decode::<WireReply>(delivery.message(), MAX_BODY_BYTES) {
            Ok((reply, _)) => hand_over(reply, &waiting),
            // The call it was for goes on waiting, as with a Python client: nothing says which one it is.
            Err(error) => tracing::warn!(%error, "unreadable reply dropped"),
        }
        delivery.ack().await;
    }
    // Every call still waiting learns that no reply will come.
    lock(&waiting).clear();
    listener.stop().await;
}

fn hand_over(reply: WireReply, waiting: &Waiting) {
    let Some(msg_id) = reply.msg_id.clone() else {
        tracing::warn!("reply without a message id dropped");
        return;
    };
    let Some(caller) = lock(waiting).get(&msg_id).cloned() else {
        tracing::debug!({ field::CALL } = %msg_id, "reply to no waiting call dropped");
        return;
    };
    let event = match reply.answer() {
        Ok(ReplyContent::Alive) => CallEvent::Alive,
        Ok(ReplyContent::Result(result)) => CallEvent::Result(result),
        Ok(ReplyContent::Failure(failure)) => CallEvent::Failure(failure),
        Err(error) => CallEvent::Unreadable(format!("its `failure` is not valid JSON ({error})")),
    };
    // The caller may have just stopped waiting.
    let _gone = caller.send(event);
}
