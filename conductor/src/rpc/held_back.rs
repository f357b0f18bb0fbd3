//! Requests that cannot be recorded for now, while others can: a row of their cluster is locked by somebody who is in no
//! hurry (a host that is paused in the middle of a transaction, an administrator's session), or the database fails in
//! words that nobody knows.
//!
//! Each cluster has a line of its own: its requests are tried in the order they came in, and those that come later wait
//! behind them. All others go on meanwhile. Nothing here is acknowledged before it is recorded; when the process stops, the
//! rest goes back to its queue. A broker with a limit for acknowledgements (RabbitMQ's `consumer_timeout`, half an hour)
//! delivers again what waited for longer.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use magnum_common::ids::ClusterUuid;
use magnum_rpc_server::Delivery;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::direct::PendingMessage;
use super::intake::{Recorder, delays};
use crate::handlers::Incoming;
use crate::metric_definitions as metric;

/// Requests held back at once. The intake waits beyond that: half of what a broker hands out unacknowledged.
const MOST: usize = 128;
/// Attempts at once: each may wait for a lock, on a connection of its own.
const AT_ONCE: usize = 4;
/// A request that waited for so long is worth a warning.
const QUIET: Duration = Duration::from_secs(10);

/// A request in its cluster's line.
struct Waiting {
    incoming: Incoming,
    delivery: Delivery,
    since: Instant,
    /// Its place among all that are held back.
    _place: OwnedSemaphorePermit,
}

type Lines = HashMap<ClusterUuid, VecDeque<Waiting>>;

/// The lines of all clusters that have one.
#[derive(Clone)]
pub(super) struct HeldBack {
    recorder: Recorder,
    lines: Arc<Mutex<Lines>>,
    places: Arc<Semaphore>,
    attempts: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl HeldBack {
    /// Nothing is held back; what will be goes to `recorder`.
    pub(super) fn new(recorder: Recorder) -> Self {
        Self {
            recorder,
            lines: Arc::default(),
            places: Arc::new(Semaphore::new(MOST)),
            attempts: Arc::new(Semaphore::new(AT_ONCE)),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Whether requests of the cluster are held back: what comes after them has to wait behind them.
    pub(super) fn has(&self, cluster: &ClusterUuid) -> bool {
        self.lines().contains_key(cluster)
    }

    /// Puts a request at the end of its cluster's line. Waits while very many are held back; `false`: the process stops
    /// first.
    pub(super) async fn add(&self, message: PendingMessage, shutdown: &CancellationToken) -> bool {
        let place = tokio::select! {
            place = Arc::clone(&self.places).acquire_owned() => place,
            () = shutdown.cancelled() => return false,
        };
        // The semaphore is never closed.
        let Ok(place) = place else { return false };
        let cluster = message.incoming.command.cluster().clone();
        let span = message.incoming.span.clone();
        let waiting = Waiting {
            incoming: message.incoming,
            delivery: message.delivery,
            since: Instant::now(),
            _place: place,
        };
        metrics::gauge!(metric::REQUESTS_HELD_BACK).increment(1.0);
        span.in_scope(|| tracing::debug!("the request cannot be recorded now; others go on"));
        let is_new = {
            let mut lines = self.lines();
            // A line that is there has a task, also in the moment in which it is empty.
            let is_new = !lines.contains_key(&cluster);
            lines.entry(cluster.clone()).or_default().push_back(waiting);
            is_new
        };
        if is_new {
            let this = self.clone();
            self.tasks.spawn(async move { this.work_off(&cluster).await });
        }
        true
    }

    /// Ends all attempts; what is still held back goes back to its queue.
    pub(super) async fn finish(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        // Dropped deliveries go back to their queue.
        self.lines().clear();
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        // Each change is made as a whole.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the cluster's requests, one after the other, until its line is empty or the process stops.
    async fn work_off(&self, cluster: &ClusterUuid) {
        while let Some((incoming, since)) = self.first(cluster) {
            let span = incoming.span.clone();
            if !self.record(cluster, incoming, since).instrument(span).await {
                return;
            }
        }
    }

    /// The request whose turn it is. Without one the line ends.
    fn first(&self, cluster: &ClusterUuid) -> Option<(Incoming, Instant)> {
        let mut lines = self.lines();
        let first = lines.get(cluster).and_then(VecDeque::front);
        let first = first.map(|waiting| (waiting.incoming.clone(), waiting.since));
        if first.is_none() {
            lines.remove(cluster);
        }
        first
    }

    async fn record(&self, cluster: &ClusterUuid, incoming: Incoming, since: Instant) -> bool {
        let mut delays = delays();
        let mut told = false;
        let accepted = loop {
            let attempt = async {
                // Never closed; without a permit the attempt is made all the same.
                let _permit = self.attempts.acquire().await.ok();
                self.recorder
                    .acceptor
                    .accept_alone(incoming.clone(), since.elapsed())
                    .await
            };
            // An attempt that is dropped and still succeeds is known when the message is delivered again.
            let tried = tokio::select! {
                biased;
                () = self.stop.cancelled() => return false,
                tried = attempt => tried,
            };
            let error = match tried {
                Ok(accepted) => break accepted,
                Err(error) => error,
            };
            if !told && since.elapsed() > QUIET {
                told = true;
                tracing::warn!(
                    %error,
                    "a request cannot be recorded yet; it is kept unacknowledged, and requests of other clusters go on"
                );
            }
            tokio::select! {
                () = tokio::time::sleep(delays.next_delay()) => {}
                () = self.stop.cancelled() => return false,
            }
        };
        if told {
            tracing::info!(waited = ?since.elapsed(), "the request could be recorded");
        }
        let waiting = self.lines().get_mut(cluster).and_then(VecDeque::pop_front);
        if let Some(waiting) = waiting {
            metrics::gauge!(metric::REQUESTS_HELD_BACK).decrement(1.0);
            self.recorder
                .settle(waiting.incoming, accepted, waiting.delivery)
                .await;
            self.recorder.signals.work.notify_one();
        }
        true
    }
}
