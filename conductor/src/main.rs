//! The `magnum-conductor` program.

use std::process::ExitCode;

use clap::Parser as _;
use magnum_conductor::cli;

fn main() -> ExitCode {
    cli::main(cli::Arguments::parse())
}
