//! `docs/install.md`, followed from its first command to its last on a machine of its own: a root shell, RabbitMQ, MariaDB and
//! the real Keystone, Glance, Nova and Neutron on their usual ports (`tests/testbed/machine.py`).
//!
//! What is not as a reader has it: packages are looked for instead of installed, the programs are those of the tests
//! instead of a build, and `systemctl` does only what the units say, since systemd does not run there.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::oslo_peer::python;
use magnum_tests::process::built;
use magnum_tests::run_dir::run_dir;
use serde_json::json;

use super::{blocks_of, root};

pub const DOCUMENT: &str = "docs/install.md";
const PATIENCE: &str = "600";
/// What a driver's program could do as the services' user.
const NOBODY_READS: &str = r"found=0
for comm in $(grep -lx 'magnum-api\|magnum-conducto' /proc/[0-9]*/comm); do
  found=$((found + 1)); runuser -u magnum -- head -c 1 ${comm%comm}environ && exit 1
done
[ $found -ge 2 ]";

/// What is typed for a command of the document.
fn typed(command: &str) -> String {
    if let Some(packages) = command.strip_prefix("apt-get install --yes ") {
        return format!("dpkg-query --show {packages}");
    }
    if command.starts_with("cargo build ") {
        return "test -x target/dist/magnum-api".to_owned();
    }
    command.to_owned()
}

/// Builds nothing: which features there are is what can be wrong with the command.
#[test]
fn the_features_of_the_build_exist() -> Result<()> {
    let blocks = blocks_of(DOCUMENT)?;
    let command = blocks
        .iter()
        .flat_map(|block| &block.commands)
        .find_map(|command| command.text.strip_prefix("cargo build --profile dist "))
        .context("the page builds nothing")?;
    let mut tree = Command::new("cargo");
    tree.current_dir(root())
        .args(["tree", "--offline", "--locked", "--quiet", "--depth", "0"])
        .args(command.split_whitespace());
    let output = tree.output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

#[tokio::test]
async fn the_page_leads_from_an_empty_machine_to_a_cluster() -> Result<()> {
    let mut commands = Vec::new();
    for block in blocks_of(DOCUMENT)? {
        let place = format!("{DOCUMENT}:{}", block.line);
        let of_block = block.commands.iter();
        commands.extend(of_block.map(|command| json!([place, typed(&command.text)])));
        if block
            .commands
            .iter()
            .any(|command| command.text.starts_with("cp deploy/systemd"))
        {
            commands.push(json!([
                "the units",
                "systemd-analyze verify /etc/systemd/system/magnum-*.service"
            ]));
        }
        if block
            .commands
            .iter()
            .any(|command| command.text.starts_with("systemctl enable --now"))
        {
            commands.push(json!(["the services' memory", NOBODY_READS]));
        }
    }
    let folder = run_dir()?.folder("machine")?;
    let (list, mounts) = (folder.join("commands.json"), folder.join("files"));
    fs::write(&list, json!(commands).to_string())?;
    fs::create_dir(&mounts)?;
    let programs = built("magnum-api")?;
    built("magnum-conductor")?;
    let mut machine = Command::new("timeout");
    machine
        .arg(PATIENCE)
        .arg(python()?)
        .arg(root().join("tests/testbed/machine.py"))
        .arg(&mounts)
        .arg(root().canonicalize()?)
        .arg(programs.parent().context("the programs are in no folder")?)
        .arg(&list);
    let output = tokio::task::spawn_blocking(move || machine.output()).await??;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success(),
        "{}\n{printed}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    // The last loop of the page ends with any status that is final.
    ensure!(printed.contains("\nCREATE_COMPLETE\n"), "{printed}");
    // With the seconds that each command took, for who asks for them.
    println!("{printed}");
    Ok(())
}
