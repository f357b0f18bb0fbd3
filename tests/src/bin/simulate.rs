//! `simulate --schedules N [--seed S]`: the conductors' code on schedules of a simulation.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;
use magnum_tests::simulation::command::{Options, main as run};

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    options: Options,
}

fn main() -> Result<ExitCode> {
    let program = std::env::current_exe().context("this program's own file")?;
    run(&Arguments::parse().options, &program)
}
