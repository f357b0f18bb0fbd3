//! `magnum-conductor run`: the service.
//!
//! | signal | effect |
//! |---|---|
//! | SIGTERM, SIGINT | stops in order; at once during the start, and when it comes again, which is as safe as a crash |
//! | SIGHUP | reads the drivers again |

use anyhow::Context as _;
use magnum_config::{ConfigArgs, Settings};
use magnum_service::{Asked, Signals, keep_memory_private, systemd};
use magnum_telemetry as telemetry;

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
    let mut signals = Signals::take()?;
    if let Err(error) = keep_memory_private() {
        tracing::warn!(%error, "other processes of this user can read this one's memory");
    }
    let start = Conductor::start(settings, Given::default());
    let Some(started) = signals.unless_stopped(start).await else {
        tracing::info!("stopped during the start");
        return Ok(());
    };
    let mut conductor = started?;
    systemd::ready();
    let report = conductor.start_report(settings);
    tokio::spawn(async move { report.await.log() });
    let reload = conductor.reload();
    let failed = loop {
        tokio::select! {
            part = conductor.failed() => break Some(part),
            asked = signals.asked() => match asked {
                Asked::Stop => break None,
                Asked::Reload => {
                    systemd::reloading();
                    reload.now().await;
                    systemd::ready();
                }
                Asked::Report => conductor.report(),
            }
        }
    };
    systemd::stopping();
    if signals.unless_stopped(conductor.shutdown()).await.is_none() {
        tracing::warn!("stopping at once; what is unfinished is taken over by lease");
    }
    match failed {
        None => Ok(()),
        Some(part) => anyhow::bail!("the part '{part}' ended unexpectedly; the log says why"),
    }
}
