//! magnum-tempest-plugin, the test suite that deployments of Magnum are accepted with: its API tests pass.
//!
//! All of them are run, but for those in [`NOT_RUN`], which says why not. A test that a newer plugin has is run; a row of a
//! table that the plugin has no test for fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::cloud_services::{CloudServices, REGION};
use magnum_tests::openstack::PASSWORD;
use magnum_tests::process::{Finished, Launch};
use magnum_tests::rest::IMAGE;
use magnum_tests::run_dir::{base, run_dir};

use super::world::Stack;

/// Where the plugin's tests are. Below it each scenario stands twice: with legacy credentials, and (`rbac`) with the roles
/// `admin`, `member` and `reader` of a project.
const PLUGIN: &str = "magnum_tempest_plugin.tests.api.v1";

const ASKS_THE_CLUSTER: &str = "asks the Kubernetes API of the cluster that it made for nodes and pods, and no \
                                machine comes of a cluster here; what it asks of Magnum is asked in clients::commands";
const IS_WRONG: &str = "wants a cluster without nodes at microversion 1.1; Magnum allows that from 1.10 on and answers \
                        400 below it, as here; the gate of Magnum leaves it out, too";

/// Tests of the plugin that are not run.
const NOT_RUN: &[(&str, &str)] = &[
    (
        "test_cluster.ClusterTest.test_create_list_sign_delete_clusters",
        ASKS_THE_CLUSTER,
    ),
    (
        "rbac.test_cluster.ClusterTest.test_create_list_sign_delete_clusters",
        ASKS_THE_CLUSTER,
    ),
    (
        "test_cluster.ClusterTest.test_create_cluster_with_zero_nodes",
        IS_WRONG,
    ),
    (
        "rbac.test_cluster.ClusterTest.test_create_cluster_with_zero_nodes",
        IS_WRONG,
    ),
];

/// Tests that pass only as the first of their class, and are run by themselves: the end of the first removes the users of
/// the whole class. Our API remembers their tokens for a while, as Magnum does; but Nova, which has to be asked about a
/// flavor with such a token, sees it for the first time and does not accept it.
const ALONE: &[&str] = &["test_cluster.ClusterTest.test_create_cluster_with_nonexisting_flavor"];

/// A folder that tempest works in.
struct Workspace {
    folder: PathBuf,
}

impl Workspace {
    async fn new() -> Result<Self> {
        let folder = run_dir()?.folder("tempest")?;
        for empty in ["home", "workspace"] {
            std::fs::create_dir_all(folder.join(empty))?;
        }
        let workspace = Self { folder };
        workspace.tempest(&["init"])?.output().await?;
        Ok(workspace)
    }

    fn tempest(&self, args: &[&str]) -> Result<Launch> {
        let program = base().join("tempest/bin/tempest");
        ensure!(
            program.exists(),
            "{} is missing: tests/run makes it",
            program.display()
        );
        let mut command = Command::new(program);
        command.current_dir(self.folder.join("workspace"));
        // It keeps a list of workspaces at home.
        Ok(Launch::command("tempest", command)
            .args(args)
            .env("HOME", self.folder.join("home"))
            .env("PYTHONDONTWRITEBYTECODE", "1"))
    }

    /// The plugin's tests, without what their names have in common.
    async fn list(&self) -> Result<BTreeSet<String>> {
        let regex = format!("^{PLUGIN}");
        let launch = self.tempest(&["run", "--list-tests", "--regex", &regex])?;
        let text = launch.output().await?;
        let names = text.lines().filter_map(short).map(str::to_owned);
        let names: BTreeSet<String> = names.collect();
        ensure!(!names.is_empty(), "no test in {text}");
        Ok(names)
    }

