//! `magnum-dev`: Magnum's API and conductor in one process, for a first look and for authors of drivers.
//!
//! SQLite, an in-process broker, no Keystone, and the example driver; everything it keeps is in one folder. It is
//! made of the same parts as `magnum-api` and `magnum-conductor` and takes no short cut between them: a request
//! goes over HTTP, is published and confirmed, recorded in the journal, claimed by lease and carried out by the
//! driver's own program. Not for production: whoever reaches the port is an administrator.

mod demo;
mod service;
mod state;

use std::path::PathBuf;
use std::process::{ExitCode, Stdio};

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use magnum_common::error::with_causes;
use magnum_engine_process::guard::{self, GuardArgs};
use magnum_service::{Asked, Signals};

use crate::service::Service;
use crate::state::State;

/// Magnum's API and conductor in one process: SQLite, no RabbitMQ, no Keystone, an example driver.
#[derive(Parser)]
#[command(name = "magnum-dev", version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API until Ctrl-C (the default)
    Serve(Serve),
    /// Show a cluster's whole life, then end
    Demo(demo::Options),
    /// The guard of a driver's program: started by the conductor itself.
    #[command(name = guard::SUB_COMMAND, hide = true)]
    Guard(GuardArgs),
}

#[derive(clap::Args)]
struct Serve {
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 9511)]
    port: u16,
    /// Folder for the database, the clusters and everything else
    #[arg(long, value_name = "DIR", default_value = "magnum-dev-state")]
    state: PathBuf,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.command {
        Some(Command::Guard(args)) => return guard::run(&args, Stdio::inherit()).into(),
        None => block_on(serve(arguments.serve)),
        Some(Command::Serve(options)) => block_on(serve(options)),
        Some(Command::Demo(options)) => block_on(demo::run(options)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("magnum-dev: {}", with_causes(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let ended = runtime.block_on(work);
    // A database file that another program holds locked must not hold this one.
    runtime.shutdown_background();
    ended
}

async fn serve(options: Serve) -> anyhow::Result<()> {
    let mut signals = Signals::take()?;
    let state = State::prepare(&options.state)?;
    let start = Service::start(&state, options.port, None);
    let Some(started) = signals.unless_stopped(start).await else {
        return Ok(());
    };
    let service =
        started.with_context(|| format!("cannot serve on port {} (--port takes another)", options.port))?;
    eprintln!("magnum-dev: Magnum's API is at {}", service.endpoint());
    eprintln!("magnum-dev: ask it: curl {}/clusters", service.endpoint());
    eprintln!(
        "magnum-dev: state and drivers are in {}; stop with Ctrl-C",
        state.folder().display()
    );
    // An author of a driver has changed it.
    loop {
        match signals.asked().await {
            Asked::Stop => break,
            Asked::Reload => service.reload().await,
            Asked::Report => service.report(),
        }
    }
    signals.unless_stopped(service.stop()).await;
    Ok(())
}
