//! What the program `magnum-api` does: reads the configuration, starts the API, and stops it on SIGTERM or Ctrl-C. Besides,
//! it prints the API's description.

pub mod policy;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use magnum_common::config::{ConfigArgs, Settings};
use magnum_common::db::Database;
use magnum_common::error::with_causes;
use magnum_common::{db, rpc, telemetry};
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};

use crate::microversion::Version;
use crate::{Api, metric_definitions, openapi};

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
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The log may not be set up yet, and an operator at a terminal must see why nothing runs.
            eprintln!("magnum-api: {}", with_causes(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match arguments.command {
        None => {}
        Some(Command::Openapi { microversion }) => {
            return print(&openapi::document(microversion).to_pretty_json()?);
        }
        Some(Command::Reference) => return print(openapi::reference().trim_end()),
    }
    let loaded = Settings::load(&arguments.config)?;
    telemetry::init(&loaded.settings, "magnum-api")?;
    telemetry::log_warnings(&loaded);
    metric_definitions::record();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(loaded.settings.api.workers)
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(serve(&loaded.settings))
}

fn print(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

async fn serve(settings: &Settings) -> anyhow::Result<()> {
    // Taken first, so that a signal during the start is not lost.
    let mut terminate = signal(SignalKind::terminate()).context("cannot receive SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot receive SIGINT")?;

    let database = Database::connect(&settings.database)
        .await
        .context("[database] connection")?;
    db::migrate::check(&database).await?;
    let transport = rpc::connect(settings, "magnum-api")
        .await
        .context("[DEFAULT] transport_url")?;
    let api = Api::start(settings, transport.clone(), database).await?;
    tell_systemd(&NotifyState::Ready);

    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping: no new requests, running ones may end");
    tell_systemd(&NotifyState::Stopping);
    api.stop().await;
    transport.close().await;
    Ok(())
}

/// Does nothing outside of systemd.
fn tell_systemd(state: &NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(std::slice::from_ref(state)) {
        tracing::warn!(error = %error, "systemd was not notified");
    }
}
