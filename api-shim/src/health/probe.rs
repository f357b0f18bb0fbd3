//! A question to another service, asked once for everybody who wants to know.
//!
//! An answer counts for [`FRESH`]. While none is at hand, one question is on its way, however many ask; whoever has
//! waited for [`PATIENCE`] is told that there is no answer. A question that hangs is not repeated: it would hang, too,
//! and hold another thread.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long an answer counts.
pub const FRESH: Duration = Duration::from_secs(2);

/// Longest wait for an answer.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// What the other service said; an error says what is wrong, in a sentence for operators.
pub type Said<T = ()> = Result<T, String>;

type Question<T> = dyn Fn() -> Pin<Box<dyn Future<Output = Said<T>> + Send>> + Send + Sync;

/// Since when somebody is asking, and where the answer will be.
type Asking<T> = (Instant, watch::Receiver<Option<Said<T>>>);

/// A probe of a server, shared by all who need its result.
pub struct Probe<T = ()> {
    question: Box<Question<T>>,
    fresh: Duration,
    patience: Duration,
    state: Mutex<State<T>>,
}

struct State<T> {
    last: Option<(Instant, Said<T>)>,
    asking: Option<Asking<T>>,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self {
            last: None,
            asking: None,
        }
    }
}

impl<T: Clone + Send + Sync + 'static> Probe<T> {
    /// Of a question that may take as long as it likes.
    pub fn new(
        question: impl Fn() -> Pin<Box<dyn Future<Output = Said<T>> + Send>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            question: Box::new(question),
            fresh: FRESH,
            patience: PATIENCE,
            state: Mutex::default(),
        }
    }

    /// The answer, not older than [`FRESH`], within [`PATIENCE`].
    pub async fn ask(self: &Arc<Self>) -> Said<T> {
        let (since, mut answer) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((at, said)) = &state.last
                && at.elapsed() < self.fresh
            {
                return said.clone();
            }
            match &state.asking {
                // Whoever asked may have panicked; then nobody would ever answer.
                Some(asking) if asking.1.has_changed().is_ok() => asking.clone(),
                _ => {
                    let asking = self.begin();
                    state.asking = Some(asking.clone());
                    asking
                }
            }
        };
        let hangs = || Err(format!("There was no answer for {} s", since.elapsed().as_secs()));
        match timeout(self.patience, answer.wait_for(Option::is_some)).await {
            Ok(Ok(said)) => said.clone().unwrap_or_else(hangs),
            // The one who asked was thrown away with its runtime, or hangs.
            Ok(Err(_)) | Err(_) => hangs(),
        }
    }

    fn begin(self: &Arc<Self>) -> Asking<T> {
        let (tell, answer) = watch::channel(None);
        let (probe, said) = (Arc::clone(self), (self.question)());
        tokio::spawn(async move {
            let said = said.await;
            let mut state = probe.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.last = Some((Instant::now(), said.clone()));
            state.asking = None;
            tell.send_replace(Some(said));
        });
        (Instant::now(), answer)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    /// Counts how often it asks, and gets an answer for each permit of the gate.
    fn counting(asked: &Arc<AtomicUsize>, gate: &Arc<Semaphore>, fresh: Duration) -> Arc<Probe> {
        let (asked, gate) = (Arc::clone(asked), Arc::clone(gate));
        let question = Probe::new(move || {
            asked.fetch_add(1, Ordering::Relaxed);
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                gate.acquire().await.map_err(|_| "closed".to_owned())?.forget();
                Ok(())
            })
        });
        Arc::new(Probe {
            fresh,
            patience: Duration::from_millis(50),
            ..question
        })
    }

    #[tokio::test]
    async fn a_storm_is_one_question_and_a_hanging_one_is_not_repeated() {
        let (asked, gate) = (Arc::default(), Arc::new(Semaphore::new(0)));
        let probe = counting(&asked, &gate, Duration::from_secs(3600));
        for _ in 0..2 {
            let storm = futures::future::join_all((0..100).map(|_| probe.ask())).await;
            assert!(storm.iter().all(Result::is_err));
            assert_eq!(asked.load(Ordering::Relaxed), 1);
        }
        gate.add_permits(1);
        assert_eq!(probe.ask().await, Ok(()));
        assert_eq!(probe.ask().await, Ok(()));
        assert_eq!(asked.load(Ordering::Relaxed), 1, "the answer counts for a while");
    }

    #[tokio::test]
    async fn an_old_answer_is_asked_for_again_and_so_is_one_that_will_never_come() {
        let (asked, gate) = (Arc::default(), Arc::new(Semaphore::new(2)));
        let probe = counting(&asked, &gate, Duration::ZERO);
        assert_eq!((probe.ask().await, probe.ask().await), (Ok(()), Ok(())));
        assert_eq!(asked.load(Ordering::Relaxed), 2);

        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let probe = Arc::new(Probe::new(move || {
            let first = counted.fetch_add(1, Ordering::Relaxed) == 0;
            Box::pin(async move {
                assert!(!first, "a fault of ours");
                Ok(())
            })
        }));
        assert!(probe.ask().await.is_err());
        assert_eq!(probe.ask().await, Ok(()));
    }
}
