//! `magnum-db-manage`: brings a database to what this release needs.

use std::io;
use std::process::ExitCode;

use clap::Parser;
use magnum_conductor::cli::db_manage::{Args, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<ExitCode> {
    run(Args::parse(), &mut io::stdout().lock(), &mut io::stderr().lock()).await
}
