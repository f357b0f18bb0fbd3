//! What a message costs: ours beside the peer it replaces and beside the broker's own limit.
//!
//! One run, one private broker, one message: the recorded `cluster_create` with its context, 6 KB. Each
//! contestant's server is a process of its own, so that processor time and memory are its alone; the load is
//! the same for all of casts, and each one's own client for calls.
//!
//! Rates depend on what else the machine does; the ratios of one run and the processor time per message are
//! the figures to compare. Nothing here journals: what a handler does with a message is not measured.

mod calls;
mod casts;
mod measure;
mod report;
mod serve;

use anyhow::Result;

/// The command line.
#[derive(Debug, clap::Parser)]
#[command(about = "Compares our messaging with oslo.messaging and with a bare consumer")]
pub enum Command {
    /// A backlog of casts: handled per second, processor time per cast, start until consuming, memory.
    Casts {
        /// Casts for ours and for the bare consumer.
        #[arg(long, default_value_t = 40_000)]
        messages: u64,
        /// Casts for the Python peer, which needs far longer for each.
        #[arg(long, default_value_t = 5_000)]
        peer_messages: u64,
    },
    /// Calls by 1 and by 16 callers: calls per second, latency, processor time per call, memory.
    Calls {
        /// Calls for ours.
        #[arg(long, default_value_t = 20_000)]
        messages: u64,
        /// Calls for the Python peer.
        #[arg(long, default_value_t = 2_000)]
        peer_messages: u64,
    },
    /// One contestant's server, started by the others.
    #[command(hide = true)]
    Serve {
        /// `ours` or `bare`.
        contestant: String,
        /// Where the broker is.
        url: String,
        /// Casts after which to report.
        total: u64,
    },
}

/// Runs a command.
pub async fn run(command: Command) -> Result<()> {
    match command {
        Command::Casts {
            messages,
            peer_messages,
        } => casts::run(messages, peer_messages).await,
        Command::Calls {
            messages,
            peer_messages,
        } => calls::run(messages, peer_messages).await,
        Command::Serve {
            contestant,
            url,
            total,
        } => serve::run(&contestant, &url, total).await,
    }
}
