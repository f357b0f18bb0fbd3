//! The units of `deploy/systemd`: systemd understands them, and they leave a service little that it does not need.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::run_dir::run_dir;

/// Exposure as `systemd-analyze security` measures it, in tenths: at most "OK".
const MOST_EXPOSED: &str = "30";

const NEEDED: &[&str] = &[
    "CapabilityBoundingSet=",
    "LimitCORE=0",
    "NoNewPrivileges=true",
    "ProtectProc=invisible",
    "ProtectSystem=full",
    "StateDirectoryMode=0750",
    "SystemCallFilter=@system-service",
    "UMask=0027",
];

/// The unit, starting a program that there is.
fn unit(name: &str) -> Result<PathBuf> {
    let text = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../deploy/systemd/{name}.service")),
    )?;
    let starts = format!("ExecStart=/usr/bin/{name} --config-file");
    ensure!(text.contains(&starts), "{text}");
    let file = run_dir()?.folder("units")?.join(format!("{name}.service"));
    fs::write(&file, text.replace(&starts, "ExecStart=/bin/true --config-file"))?;
    Ok(file)
}

fn analyze(words: &[&str], file: &Path) -> Result<(bool, String)> {
    let output = Command::new("systemd-analyze")
        .args(words)
        .arg(file)
        .output()
        .context("systemd-analyze cannot be run (tests/run --check says what is missing)")?;
    let said = [output.stdout, output.stderr].concat();
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    ))
}

#[test]
fn systemd_understands_the_units_and_finds_them_little_exposed() -> Result<()> {
    for name in ["magnum-api", "magnum-conductor"] {
        let file = unit(name)?;
        let (_, said) = analyze(&["verify"], &file)?;
        ensure!(!said.contains(name), "{said}");
        let threshold = format!("--threshold={MOST_EXPOSED}");
        let (little, said) = analyze(&["security", "--offline=true", "--no-pager", &threshold], &file)?;
        ensure!(little, "{said}");
        let text = fs::read_to_string(&file)?;
        // What it does not measure, and what weighs too little in its sum to be missed.
        for line in NEEDED {
            ensure!(text.lines().any(|one| one == *line), "{name} has no {line}");
        }
    }
    Ok(())
}
