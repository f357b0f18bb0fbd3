//! `bench casts|calls|objects`: ours, a real peer, and a bare consumer, side by side on one broker.

use std::process::ExitCode;

use clap::Parser as _;
use magnum_tests::bench::{Command, main as run};

fn main() -> ExitCode {
    run(Command::parse())
}
