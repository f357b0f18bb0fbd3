//! `magnum-driver-manage`: lists drivers, makes new ones, checks them.

use std::io;
use std::process::ExitCode;

use clap::Parser;
use magnum_conductor::cli::driver_manage::{Args, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<ExitCode> {
    let outcome = run(Args::parse(), &mut io::stdout().lock(), &mut io::stderr().lock()).await?;
    Ok(outcome.into())
}
