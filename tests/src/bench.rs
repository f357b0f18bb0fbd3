//! What a message costs: ours beside the peer it replaces and beside the broker's own limit.
//!
//! One run, one private broker, one message: the recorded `cluster_create` with its context, 6 KB. Each
//! contestant's server is a process of its own, so that processor time and memory are its alone; the load is
//! the same for all of casts, and each one's own client for calls.
//!
//! | contestant | what its server does with a message |
//! |---|---|
//! | bare consumer | acknowledges; decodes nothing: the limit of client library and broker |
//! | ours | [`RpcServer`](magnum_rpc_server::RpcServer): decodes, acknowledges, answers calls; records nothing |
//! | oslo.messaging | the same with the real Python library and its default options |
//! | journalled | the whole `magnum-conductor`: one row of the journal, of its events and of the cluster, two node groups, committed to MariaDB, then acknowledged |
//!
//! Rates depend on what else the machine does; the ratios of one run and the processor time per message are
//! the figures to compare. Every wait is bounded, and each step is logged on standard error.

mod calls;
mod casts;
mod cloud;
mod create;
mod health;
mod http_load;
mod journal;
mod load;
mod measure;
mod objects;
mod plugins;
mod report;
mod rest;
mod serve;
mod site;
mod sweep;
pub mod usage;

use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use magnum_api_shim::cli as api;
use magnum_conductor::cli;
use magnum_engine_process::guard::{self, GuardArgs};

use crate::mariadb::Mariadb;
use crate::rabbitmq::Rabbitmq;

pub use calls::Calls;
pub use casts::Casts;
pub use create::Create;
pub use health::Health;
pub use objects::Objects;
pub use plugins::Plugins;
pub use report::Report;
pub use rest::RestApi;
pub use sweep::Sweep;

/// The command line.
#[derive(Debug, clap::Parser)]
#[command(
    about = "Compares our messaging with oslo.messaging and with a bare consumer",
    long_about = "Compares our messaging with oslo.messaging and with a bare consumer, on private servers that it \
                  starts and stops. Prints a table, the goals with `reached` or `MISSED`, and the same as one line \
                  of JSON; tells on standard error what it is doing.\n\nNeeds what tests/run installs: RabbitMQ, \
                  MariaDB, and the Python environment of the peers. Build it with --profile dist."
)]
pub enum Command {
    /// A backlog of casts, then casts at a steady pace: rate, latency, processor time, memory, start
    Casts(Casts),
    /// Calls by 1 and by 16 callers: rate, latency, processor time, memory, start
    Calls(Calls),
    /// Cluster.get_by_uuid through the objects RPC by 1 and by 16 callers: our conductor and the real Magnum's
    Objects(Objects),
    /// Creates, from the cast until the driver has returned: rate, processor time, memory
    Create(Create),
    /// One look at every cluster in progress, by several conductors: queries, processor time, memory, start
    Sweep(Sweep),
    /// The health of every cluster once, by several conductors: queries, processor time
    Health(Health),
    /// GET one cluster, lists of 100 and 1,000, POST of a cluster: our API and the real Magnum's
    Rest(RestApi),
    /// A driver that is a Python package: creates, looks, memory and stops, under our conductor and under Magnum's
    Plugins(Plugins),
    /// One contestant's server, started by the others.
    #[command(hide = true)]
    Serve(serve::Serve),
    /// The conductor, started by the others.
    #[command(hide = true)]
    Conductor(cli::Arguments),
    /// The API, started by the others.
    #[command(hide = true)]
    Api(api::Arguments),
    /// The guard of a driver's program: started by the conductor itself.
    #[command(name = guard::SUB_COMMAND, hide = true)]
    Guard(GuardArgs),
}

/// The program and servers of a benchmark.
#[derive(Debug)]
pub struct Environment<'a> {
    /// This program: contestants of ours are processes of it.
    pub program: PathBuf,
    /// The broker. Nobody else should use it meanwhile.
    pub broker: &'a Rabbitmq,
    /// The database server of the journal.
    pub database: &'a Mariadb,
}

/// Runs the command.
pub fn main(command: Command) -> ExitCode {
    let outcome = match command {
        Command::Guard(args) => return guard::run(&args, Stdio::inherit()).into(),
        Command::Conductor(arguments) => return cli::main(arguments),
        Command::Api(arguments) => return api::main(&arguments),
        Command::Serve(serve) => block_on(serve.run()),
        Command::Casts(casts) => block_on(on_own_servers(async |environment| casts.run(environment).await)),
        Command::Calls(calls) => block_on(on_own_servers(async |environment| calls.run(environment).await)),
        Command::Objects(objects) => {
            block_on(on_own_servers(async |environment| objects.run(environment).await))
        }
        Command::Create(create) => {
            block_on(on_own_servers(async |environment| create.run(environment).await))
        }
        Command::Plugins(plugins) => {
            block_on(on_own_servers(async |environment| plugins.run(environment).await))
        }
        Command::Rest(rest) => block_on(on_own_servers(async |environment| rest.run(environment).await)),
        Command::Health(health) => {
            block_on(on_own_servers(async |environment| health.run(environment).await))
        }
        Command::Sweep(sweep) => block_on(on_own_servers(async |environment| sweep.run(environment).await)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn block_on(work: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Runtime::new()
        .context("cannot start the runtime")?
        .block_on(work)
}

async fn on_own_servers(bench: impl AsyncFnOnce(&Environment<'_>) -> Result<Report>) -> Result<()> {
    if cfg!(debug_assertions) {
        report::say("this is a debug build: its figures mean nothing; build with --profile dist");
    }
    report::say("starting a broker and a database server");
    let broker = Rabbitmq::dedicated().await?;
    let database = Mariadb::durable().await?;
    let environment = Environment {
        program: std::env::current_exe()?,
        broker: &broker,
        database: &database,
    };
    bench(&environment).await?.print();
    broker.stop().await?;
    database.stop().await
}

/// `--limit`, in whole seconds.
fn seconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_secs)
}
