//! HAProxy with a configuration that a test has, such as a sample of `deploy/haproxy` with addresses of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::process::{Launch, Ready};
use crate::run_dir::run_dir;

/// A sample of `deploy/haproxy`.
pub fn sample(name: &str) -> Result<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy/haproxy")
        .join(name);
    fs::read_to_string(&file).with_context(|| file.display().to_string())
}

/// A configuration with other words in the place of some, each of which it must have.
pub fn with(mut text: String, changes: &[(&str, &str)]) -> Result<String> {
    for (sampled, ours) in changes {
        ensure!(text.contains(sampled), "the sample has no {sampled:?}");
        text = text.replace(sampled, ours);
    }
    Ok(text)
}

/// HAProxy about to be started with this configuration.
pub fn launch(text: &str, ready: Ready) -> Result<Launch> {
    let file = run_dir()?.folder("haproxy")?.join("haproxy.cfg");
    fs::write(&file, text)?;
    let program = ["/usr/sbin/haproxy", "/usr/local/sbin/haproxy"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .context("haproxy is not installed (tests/run --check says what is missing)")?;
    Ok(Launch::command("haproxy", Command::new(program))
        .args(["-db".as_ref(), "-f".as_ref(), file.as_os_str()])
        .ready_when(ready))
}
