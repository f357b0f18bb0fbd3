//! What systemd is told about a service of `Type=notify` (sd_notify(3)). Without systemd nothing happens.

use sd_notify::NotifyState;

/// The service does what it is there for, after its start or after a reload.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The service reloads. [`ready`] has to follow.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "systemd was not told of the reload"),
    }
}

/// The service ends in order.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "systemd was not notified");
    }
}
