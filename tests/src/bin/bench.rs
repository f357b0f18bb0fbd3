//! `bench casts|calls`: ours, a real oslo.messaging peer, and a bare consumer, side by side on one broker.

use anyhow::Result;
use clap::Parser as _;
use magnum_tests::bench::{Command, run};

#[tokio::main]
async fn main() -> Result<()> {
    run(Command::parse()).await
}
