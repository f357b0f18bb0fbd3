//! `magnum-status`: tells an operator what would stop this release.

use std::io;
use std::process::ExitCode;

use clap::Parser;
use magnum_conductor::cli::status::{Args, UNEXPECTED, run};
use magnum_telemetry as telemetry;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::warnings_on_terminal();
    match run(Args::parse(), &mut io::stdout()).await {
        Ok(code) => code.into(),
        // The output is gone: nobody to tell.
        Err(_) => UNEXPECTED.into(),
    }
}
