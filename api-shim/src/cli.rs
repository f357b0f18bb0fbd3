//! What the program `magnum-api` does: reads the configuration, starts the API, and stops it. Besides, it prints the
//! API's description.
//!
//! | signal | effect |
//! |---|---|
//! | SIGTERM, SIGINT | stops in order ([`Api::stop`]); at once during the start, and when it comes again |
//! | SIGHUP | reads the configuration again and takes over log levels, certificate, policy and driver folders ([`Api::reload`]) |
//!
//! With `LISTEN_FDS` it serves on the socket that systemd has opened (`magnum-api.socket`): who connects while it
//! restarts waits instead of being refused.

pub mod policy;

use std::io::Write as _;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use clap::{Parser, Subcommand};
use listenfd::ListenFd;
use magnum_common::error::with_causes;
use magnum_config::{ConfigArgs, Settings};
use magnum_db as db;
use magnum_db::Database;
use magnum_rpc::{self as rpc, Transport};
use magnum_service::{Asked, ProcessReport, Signals, end_process, keep_memory_private, systemd};
use magnum_telemetry as telemetry;

use crate::microversion::Version;
use crate::{Api, description, metric_definitions};

/// Magnum's REST API.
#[derive(Debug, Parser)]
#[command(name = "magnum-api", version)]
pub struct Arguments {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prints the OpenAPI document of a microversion
    Openapi {
        /// Such as 1.9
        #[arg(long, value_name = "VERSION", default_value_t = Version::MAX)]
        microversion: Version,
    },
    /// Prints the API reference, as in docs/api.md
    Reference,
}

/// Carries out what the command line says.
pub fn main(arguments: &Arguments) -> ExitCode {
    match arguments.command {
        None => end_process(told(run(&arguments.config))),
        Some(Command::Openapi { microversion }) => told(print_document(microversion)).into(),
        Some(Command::Reference) => told(print(description::reference().trim_end())).into(),
    }
}

/// The exit code.
fn told(outcome: anyhow::Result<()>) -> u8 {
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            // The log may not be set up yet, and an operator at a terminal must see why nothing runs.
            eprintln!("magnum-api: {}", with_causes(error.as_ref()));
            1
        }
    }
}

fn print_document(microversion: Version) -> anyhow::Result<()> {
    print(&description::document(microversion).to_pretty_json()?)
}

fn run(config: &ConfigArgs) -> anyhow::Result<()> {
    // Before there are threads: taking the socket over clears the variables that announce it.
    let socket = inherited_socket()?;
    let loaded = Settings::load(config)?;
    #[cfg(feature = "otlp")]
    let export = magnum_otlp::export(&loaded.settings.otlp, "magnum-api")?;
    #[cfg(not(feature = "otlp"))]
    let export = None;
    telemetry::init(&loaded.settings, "magnum-api", export)?;
    telemetry::log_warnings(&loaded);
    metric_definitions::record();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(loaded.settings.api.workers)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let ended = runtime.block_on(serve(&loaded.settings, socket, config));
    // Blocking work that hangs (a database that does not answer) must not hold the process.
    runtime.shutdown_background();
    telemetry::trace::finish();
    ended
}

fn print(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

/// The socket that the service manager has opened for us, if it has.
fn inherited_socket() -> anyhow::Result<Option<TcpListener>> {
    let mut passed = ListenFd::from_env();
    ensure!(
        passed.len() <= 1,
        "the service manager has passed {} sockets; magnum-api takes one, for [api] host and port",
        passed.len()
    );
    if passed.len() == 0 {
        return Ok(None);
    }
    passed
        .take_tcp_listener(0)
        .context("what the service manager has passed is no TCP socket that listens (ListenStream=)")
}

async fn serve(settings: &Settings, socket: Option<TcpListener>, config: &ConfigArgs) -> anyhow::Result<()> {
    let mut signals = Signals::take()?;
    if let Err(error) = keep_memory_private() {
        tracing::warn!(%error, "other processes of this user can read this one's memory");
    }
    let Some(started) = signals.unless_stopped(start(settings, socket)).await else {
        tracing::info!("stopped during the start");
        return Ok(());
    };
    let (api, transport) = started?;
    systemd::ready();
    let report = api.start_report(settings);
    tokio::spawn(async move { report.await.log() });
    loop {
        match signals.asked().await {
            Asked::Stop => break,
            Asked::Reload => {
                systemd::reloading();
                reload(&api, config).await;
                systemd::ready();
            }
            Asked::Report => ProcessReport::now().log(),
        }
    }
    tracing::info!("stopping: no new requests, running ones may end");
    systemd::stopping();
    if signals.unless_stopped(api.stop()).await.is_none() {
        tracing::warn!("stopping at once");
    }
    transport.close().await;
    Ok(())
}

/// Starts the API with all that it needs. The broker may be away.
async fn start(
    settings: &Settings,
    socket: Option<TcpListener>,
) -> anyhow::Result<(Api, Arc<dyn Transport>)> {
    let database = Database::connect(&settings.database)
        .await
        .context("[database] connection")?;
    database.at_start(|| db::migrate::check(&database)).await?;
    let transport = rpc::connect(settings, "magnum-api")
        .await
        .context("[DEFAULT] transport_url")?;
    let api = Api::start_on(socket, settings, transport.clone(), database).await?;
    Ok((api, transport))
}

/// Takes over what can change while it runs. A configuration with an error changes nothing.
async fn reload(api: &Api, config: &ConfigArgs) {
    match Settings::load(config) {
        Ok(loaded) => {
            telemetry::reload_levels(&loaded.settings);
            telemetry::log_warnings(&loaded);
            api.reload(&loaded.settings).await;
            tracing::info!(
                "reloaded: log levels, certificate, policy, drivers; other options need a restart"
            );
        }
        Err(error) => tracing::error!(%error, "nothing was reloaded"),
    }
}
