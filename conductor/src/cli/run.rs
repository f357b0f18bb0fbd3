//! `magnum-conductor run`: the service.
//!
//! | signal | effect |
//! |---|---|
//! | SIGTERM, SIGINT | stops in order; a second one stops at once, which is as safe as a crash |
//! | SIGHUP | reads the drivers again |

use anyhow::Context as _;
use magnum_config::{ConfigArgs, Settings};
use magnum_telemetry as telemetry;
use sd_notify::NotifyState;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::app::{Conductor, Given};
use crate::metric_definitions;

/// Runs the conductor until SIGTERM or SIGINT.
///
/// # Errors
/// The configuration is not usable, a part cannot start (database, drivers, broker options, trace export, signals), or a
/// part ended unexpectedly.
pub fn run(args: &ConfigArgs) -> anyhow::Result<()> {
    let loaded = Settings::load(args)?;
    #[cfg(feature = "otlp")]
    let export = magnum_otlp::export(&loaded.settings.otlp, "magnum-conductor")?;
    #[cfg(not(feature = "otlp"))]
    let export = None;
    telemetry::init(&loaded.settings, "magnum-conductor", export)?;
    telemetry::log_warnings(&loaded);
    metric_definitions::record();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(loaded.settings.conductor.workers)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let ended = runtime.block_on(serve(&loaded.settings));
    // Blocking work that hangs (a database that does not answer) must not hold the process.
    runtime.shutdown_background();
    telemetry::trace::finish();
    ended
}

async fn serve(settings: &Settings) -> anyhow::Result<()> {
    // First, so that a signal during the start is not lost.
    let mut stop = Stop::new()?;
    let mut hangup = signal(SignalKind::hangup()).context("cannot receive SIGHUP")?;
    let mut conductor = tokio::select! {
        started = Conductor::start(settings, Given::default()) => started?,
        () = stop.requested() => return Ok(()),
    };
    notify_systemd(&[NotifyState::Ready]);
    let reload = conductor.reload();
    let failed = loop {
        tokio::select! {
            () = stop.requested() => break None,
            part = conductor.failed() => break Some(part),
            _ = hangup.recv() => {
                if let Ok(reloading) = NotifyState::monotonic_usec_now() {
                    notify_systemd(&[NotifyState::Reloading, reloading]);
                }
                reload.now().await;
                notify_systemd(&[NotifyState::Ready]);
            }
        }
    };
    notify_systemd(&[NotifyState::Stopping]);
    tokio::select! {
        () = conductor.shutdown() => {}
        () = stop.requested() => tracing::warn!("stopping at once; what is unfinished is taken over by lease"),
    }
    match failed {
        None => Ok(()),
        Some(part) => anyhow::bail!("the part '{part}' ended unexpectedly; the log says why"),
    }
}

struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot receive SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot receive SIGINT")?,
        })
    }

    async fn requested(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Sends states to systemd; does nothing without it.
fn notify_systemd(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "systemd was not notified");
    }
}
