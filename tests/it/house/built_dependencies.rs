//! What the tests keep of builds for the next new checkout is the crates of others, whole, and never ours.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use magnum_tests::run_dir;

const FILES: [&str; 9] = [
    "debug/.fingerprint/tokio-0011223344556677/lib-tokio",
    "debug/deps/libtokio-0011223344556677.rlib",
    "debug/deps/tokio-0011223344556677.d",
    "debug/.fingerprint/ring-8899aabbccddeeff/run-build-script-build-script-build",
    "debug/build/ring-8899aabbccddeeff/out/a/b.o",
    "fuzzing/here/release/.fingerprint/syn-0123456789abcdef/lib-syn",
    // Built, but without the fingerprint that says from what.
    "debug/deps/libhalf-1111111111111111.rlib",
    "debug/.fingerprint/magnum-db-2222222222222222/lib-magnum-db",
    "debug/deps/libmagnum_db-2222222222222222.rlib",
];

fn run(what: &str, build: &Path, cache: &Path) -> Result<()> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("built-dependencies");
    let output = Command::new("python3")
        .arg(program)
        .arg(what)
        .arg(build)
        .env("XDG_CACHE_HOME", cache)
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

fn files_below(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path);
            }
        }
    }
    Ok(files)
}

#[test]
fn a_new_checkout_gets_the_crates_of_others_as_they_were_built() -> Result<()> {
    let folder = run_dir::run_dir()?.folder("built-dependencies")?;
    let [build, cache, new] = ["build", "cache", "new"].map(|name| folder.join(name));
    let built = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
    for name in FILES {
        let file = build.join(name);
        fs::create_dir_all(file.parent().unwrap_or(&build))?;
        fs::write(&file, name)?;
        fs::File::options().write(true).open(&file)?.set_modified(built)?;
    }
    // Twice: a run that ended early has kept a part.
    run("keep", &build, &cache)?;
    run("keep", &build, &cache)?;
    run("take", &new, &cache)?;
    let taken = files_below(&new)?;
    let wanted: BTreeSet<PathBuf> = FILES[..6].iter().map(|name| new.join(name)).collect();
    ensure!(taken == wanted, "{taken:#?}");
    for file in taken {
        ensure!(fs::metadata(&file)?.modified()? == built, "{}", file.display());
    }
    Ok(())
}
