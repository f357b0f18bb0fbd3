//! Commands to a listener: pause, resume, stop.

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::transport::ListenCommand;

/// The commands to a listener, and their effect on the next session.
pub(super) struct Commands {
    receiver: mpsc::UnboundedReceiver<ListenCommand>,
    stop: CancellationToken,
    /// Whether consumption is paused.
    pub(super) paused: bool,
}

/// A change of consumption, to be confirmed once it is in effect.
pub(super) struct Change(oneshot::Sender<()>);

/// The listener was stopped, by a command that is to be confirmed once it has ended, or by its transport.
pub(super) struct Stopped(Option<oneshot::Sender<()>>);

impl Change {
    pub(super) fn confirm(self) {
        let _not_awaited = self.0.send(());
    }
}

impl Stopped {
    /// There is nobody to confirm it to.
    pub(super) const fn silently() -> Self {
        Self(None)
    }

    pub(super) fn confirm(self) {
        if let Some(done) = self.0 {
            let _not_awaited = done.send(());
        }
    }
}

impl Commands {
    pub(super) fn new(receiver: mpsc::UnboundedReceiver<ListenCommand>, stop: CancellationToken) -> Self {
        Self {
            receiver,
            stop,
            paused: false,
        }
    }

    /// The next change of consumption; `paused` has its new value already. Can be cancelled without loss.
    ///
    /// # Errors
    /// The listener is stopped.
    pub(super) async fn next(&mut self) -> Result<Change, Stopped> {
        let command = tokio::select! {
            () = self.stop.cancelled() => return Err(Stopped::silently()),
            command = self.receiver.recv() => command,
        };
        let (paused, done) = match command {
            None => return Err(Stopped::silently()),
            Some(ListenCommand::Stop(done)) => return Err(Stopped(Some(done))),
            Some(ListenCommand::Pause(done)) => (true, done),
            Some(ListenCommand::Resume(done)) => (false, done),
        };
        self.paused = paused;
        Ok(Change(done))
    }

    /// Runs `work` while there is no session that a change could affect: changes are confirmed at once.
    ///
    /// # Errors
    /// The listener is stopped; `work` is dropped.
    pub(super) async fn obey_during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stopped> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                result = &mut work => return Ok(result),
                change = self.next() => change?.confirm(),
            }
        }
    }
}
