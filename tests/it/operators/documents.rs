//! The commands in the documents work.
//!
//! Every `sh` and `console` block of the README, of `docs/` and of the README that a new driver gets is run, command
//! by command, in a copy of what the reader would have: the programs in `PATH`, a `magnum.conf` where the programs
//! look for it, the example drivers beside. What a `console` block shows below a command must be in what the command
//! prints.
//!
//! `docs/install.md` is for an empty machine and gets one: [`install`]. Of the others, [`HOW`] knows every command. A command that it does not know fails the test, so a new one in a document is a new
//! row here; a row that no document needs any more fails it, too.

mod blocks;
mod install;
mod metrics;
mod session;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use magnum_tests::rabbitmq;

use blocks::{Block, blocks};
use session::Session;

/// How a command is run.
#[derive(Debug, Clone, Copy)]
enum How {
    /// As it stands.
    AsWritten,
    /// In these words, which mean the same for a checkout that is built already.
    As(&'static str),
    /// As a service that must be ready soon; it stays until its document is done.
    Service,
}

use How::{As, AsWritten, Service};

/// Every command of the documents, without its comment.
const HOW: &[(&str, How)] = &[
    // README.md
    (
        "cargo run --profile demo --bin magnum-dev -- demo",
        As("magnum-dev demo --node-delay-ms 50"),
    ),
    ("cargo run --profile demo --bin magnum-dev -- serve", Service),
    // A run inside of a run would not end. What is missing, it says without one.
    ("tests/run", As("tests/run --check")),
    ("tests/run --quick", As("tests/run --quick --check")),
    ("magnum-conductor config dump", AsWritten),
    ("magnum-db-manage upgrade", AsWritten),
    ("magnum-conductor", Service),
    ("magnum-api", Service),
    ("magnum-conductor operations list", AsWritten),
    // docs/OPERATIONS.md. What it finds in the documents' installation depends on what was run there before.
    (
        "magnum-conductor doctor",
        As("magnum-conductor doctor; [ $? -le 2 ]"),
    ),
    // No systemd runs here: that the real one has the option. `process::report` sends the signal.
    (
        "systemctl kill --signal USR2 magnum-conductor",
        As("/usr/bin/systemctl kill --help | grep -q -- --signal"),
    ),
    (rabbitmq::ELECT_LEADERS, AsWritten),
    // docs/DURABILITY.md
    ("magnum-conductor dead-letters list", AsWritten),
    ("magnum-conductor dead-letters requeue --all", AsWritten),
    ("magnum-conductor dead-letters discard --all", AsWritten),
    // docs/clients.md
    (
        "tests/run --only clients::rally",
        As("tests/run --only clients::rally --check && has_test clients::rally"),
    ),
    // docs/testing.md
    (
        "tests/run --only crash_matrix",
        As("tests/run --only crash_matrix --check && has_test crash_matrix"),
    ),
    (
        "MAGNUM_TESTS_PLUGIN_RUN=all tests/run --only plugin_replay",
        As("tests/run --only plugin_replay --check && has_test plugin_replay"),
    ),
    (
        "MAGNUM_TESTS_PLUGIN_RUN=all tests/run --only heat_replay",
        As("tests/run --only heat_replay --check && has_test heat_replay"),
    ),
    (
        "MAGNUM_TESTS_PICTURES=docs tests/run --only pictures",
        As("tests/run --only pictures --check && has_test pictures"),
    ),
    ("tests/run --check", AsWritten),
    ("tests/run --fuzz 600", As("tests/run --fuzz 600 --check")),
    (
        "tests/run --nemesis 10",
        As("tests/run --nemesis 10 --check && has_test nemesis"),
    ),
    (
        "tests/run --nemesis 10 --seed 4711",
        As("tests/run --nemesis 10 --seed 4711 --check"),
    ),
    (
        "MAGNUM_TESTS_NEMESIS_ON=mysql tests/run --nemesis 60",
        As("MAGNUM_TESTS_NEMESIS_ON=mysql tests/run --nemesis 60 --check"),
    ),
    ("tests/run --clusters 10", As("tests/run --clusters 10 --check")),
    (
        "tests/run --differential 10",
        As("tests/run --differential 10 --check && has_test differential"),
    ),
    (
        "tests/run --differential 10 --seed 4711",
        As("tests/run --differential 10 --seed 4711 --check"),
    ),
    (
        "MAGNUM_TESTS_CLUSTER_MINUTES=10 tests/run --only process::galera",
        As("tests/run --only process::galera --check && has_test process::galera"),
    ),
    // It is built anew, optimised, which takes minutes: that it can be asked for.
    (
        "tests/run --simulate 100000",
        As("tests/run --simulate 100000 --check"),
    ),
    (
        "tests/run --simulate 1 --seed 123456",
        As("tests/run --simulate 1 --seed 123456 --check"),
    ),
    (
        "MAGNUM_TESTS_SIMULATION_SEED=123456 tests/run --only simulation",
        As("tests/run --only simulation --check && has_test simulation"),
    ),
    // docs/benchmarks.md. They take minutes, and numbers of a busy machine say nothing: that they can be asked for.
    (
        "cargo run --profile dist -p magnum-tests --bin bench -- casts",
        As("bench casts --help"),
    ),
    (
        "cargo run --profile dist -p magnum-tests --bin bench -- calls",
        As("bench calls --help"),
    ),
    (
        "cargo run --profile dist -p magnum-tests --bin bench -- objects",
        As("bench objects --help"),
    ),
    (
        "cargo run --profile dist -p magnum-tests --bin bench -- create",
        As("bench create --help"),
    ),
    (
        "cargo run --profile dist -p magnum-tests --bin bench -- sweep",
        As("bench sweep --help"),
    ),
    (
        "cargo run --profile dist -p magnum-tests --bin bench -- health",
        As("bench health --help"),
    ),
    (
        "cargo run --profile dist -p magnum-tests --bin bench -- rest",
        As("bench rest --help"),
    ),
    (
        "cargo run --profile dist -p magnum-tests --bin bench -- plugins",
        As("bench plugins --help"),
    ),
    // docs/configuration.md
    ("magnum-conductor config sample", AsWritten),
    ("magnum-conductor config reference", AsWritten),
    // docs/upgrade-from-magnum.md. Before the database is there, it has something to say; either way it must not fail itself.
    (
        "magnum-status upgrade check",
        As("magnum-status upgrade check; [ $? -le 2 ]"),
    ),
    (
        "magnum-status upgrade check --json",
        As("magnum-status upgrade check --json; [ $? -le 2 ]"),
    ),
    ("magnum-db-manage version", AsWritten),
    // docs/policy.md
    ("magnum-policy sample", AsWritten),
    (
        "magnum-policy check --file /etc/magnum/policy.yaml",
        As(
            "magnum-policy sample > /etc/magnum/policy.yaml && magnum-policy check --file /etc/magnum/policy.yaml",
        ),
    ),
    ("magnum-policy list --roles reader --project demo", AsWritten),
    // docs/drivers.md
    ("magnum-driver-manage create mine", AsWritten),
    ("magnum-driver-manage check mine", AsWritten),
    ("mv mine /etc/magnum/drivers/", AsWritten),
    ("magnum-driver-manage list-drivers -d -p", AsWritten),
    ("systemctl reload magnum-conductor", AsWritten),
    ("cd deploy/drivers/disk", AsWritten),
    ("cat > /tmp/request.json <<'END'", AsWritten),
    (
        "DISK_DRIVER_ROOT=/tmp/disk ./driver.py < /tmp/request.json",
        AsWritten,
    ),
    ("find /tmp/disk/clusters -name '*.json'", AsWritten),
    // docs/python-drivers.md, with the tests' own package in the environment of the Python peers.
    (
        "magnum-driver-manage adopt --python /opt/magnum",
        As("magnum-driver-manage adopt --python /opt/magnum --driver test_folders_v1"),
    ),
    ("magnum-driver-manage check /etc/magnum/drivers", AsWritten),
    // The tests' own package is found there, too.
    (
        "magnum-driver-manage adopt --python /opt/magnum-22",
        As("magnum-driver-manage adopt --python /opt/magnum-22 --driver k8s_fedora_coreos_v1"),
    ),
    // Both Cluster API packages are in one environment.
    (
        "magnum-driver-manage adopt --python /opt/magnum-capi-helm",
        As("magnum-driver-manage adopt --python /opt/magnum-capi-helm --driver k8s_capi_helm_v1"),
    ),
    (
        "magnum-driver-manage management-cluster check --kubeconfig /etc/magnum/management-cluster",
        AsWritten,
    ),
    // docs/cluster-api.md
    (
        "cp -r deploy/drivers/k8s_capi_helm_v1 /etc/magnum/drivers/",
        AsWritten,
    ),
    (
        "magnum-driver-manage check /etc/magnum/drivers/k8s_capi_helm_v1",
        As(
            "PATH=tests/testbed/kubernetes/bin:$PATH KUBECONFIG=/etc/magnum/management-cluster magnum-driver-manage check \
             /etc/magnum/drivers/k8s_capi_helm_v1",
        ),
    ),
    (
        "KUBECONFIG=/etc/magnum/kubeconfig magnum-driver-manage adopt --python /opt/magnum-cluster-api",
        As(
            "KUBECONFIG=/etc/magnum/kubeconfig magnum-driver-manage adopt --python /opt/magnum-cluster-api \
             --driver k8s_cluster_api_ubuntu",
        ),
    ),
    // The README of a new driver, read in the folder of one.
    (
        "echo '{\"protocol\": 1, \"call\": \"create\", \"settings\": {\"root\": \"/tmp/clusters\"},",
        AsWritten,
    ),
];

/// How to run a command: the row with its first line.
fn how(command: &str) -> Option<(&'static str, How)> {
    let first = command.lines().next().unwrap_or_default();
    let first = blocks::without_comment(first);
    HOW.iter().find(|(known, _)| *known == first).copied()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

const NEW_DRIVERS_README: &str = "conductor/src/cli/driver_manage/scaffold/README.md";

/// The documents with commands, by their paths in the checkout.
fn documents() -> Result<Vec<String>> {
    let mut found = vec![
        "README.md".to_owned(),
        "migrations/README.md".to_owned(),
        NEW_DRIVERS_README.to_owned(),
    ];
    for folder in ["docs", "docs/adr"] {
        for entry in std::fs::read_dir(root().join(folder))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") {
                found.push(format!("{folder}/{name}"));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn blocks_of(document: &str) -> Result<Vec<Block>> {
    let text = std::fs::read_to_string(root().join(document)).with_context(|| document.to_owned())?;
    blocks(&text).with_context(|| document.to_owned())
}

/// Runs the commands of one document, in order, in one session.
async fn work(document: &str) -> Result<()> {
    let mut session = Session::new().await?;
    // What the reader of these has done before.
    match document {
        NEW_DRIVERS_README => {
            session
                .shell("magnum-driver-manage create mine && cd mine")
                .await?;
        }
        "docs/drivers.md" | "docs/python-drivers.md" => {
            session.shell("magnum-db-manage upgrade").await?;
            session.serve("magnum-conductor").await?;
            if document == "docs/python-drivers.md" {
                session.has_management_cluster().await?;
            }
        }
        "docs/cluster-api.md" => session.has_management_cluster().await?,
        _ => {}
    }
    for block in blocks_of(document)? {
        let place = format!("{document}:{}", block.line);
        if let Some(program) = &block.program {
            session.try_driver(program).await.context(place)?;
            continue;
        }
        let home = session.place();
        for command in &block.commands {
            let (_, how) = how(&command.text)
                .with_context(|| format!("{place}: HOW has no row for the command\n{}", command.text))?;
            session
                .command(&command.text, how, &command.shown)
                .await
                .with_context(|| format!("{place}: {}", command.text))?;
        }
        // The next block is read by somebody who is back where the document began.
        session.return_to(home);
    }
    Ok(())
}

#[test]
fn every_command_of_the_documents_is_known_and_nothing_else() -> Result<()> {
    let mut used = BTreeSet::new();
    for document in documents()?
        .into_iter()
        .filter(|document| document != install::DOCUMENT)
    {
        for block in blocks_of(&document)? {
            for command in block.commands {
                let (row, _) = how(&command.text).with_context(|| {
                    format!(
                        "{document}:{}: tell HOW in tests/it/operators/documents.rs to run\n{}",
                        block.line, command.text
                    )
                })?;
                used.insert(row);
            }
        }
    }
    let unused: Vec<&str> = HOW
        .iter()
        .map(|(row, _)| *row)
        .filter(|row| !used.contains(row))
        .collect();
    ensure!(
        unused.is_empty(),
        "no document has these commands any more: {unused:#?}"
    );
    Ok(())
}

#[tokio::test]
async fn the_commands_of_the_readme_work() -> Result<()> {
    work("README.md").await
}

#[tokio::test]
async fn the_commands_about_drivers_work() -> Result<()> {
    work("docs/drivers.md").await?;
    work(NEW_DRIVERS_README).await
}

#[tokio::test]
async fn the_commands_of_every_other_document_work() -> Result<()> {
    for document in documents()? {
        if ![
            "README.md",
            "docs/drivers.md",
            NEW_DRIVERS_README,
            install::DOCUMENT,
        ]
        .contains(&document.as_str())
            && !blocks_of(&document)?.is_empty()
        {
            work(&document).await?;
        }
    }
    Ok(())
}
