//! `magnum-driver-manage`: lists drivers, makes new ones, checks them.

use std::io;
use std::process::ExitCode;

use clap::Parser;
use magnum_conductor::cli::driver_manage::{Args, run};
use magnum_telemetry as telemetry;

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<ExitCode> {
    telemetry::warnings_on_terminal();
    let outcome = run(Args::parse(), &mut io::stdout(), &mut io::stderr()).await?;
    Ok(outcome.into())
}