    fn configure(&self, stack: &Stack) -> Result<()> {
        let keystone = stack.cloud.openstack.keystone_url();
        let (folder, region) = (self.folder.display(), &stack.region);
        let text = format!(
            "[DEFAULT]\nlog_file = {folder}/tempest.log\n\
             [oslo_concurrency]\nlock_path = {folder}/locks\n\
             [auth]\nadmin_username = admin\nadmin_password = {PASSWORD}\nadmin_project_name = admin\n\
             admin_domain_name = Default\ncreate_isolated_networks = false\ntempest_roles = member\n\
             [identity]\nuri_v3 = {keystone}\nauth_version = v3\nregion = {region}\nv3_endpoint_type = public\n\
             [compute]\nregion = {REGION}\n\
             [service_available]\nmagnum = true\ncinder = false\nneutron = false\nswift = false\n\
             [enforce_scope]\nmagnum = true\n\
             [magnum]\nimage_id = {IMAGE}\nnic_id = public\nflavor_id = m1.small\nmaster_flavor_id = m1.small\n"
        );
        let place = self.folder.join("workspace/etc/tempest.conf");
        std::fs::write(&place, text).with_context(|| place.display().to_string())
    }

    /// Runs tests; how each ended.
    async fn run(&self, args: &[&str]) -> Result<BTreeMap<String, String>> {
        let finished = self.tempest(&["run"])?.args(args).finish().await?;
        let ended = outcomes(&finished);
        let bad: Vec<_> = ended.iter().filter(|(_, outcome)| *outcome != "ok").collect();
        ensure!(
            finished.status.success() && bad.is_empty(),
            "{bad:#?}\n{}\n{}",
            finished.stdout,
            finished.stderr
        );
        Ok(ended)
    }
}

/// The part of a test's name that is its own: neither the plugin's nor, behind a `[`, its attributes.
fn short(name: &str) -> Option<&str> {
    let own = name.trim().strip_prefix(PLUGIN)?.strip_prefix('.')?;
    own.split('[').next()
}

/// What `{0} NAME [0.1s] ... ok` says. What is no test of the plugin, such as a class that cannot be prepared, keeps its
/// name.
fn outcomes(finished: &Finished) -> BTreeMap<String, String> {
    let lines = finished.stdout.lines().filter(|line| line.starts_with('{'));
    lines
        .filter_map(|line| {
            let (test, outcome) = line.split_once(" ... ")?;
            let name = test.split_once("} ")?.1.split(" [").next()?;
            Some((short(name).unwrap_or(name).to_owned(), outcome.trim().to_owned()))
        })
        .collect()
}

/// A regular expression for these tests and no other.
fn exactly<'a>(tests: impl Iterator<Item = &'a str>) -> String {
    let tests: Vec<&str> = tests.collect();
    format!(
        "^{}\\.({})(\\[|$)",
        PLUGIN.replace('.', "\\."),
        tests.join("|").replace('.', "\\.")
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_tests_of_magnum_tempest_plugin_pass() -> Result<()> {
    let prepare = async {
        let workspace = Workspace::new().await?;
        let tests = workspace.list().await?;
        Ok((workspace, tests))
    };
    // Both take a while, and neither needs the other.
    let ((workspace, tests), _) = tokio::try_join!(prepare, CloudServices::shared())?;
    let left_out = NOT_RUN.iter().map(|(name, _)| *name);
    let apart: Vec<&str> = left_out.clone().chain(ALONE.iter().copied()).collect();
    for name in &apart {
        ensure!(tests.contains(*name), "the plugin has no test {name}: {tests:#?}");
    }
    let stack = Stack::start().await?;
    let keystone = stack.cloud.openstack.keystone_url();
    let openstack = stack.cloud.openstack;
    openstack
        .list(&stack.region, "identity", "public", &keystone)
        .await?;
    workspace.configure(&stack)?;

    let excluded = exactly(apart.into_iter());
    let plugin = format!("^{PLUGIN}");
    let args = [
        "--concurrency",
        "2",
        "--regex",
        &plugin,
        "--exclude-regex",
        &excluded,
    ];
    let mut ended = workspace.run(&args).await?;
    for name in ALONE {
        let only = exactly([*name].into_iter());
        ended.extend(workspace.run(&["--serial", "--regex", &only]).await?);
    }
    for (name, reason) in NOT_RUN {
        println!("not run: {name}: {reason}");
    }
    let told: BTreeSet<String> = left_out.map(str::to_owned).chain(ended.into_keys()).collect();
    let forgotten: Vec<_> = tests.symmetric_difference(&told).collect();
    ensure!(forgotten.is_empty(), "neither run nor left out: {forgotten:#?}");
    Ok(())
}
