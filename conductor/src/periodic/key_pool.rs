//! Fills the pool of private keys ([`crate::certificates::key_pool`]) while the conductor has nothing else to do.
//!
//! One key at a time, on a thread of the lowest priority, and only while no operation runs here: what is under way
//! when one begins is finished, a tenth of a second later. Conductors fill the same pool side by side. Keys that have
//! become too old are discarded first, also where the pool is turned off.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Rounds, Trouble};
use crate::certificates::key::{KeyError, KeyKind, PrivateKey};
use crate::certificates::key_pool::{KeyPool, KeyPoolError};
use crate::metric_definitions as metric;
use crate::operations::Signals;

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(5);
/// The lowest priority that there is (`nice`).
const LOWEST_PRIORITY: i32 = 19;

/// Fills the pool, for one conductor.
pub struct KeyPoolFilling {
    /// The pool.
    pub pool: KeyPool,
    /// Knows whether operations run here.
    pub signals: Arc<Signals>,
}

impl KeyPoolFilling {
    /// Fills until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut rounds = Rounds::new(EVERY, shutdown.clone());
        let mut trouble = Trouble::with("filling the pool of keys");
        while rounds.next().await {
            tokio::select! {
                filled = self.pass() => drop(trouble.note(filled)),
                () = shutdown.cancelled() => break,
            }
        }
    }

    /// Makes what is missing, for as long as no operation runs.
    ///
    /// # Errors
    /// A key was not made or did not get into the pool; the next pass goes on.
    pub async fn pass(&self) -> Result<(), KeyPoolError> {
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
        while depth < size && self.is_idle() {
            let key = made_with_low_priority(self.pool.kind()).await?;
            let Some(added) = self.pool.add(&key).await? else {
                // Another conductor was faster with the last one.
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
        self.signals.running.load(Ordering::Relaxed) == 0
    }
}

/// A new key, made on a thread of its own: the runtime's threads cannot be given their priority back.
async fn made_with_low_priority(kind: KeyKind) -> Result<PrivateKey, KeyError> {
    let (send, made) = oneshot::channel();
    let thread = std::thread::Builder::new().name("key-pool".to_owned());
    thread
        .spawn(move || {
            // Linux knows a priority for each thread. Where it cannot be lowered, the key is made all the same.
            if let Err(error) = rustix::process::setpriority_process(None, LOWEST_PRIORITY) {
                tracing::debug!(%error, "keys are made with the normal priority");
            }
            // Nobody waits for it any more when the conductor stops.
            let _ = send.send(PrivateKey::generate(kind));
        })
        .map_err(|error| KeyError::Generation(error.to_string()))?;
    made.await
        .map_err(|_| KeyError::Generation("its thread ended without one".to_owned()))?
}
