//! Small libraries for `LD_PRELOAD`, compiled on the spot with the C compiler that Rust needs anyway: what an operating system
//! says only to those without privileges, or to everybody on the machine, they say to one program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Compiles `source` to a library in `folder`.
///
/// # Errors
/// There is no C compiler, or it does not take the source.
pub fn compile(folder: &Path, name: &str, source: &str) -> Result<PathBuf> {
    let (from, to) = (
        folder.join(format!("{name}.c")),
        folder.join(format!("{name}.so")),
    );
    fs::write(&from, source)?;
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]);
    let output = compiler
        .arg(&to)
        .arg(&from)
        .arg("-ldl")
        .output()
        .context("run cc")?;
    ensure!(
        output.status.success(),
        "cc failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(to)
}
