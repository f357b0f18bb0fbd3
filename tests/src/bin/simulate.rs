//! `simulate --schedules N [--seed S]`: the conductors' code on schedules of a simulation.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use magnum_tests::simulation::command::{Options, main as run, own_file};

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    options: Options,
}

fn main() -> Result<ExitCode> {
    run(&Arguments::parse().options, &own_file()?)
}
