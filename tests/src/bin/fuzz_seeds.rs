//! `fuzz-seeds FOLDER`: writes what each fuzz target begins with, for `cargo fuzz`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).context("usage: fuzz-seeds FOLDER")?;
    magnum_tests::fuzz_seeds::write(&PathBuf::from(folder))
}
