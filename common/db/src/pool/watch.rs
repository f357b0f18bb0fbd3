//! Cuts a connection on which the server does not answer, so that the thread that waits there comes back.
//!
//! A server ends a statement of ours after [`SessionOptions::statement_timeout`](crate::session::SessionOptions), and says
//! so. One that is still silent a little later is gone, or its network is. Whoever asked for the work may have left
//! meanwhile: the work is watched all the same.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::manager::{Pooled, Trouble};
use crate::socket::Socket;

/// A connection that was idle for a moment is asked whether it still lives. This is time enough to answer.
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// When the server was last found not to answer. Connections that were last used before that are not trusted any more.
#[derive(Debug, Default)]
pub(super) struct Lost(Mutex<Option<Instant>>);

impl Lost {
    pub(super) fn now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub(super) fn since(&self, last_used: Instant) -> bool {
        let lost = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lost.is_some_and(|lost| lost >= last_used)
    }
}

/// Which connection a piece of work uses at the moment, if one that can be cut.
pub(super) struct Progress {
    exchange: Mutex<Option<Exchange>>,
    lost: Arc<Lost>,
}

struct Exchange {
    socket: Socket,
    trouble: Arc<Trouble>,
    limit: Duration,
}

impl Progress {
    pub(super) fn new(lost: Arc<Lost>) -> Self {
        Self {
            exchange: Mutex::default(),
            lost,
        }
    }

    /// The work goes on with this connection, whose server has to answer each statement within `limit`.
    pub(super) fn is_on(&self, pooled: &Pooled, limit: Option<Duration>) {
        pooled.trouble.answered();
        let exchange = pooled.socket.zip(limit).map(|(socket, limit)| Exchange {
            socket,
            trouble: Arc::clone(&pooled.trouble),
            limit,
        });
        *self.exchange.lock().unwrap_or_else(PoisonError::into_inner) = exchange;
    }

    /// Cuts the connection if the limit is over. Returns when to look again.
    fn look(&self) -> Duration {
        let exchange = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(exchange) = exchange.as_ref() else {
            return PING_TIMEOUT;
        };
        let silent = exchange.trouble.silent_for();
        match exchange.limit.checked_sub(silent) {
            Some(left) if !left.is_zero() => left,
            _ => {
                tracing::warn!(
                    silent_s = silent.as_secs(),
                    "the database does not answer; this connection to it is closed"
                );
                self.lost.now();
                exchange.socket.cut();
                exchange.limit
            }
        }
    }
}

/// The result of `work`, which tells in `progress` where it is.
pub(super) async fn watched<T>(work: impl Future<Output = T>, progress: Arc<Progress>) -> T {
    let mut work = pin!(work);
    let mut next = PING_TIMEOUT;
    loop {
        match timeout(next, &mut work).await {
            Ok(result) => return result,
            Err(_elapsed) => next = progress.look(),
        }
    }
}
