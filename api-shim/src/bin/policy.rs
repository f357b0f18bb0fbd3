//! `magnum-policy`: prints the sample of a policy file, checks files, and tells what a caller may do.

use std::io;
use std::process::ExitCode;

use clap::Parser as _;
use magnum_api_shim::cli::policy::{Arguments, run};

fn main() -> io::Result<ExitCode> {
    run(&Arguments::parse(), &mut io::stdout(), &mut io::stderr())
}
