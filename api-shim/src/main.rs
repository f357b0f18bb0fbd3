//! The `magnum-api` program.

use std::process::ExitCode;

use clap::Parser as _;
use magnum_api_shim::cli;

fn main() -> ExitCode {
    cli::main(&cli::Arguments::parse())
}
