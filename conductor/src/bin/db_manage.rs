//! `magnum-db-manage`: brings a database to what this release needs.

use std::io;
use std::process::ExitCode;

use clap::Parser;
use magnum_conductor::cli::db_manage::{Args, run};
use magnum_telemetry as telemetry;

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<ExitCode> {
    telemetry::warnings_on_terminal();
    run(Args::parse(), &mut io::stdout(), &mut io::stderr()).await
}
