//! The tasks of a conductor, in the order they were started.

use futures::future::select_all;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Running tasks, each with a name and a way to stop it.
#[derive(Default)]
pub(super) struct Parts(Vec<Part>);

struct Part {
    name: &'static str,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Parts {
    /// Starts a task that runs until its token is cancelled.
    pub(super) fn spawn<F>(&mut self, name: &'static str, work: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let task = tokio::spawn(work(stop.clone()));
        self.0.push(Part { name, stop, task });
    }

    /// The names of those that run, in the order of their start.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|part| part.name).collect()
    }

    /// Waits for a task that ends though nobody stopped it.
    pub(super) async fn failed(&mut self) -> &'static str {
        if self.0.is_empty() {
            return std::future::pending().await;
        }
        let (outcome, index, _) = select_all(self.0.iter_mut().map(|part| &mut part.task)).await;
        let part = self.0.remove(index);
        match outcome {
            Ok(()) => tracing::error!("the part '{}' of the conductor ended", part.name),
            Err(error) => tracing::error!(%error, "the part '{}' of the conductor broke", part.name),
        }
        part.name
    }

    /// Stops the last started first, each before the one before it.
    pub(super) async fn stop_in_reverse(self) {
        for mut part in self.0.into_iter().rev() {
            part.stop.cancel();
            if let Err(error) = (&mut part.task).await {
                tracing::error!(%error, "the part '{}' of the conductor broke while stopping", part.name);
            }
        }
    }
}

/// A conductor that is dropped ends at once, like a process that dies.
impl Drop for Part {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test]
    async fn parts_stop_in_reverse_order_one_after_the_other() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut parts = Parts::default();
        for name in ["first", "second", "third"] {
            let order = Arc::clone(&order);
            parts.spawn(name, move |stop| async move {
                stop.cancelled().await;
                tokio::task::yield_now().await;
                order.lock().unwrap().push(name);
            });
        }
        parts.stop_in_reverse().await;
        assert_eq!(*order.lock().unwrap(), ["third", "second", "first"]);
    }

    #[tokio::test]
    async fn a_part_that_ends_by_itself_is_named() {
        let mut parts = Parts::default();
        parts.spawn("steady", |stop| async move { stop.cancelled().await });
        parts.spawn("brittle", |_| async {});
        assert_eq!(parts.failed().await, "brittle");
        parts.stop_in_reverse().await;
    }
}
