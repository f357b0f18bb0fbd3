//! The signals that a service obeys.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals of this process, taken from the system's own handling. One that arrives while nobody waits for it is
/// kept.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    user: Signal,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// SIGTERM or SIGINT.
    Stop,
    /// SIGHUP.
    Reload,
    /// SIGUSR2, at which Magnum's services report, too.
    Report,
}

/// The system does not let us receive a signal.
#[derive(Debug, thiserror::Error)]
#[error("cannot receive {name}: {source}")]
pub struct SignalError {
    name: &'static str,
    source: std::io::Error,
}

impl Signals {
    /// Takes the signals. To be called first, so that none is lost during the start; inside of a runtime.
    ///
    /// # Errors
    /// The system refuses; see [`SignalError`].
    pub fn take() -> Result<Self, SignalError> {
        let receive = |kind, name| signal(kind).map_err(|source| SignalError { name, source });
        Ok(Self {
            terminate: receive(SignalKind::terminate(), "SIGTERM")?,
            interrupt: receive(SignalKind::interrupt(), "SIGINT")?,
            hangup: receive(SignalKind::hangup(), "SIGHUP")?,
            user: receive(SignalKind::user_defined2(), "SIGUSR2")?,
        })
    }

    /// Waits for the next signal.
    pub async fn asked(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.hangup.recv() => Asked::Reload,
            _ = self.user.recv() => Asked::Report,
        }
    }

    /// Waits until the end is asked for. What else is asked for meanwhile is kept.
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// What `work` returns, or `None` when the end is asked for first. `work` is dropped then.
    pub async fn unless_stopped<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.stop() => None,
        }
    }
}
