//! Fills the pool of private keys ([`crate::certificates::key_pool`]) while the conductor has nothing else to do.
//!
//! One key at a time, on a thread of the lowest priority, and only while no operation runs here and few messages arrive:
//! a key that is being made when that changes is completed, which takes about 0.1 s. Conductors fill the same pool concurrently. Keys that
//! have become too old are discarded first, also where the pool is turned off.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{FailureLog, Rounds};
use crate::certificates::key_pool::{KeyPool, KeyPoolError};
use crate::metric_definitions as metric;
use crate::operations::Signals;
use magnum_x509::key::{KeyError, KeyKind, PrivateKey};

/// Time between two passes.
const INTERVAL: Duration = Duration::from_secs(5);
/// Most messages in [`INTERVAL`] of a conductor that is idle: service reports and a few questions.
const IDLE_MESSAGES: u64 = 50;
/// The lowest priority that there is (`nice`).
const LOWEST_PRIORITY: i32 = 19;

/// Fills the pool, for one conductor.
pub struct KeyPoolFilling {
    pool: KeyPool,
    signals: Arc<Signals>,
    /// [`Signals::messages`] at the begin of the last pass.
    messages: AtomicU64,
}

impl KeyPoolFilling {
    /// Fills `pool`. `signals` count the operations that run in this conductor, and its messages.
    pub fn new(pool: KeyPool, signals: Arc<Signals>) -> Self {
        let messages = AtomicU64::new(signals.messages.load(Ordering::Relaxed));
        Self {
            pool,
            signals,
            messages,
        }
    }

    /// Fills until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut rounds = Rounds::new(INTERVAL, shutdown.clone());
        let mut failures = FailureLog::of("filling the pool of keys");
        while rounds.next().await {
            tokio::select! {
                filled = self.pass() => drop(failures.record(filled)),
                () = shutdown.cancelled() => break,
            }
        }
    }

    /// Makes the missing keys, for as long as the conductor is idle.
    ///
    /// # Errors
    /// A key could not be made, sealed or stored. Keys added before it stay; the next pass continues.
    pub async fn pass(&self) -> Result<(), KeyPoolError> {
        let messages = self.signals.messages.load(Ordering::Relaxed);
        let last = self.messages.swap(messages, Ordering::Relaxed);
        let was_idle = messages.saturating_sub(last) <= IDLE_MESSAGES;
        let discarded = self.pool.discard_old().await?;
        if discarded > 0 {
            tracing::debug!(discarded, "keys of the pool had become too old");
        }
        let size = u64::from(self.pool.size());
        if size == 0 {
            return Ok(());
        }
        let mut depth = self.pool.depth().await?;
        let before = depth;
        while depth < size && was_idle && self.is_idle() {
            let key = generate_with_low_priority(self.pool.kind()).await?;
            let Some(added) = self.pool.add(&key).await? else {
                // Another conductor has added the last one.
                depth = size;
                break;
            };
            depth = added;
            metrics::gauge!(metric::KEY_POOL_DEPTH).set(depth as f64);
        }
        metrics::gauge!(metric::KEY_POOL_DEPTH).set(depth as f64);
        if before < size && depth >= size {
            tracing::info!(keys = depth, "the pool of keys is full");
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        let messages = self.signals.messages.load(Ordering::Relaxed);
        let since_begin = messages.saturating_sub(self.messages.load(Ordering::Relaxed));
        self.signals.running.load(Ordering::Relaxed) == 0 && since_begin <= IDLE_MESSAGES
    }
}

/// A new key, made on a thread of its own: the runtime's threads cannot be given their priority back.
async fn generate_with_low_priority(kind: KeyKind) -> Result<PrivateKey, KeyError> {
    let (send, made) = oneshot::channel();
    let thread = std::thread::Builder::new().name("key-pool".to_owned());
    thread
        .spawn(move || {
            // Linux knows a priority for each thread. Where it cannot be lowered, the key is made all the same.
            if let Err(error) = rustix::process::setpriority_process(None, LOWEST_PRIORITY) {
                tracing::debug!(%error, "keys are made with the normal priority");
            }
            // The receiver is gone when the conductor stops.
            let _ = send.send(PrivateKey::generate(kind));
        })
        .map_err(|error| KeyError::Generation(error.to_string()))?;
    made.await
        .map_err(|_| KeyError::Generation("its thread ended without one".to_owned()))?
}
