//! One source of randomness. Standard library, tokio and every crate ask the kernel through libc, each thread for itself; a shim
//! answers those threads whose name is a seed.
//!
//! One thing is left: tokio mixes a counter of the whole process into the seed of each runtime builder, from which the order
//! comes in which `select!` polls. So there is one builder in a process, made before anything else, and a runtime's number in
//! the process is part of what a seed means: see [`Runtimes`].

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result};
use tokio::runtime::{Builder, Runtime};

use crate::shim;

/// Set in a process whose randomness can be repeated.
const MARK: &str = "MAGNUM_TESTS_SIMULATION_SHIM";

/// Compiles the shim into `folder`.
pub fn compile(folder: &Path) -> Result<PathBuf> {
    shim::compile(folder, "randomness", include_str!("randomness.c"))
}

/// Has a program run with the shim.
pub fn hold<'a>(program: &'a mut Command, shim: &Path) -> &'a mut Command {
    program.env("LD_PRELOAD", shim).env(MARK, "1")
}

/// Whether this process has the shim.
pub fn is_held() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Runs `work` on a thread of its own, with all its randomness from `seed`. A panic is the error.
pub fn seeded<T: Send>(seed: u64, work: impl FnOnce() -> T + Send) -> io::Result<thread::Result<T>> {
    let name = format!("sim{:012x}", seed & 0xffff_ffff_ffff);
    thread::scope(|scope| {
        let running = thread::Builder::new().name(name).spawn_scoped(scope, work)?;
        Ok(running.join())
    })
}

/// Runtimes with a paused clock, whose numbers decide the order in which `select!` polls.
#[derive(Debug)]
pub struct Runtimes(Builder);

impl Runtimes {
    /// The only builder of this process; nothing of tokio may have run before.
    pub fn new() -> Result<Self> {
        let builder = seeded(0, || {
            let mut builder = Builder::new_current_thread();
            builder.enable_time().start_paused(true);
            builder
        });
        builder?.map(Self).ok().context("no runtime builder")
    }

    /// The next one.
    pub fn build_next(&mut self) -> Result<Runtime> {
        self.0.build().context("no runtime")
    }
}
