//! One listener: keeps a session with the broker open until it is stopped.
//!
//! A supervisor task opens a session (`session`), and after a loss another one with the same declarations, the
//! same fanout queue name included, with growing delays in between. It ends when it is stopped, or when the receiver of
//! its deliveries is gone. Commands are obeyed at any time (`commands`), also while there is no connection.
//!
//! Guarantee: consumption that is paused stays paused in the next session. Not guaranteed: that a delivery of a lost
//! session can be acknowledged; the broker redelivers it.

mod commands;
mod raw_message;
mod session;
mod setup;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use self::commands::{Commands, Stopped};
use self::session::{End, Session};
use self::setup::SetupError;
use super::declare::Mismatches;
use super::hosts::HostOrder;
use super::open::Opener;
use super::streams::Offsets;
use super::{ListenerCounts, reconnect};
use crate::delivery::Delivery;
use crate::options::RabbitOptions;
use crate::transport::{ListenCommand, ListenSpec};
use magnum_telemetry::field;

/// What a listener is made of, and what outlives its sessions.
pub(super) struct Supervisor {
    opener: Arc<Opener>,
    options: RabbitOptions,
    spec: ListenSpec,
    mismatches: Arc<Mismatches>,
    counts: Arc<ListenerCounts>,
    offsets: Offsets,
}

impl Supervisor {
    pub(super) fn new(
        opener: Arc<Opener>,
        options: RabbitOptions,
        spec: ListenSpec,
        mismatches: Arc<Mismatches>,
        counts: Arc<ListenerCounts>,
    ) -> Self {
        Self {
            opener,
            options,
            spec,
            mismatches,
            counts,
            offsets: Offsets::default(),
        }
    }

    /// Sends deliveries to `out` until it is stopped. `ready` is sent once the first session consumes.
    pub(super) async fn run(
        self,
        out: mpsc::UnboundedSender<Delivery>,
        commands: mpsc::UnboundedReceiver<ListenCommand>,
        stop: CancellationToken,
        ready: oneshot::Sender<()>,
    ) {
        let mut commands = Commands::new(commands, stop);
        self.counts.down.fetch_add(1, Ordering::Relaxed);
        let stopped = self.run_sessions(&out, &mut commands, ready).await;
        self.counts.down.fetch_sub(1, Ordering::Relaxed);
        stopped.confirm();
    }

    /// Runs sessions, one after the other, until stopped.
    async fn run_sessions(
        &self,
        out: &mpsc::UnboundedSender<Delivery>,
        commands: &mut Commands,
        ready: oneshot::Sender<()>,
    ) -> Stopped {
        let mut ready = Some(ready);
        let mut hosts = self.opener.host_order();
        let mut outage = Outage::begin();
        loop {
            let paused = commands.paused;
            let opened = match commands.obey_during(self.open(paused, &mut hosts)).await {
                Ok(opened) => opened,
                Err(stopped) => return stopped,
            };
            let reason = match opened {
                Ok(session) => {
                    self.spec.own_queues.answered();
                    outage.end(self.spec.purpose);
                    if let Some(ready) = ready.take() {
                        let _not_awaited = ready.send(());
                    }
                    let end = self.run_session(session, out, commands).await;
                    outage = Outage::begin();
                    match end {
                        End::Stopped(stopped) => return stopped,
                        End::Lost(reason) => reason,
                    }
                }
                Err(error) => {
                    self.replace_unserved(&error);
                    error.to_string()
                }
            };
            let delay = outage.delay_after_failure(&reason, self);
            if let Err(stopped) = commands.obey_during(sleep(delay)).await {
                return stopped;
            }
        }
    }

    /// Connects, declares, and consumes unless paused. Commands that arrive meanwhile take effect in the session.
    ///
    /// # Errors
    /// There is no connection, or the broker refuses something or does not answer.
    async fn open(&self, paused: bool, hosts: &mut HostOrder) -> Result<Session<'_>, SetupError> {
        let opened = self
            .opener
            .open(self.spec.purpose, self.spec.heartbeat, hosts)
            .await;
        let connection = opened.map_err(|error| SetupError::Refused(error.to_string()))?;
        Session::open(connection, &self.spec, &self.mismatches, &self.offsets, paused).await
    }

    /// Has another queue take the place of one of our own that the broker serves no more.
    fn replace_unserved(&self, error: &SetupError) {
        if let SetupError::Unanswered { queue } = error
            && let Some(replacement) = self.spec.own_queues.unanswered(queue)
        {
            tracing::warn!(
                { field::QUEUE_OR_EXCHANGE } = %queue,
                replacement,
                "the broker does not serve a queue of this process any more; another one takes its place (an administrator \
                 of the broker should delete the old one)"
            );
        }
    }

    /// Runs a session to its end, and counts the listener as up meanwhile.
    async fn run_session(
        &self,
        session: Session<'_>,
        out: &mpsc::UnboundedSender<Delivery>,
        commands: &mut Commands,
    ) -> End {
        self.counts.up.fetch_add(1, Ordering::Relaxed);
        self.counts.down.fetch_sub(1, Ordering::Relaxed);
        let end = session.run(out, commands).await;
        self.counts.down.fetch_add(1, Ordering::Relaxed);
        self.counts.up.fetch_sub(1, Ordering::Relaxed);
        end
    }
}

/// A time without a session.
struct Outage {
    since: Instant,
    failures: u32,
}

impl Outage {
    fn begin() -> Self {
        Self {
            since: Instant::now(),
            failures: 0,
        }
    }

    /// Logs the end of an outage. A session that opens at the first attempt ends none.
    fn end(&self, purpose: &str) {
        if self.failures > 0 {
            let seconds = self.since.elapsed().as_secs_f64();
            tracing::info!(purpose, down_s = seconds, "consuming again");
        }
    }

    /// Counts a failure and returns the delay before the next attempt. Logs ever more rarely.
    fn delay_after_failure(&mut self, reason: &str, supervisor: &Supervisor) -> Duration {
        self.failures = self.failures.saturating_add(1);
        if self.failures.is_power_of_two() {
            tracing::warn!(
                purpose = supervisor.spec.purpose,
                %reason,
                down_s = self.since.elapsed().as_secs_f64(),
                "no connection to the broker; trying again"
            );
        }
        reconnect::pause(&supervisor.options, self.failures)
    }
}
