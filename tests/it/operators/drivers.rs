//! `magnum-driver-manage` as a person runs it: a new driver works without a change, mistakes are told by line,
//! and the list shows what this host has and what the conductors in the database say they have.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use magnum_common::clock::utc_now;
use magnum_common::secret::Secret;
use magnum_config::DatabaseSection;
use magnum_db::migrate;
use magnum_tests::helm::Helm;
use magnum_tests::process::{Finished, Launch};
use magnum_tests::python_plugin::{self, PythonPlugin};
use magnum_tests::run_dir::run_dir;
use magnum_tests::{Backend, TestDatabase, heat_cloud, plugin_world};
use serde_json::{Value, json};

async fn manage(args: &[&str]) -> Result<Finished> {
    Launch::program("magnum-driver-manage")?.args(args).finish().await
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A folder with a new driver in it.
async fn new_driver(topic: &str, name: &str) -> Result<PathBuf> {
    let folder = run_dir()?.folder(topic)?;
    let made = manage(&["create", name, "--path", &text(&folder)]).await?;
    ensure!(made.status.success(), "{}", made.stderr);
    Ok(folder)
}

/// Runs a driver's program as the protocol says; returns its lines.
async fn call(program: PathBuf, request: Value) -> Result<Vec<Value>> {
    tokio::task::spawn_blocking(move || {
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        writeln!(child.stdin.take().context("stdin")?, "{request}")?;
        let output = child.wait_with_output()?;
        ensure!(output.status.success(), "ended with {}", output.status);
        let lines = String::from_utf8(output.stdout)?;
        lines
            .lines()
            .map(|line| Ok(serde_json::from_str(line)?))
            .collect()
    })
    .await?
}

fn files(root: &Path) -> usize {
    let Ok(entries) = fs::read_dir(root) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| {
            if entry.path().is_dir() {
                files(&entry.path())
            } else {
                1
            }
        })
        .sum()
}

#[tokio::test]
async fn a_new_driver_builds_changes_observes_and_deletes_and_may_repeat_each() -> Result<()> {
    let folder = new_driver("scaffold", "my-disk").await?;
    let program = folder.join("my-disk/driver.py");
    let root = folder.join("clusters");
    let cluster = |status: &str| json!({"uuid": "c-1", "name": "demo", "status": status, "labels": {}});
    let groups = |workers: u32| {
        json!([
            {"uuid": "g-1", "name": "default-master", "role": "master", "node_count": 1},
            {"uuid": "g-2", "name": "default-worker", "role": "worker", "node_count": workers},
        ])
    };
    let request = |call: &str, workers: u32| {
        json!({
            "protocol": 1, "call": call, "operation": "o-1", "attempt": 1, "settings": {"root": root},
            "cluster": cluster("CREATE_IN_PROGRESS"), "node_groups": groups(workers), "template": {},
            "context": {"user_id": "u", "auth_token": "tok-secret"},
        })
    };
    let observed = |status: &str, workers: u32| {
        json!({
            "protocol": 1, "call": "observe", "settings": {"root": root},
            "clusters": [{"cluster": cluster(status), "node_groups": groups(workers), "template": {}}],
        })
    };
    let end = |lines: Vec<Value>| lines.last().cloned().unwrap_or_default();

    for _ in 0..2 {
        let lines = call(program.clone(), request("create", 2)).await?;
        assert!(lines[0]["progress"].is_string(), "{lines:?}");
        let result = &end(lines)["result"];
        assert_eq!(result["cluster"]["status"], "CREATE_COMPLETE");
        assert_eq!(
            result["node_groups"][1]["node_addresses"]
                .as_array()
                .map(Vec::len),
            Some(2)
        );
        assert_eq!(files(&root), 4, "the cluster and three nodes");
    }
    let seen = call(program.clone(), observed("CREATE_IN_PROGRESS", 2)).await?;
    assert_eq!(
        seen,
        [json!({"cluster": "c-1", "result": {"cluster": {"status": "CREATE_COMPLETE"}}})]
    );
    let shrunk = end(call(program.clone(), request("update", 1)).await?);
    assert_eq!(shrunk["result"]["cluster"]["status"], "UPDATE_COMPLETE");
    assert_eq!(files(&root), 3);
    let stored = fs::read_to_string(root.join("c-1/cluster.json"))?;
    assert!(!stored.contains("tok-secret"));
    for _ in 0..2 {
        let gone = end(call(program.clone(), request("delete", 1)).await?);
        assert_eq!(gone["result"]["cluster"]["status"], "DELETE_COMPLETE");
        assert_eq!(files(&root), 0);
    }
    let seen = end(call(program.clone(), observed("DELETE_IN_PROGRESS", 1)).await?);
    assert_eq!(seen["result"]["cluster"]["status"], "DELETE_COMPLETE");
    let unknown = end(call(program, request("teleport", 1)).await?);
    assert_eq!(unknown["class"], "not_supported");
    Ok(())
}

#[tokio::test]
async fn check_exits_with_one_and_reports_every_mistake_by_line() -> Result<()> {
    let folder = new_driver("check", "mine").await?;
    let dir = folder.join("mine");
    let good = manage(&["check", &text(&dir)]).await?;
    ensure!(good.status.success(), "{}", good.stderr);
    assert!(
        good.stdout.contains("mine 0.1.0 is fine: engine exec"),
        "{}",
        good.stdout
    );

    let file = dir.join("driver.toml");
    let spoilt = fs::read_to_string(&file)?
        .replace("name = \"mine\"", "name = \"Mine!\"")
        .replace("version = \"0.1.0\"", "version = \"first\"")
        .replace("[capabilities]", "[capabilities]\nupgrad = true")
        .replace("program = \"driver.py\"", "program = \"../other.py\"");
    fs::write(&file, &spoilt)?;
    let line = |part: &str| {
        spoilt
            .lines()
            .position(|line| line.contains(part))
            .map_or(0, |at| at + 1)
    };

    let bad = manage(&["check", &text(&dir)]).await?;
    assert_eq!(bad.status.code(), Some(1));
    let file = text(&file);
    let wanted = [
        format!("{file}:{}: 'Mine!' is not a driver name", line("Mine!")),
        format!("{file}:{}: 'first' is not a version", line("first")),
        format!(
            "{file}:{}: unknown key 'upgrad' in [capabilities]",
            line("upgrad")
        ),
        format!(
            "{file}:{}: the program '../other.py' must be a path inside",
            line("other.py")
        ),
    ];
    let told: Vec<_> = bad.stderr.lines().collect();
    assert_eq!(told.len(), wanted.len(), "{}", bad.stderr);
    for (told, wanted) in told.iter().zip(&wanted) {
        assert!(
            told.starts_with(wanted.as_str()),
            "{told}\nshould begin with\n{wanted}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn the_list_needs_no_database_and_shows_broken_folders_beside_good_ones() -> Result<()> {
    let folder = new_driver("list", "good").await?;
    fs::create_dir(folder.join("broken"))?;
    fs::write(folder.join("broken/driver.toml"), "[driver]\nname = 1\n")?;
    let config = folder.join("magnum.conf");
    let nowhere = folder.join("none.sqlite");
    fs::write(
        &config,
        format!(
            "[drivers]\ndriver_path = {}\ndisabled_drivers = good\n[database]\nconnection = sqlite:///{}\n",
            text(&folder),
            text(&nowhere)
        ),
    )?;
    let listed = manage(&["list-drivers", "-d", "-p", "--config-file", &text(&config)]).await?;
    ensure!(listed.status.success(), "{}", listed.stderr);
    for part in [
        "| good ",
        "| disabled ",
        "| ubuntu ",
        "| kubernetes ",
        &text(&folder.join("good")),
    ] {
        assert!(listed.stdout.contains(part), "{part} in\n{}", listed.stdout);
    }
    let broken = format!(
        "{}:2: 'name' in [driver] must be a string",
        text(&folder.join("broken/driver.toml"))
    );
    assert!(listed.stdout.contains(&broken), "{}", listed.stdout);
    assert!(listed.stderr.contains("there is no file"), "{}", listed.stderr);
    assert!(!nowhere.exists(), "looking makes no database");
    Ok(())
}

async fn announced_on(backend: Backend) -> Result<()> {
    let database = TestDatabase::empty(backend).await?;
    let section = DatabaseSection {
        connection: Secret::new(database.url()),
        ..DatabaseSection::default()
    };
    migrate::upgrade(&section).await?;
    let now = utc_now().timestamp_millis();
    for (conductor, version, error, announced_ms) in [
        ("one:1", "1.0.0", "NULL", now),
        ("two:1", "2.0.0", "'/d/disk: driver.toml:2: wrong'", now - 30_000),
        ("dead:1", "3.0.0", "NULL", now - 3_600_000),
    ] {
        let host = conductor.split(':').next().unwrap_or_default();
        database
            .execute(&format!(
                "INSERT INTO conductor_driver (conductor, host, name, version, beta, cluster_types, \
                 capabilities, master_size_rule, error, announced_ms) VALUES ('{conductor}', '{host}', 'disk', \
                 '{version}', false, '[]', '{{}}', 'odd', {error}, {announced_ms})"
            ))
            .await?;
    }
    let folder = run_dir()?.folder("announced")?;
    let config = folder.join("magnum.conf");
    fs::write(
        &config,
        format!(
            "[drivers]\ndriver_path = {}\n[database]\nconnection = {}\n",
            text(&folder),
            database.url()
        ),
    )?;
    let listed = manage(&[
        "list-drivers",
        "-d",
        "-f",
        "json",
        "--config-file",
        &text(&config),
    ])
    .await?;
    ensure!(listed.status.success(), "{}", listed.stderr);
    let document: Value = serde_json::from_str(&listed.stdout)?;
    let conductors = document["conductors"].as_array().context("conductors")?;
    let said: Vec<_> = conductors
        .iter()
        .map(|said| (&said["host"], &said["version"], &said["error"]))
        .collect();
    assert_eq!(
        said,
        [
            (&json!("one"), &json!("1.0.0"), &json!(null)),
            (
                &json!("two"),
                &json!("2.0.0"),
                &json!("/d/disk: driver.toml:2: wrong")
            ),
        ],
        "what a dead conductor said long ago does not count"
    );
    let table = manage(&["list-drivers", "-d", "--config-file", &text(&config)]).await?;
    assert!(
        table.stdout.contains("two: /d/disk: driver.toml:2: wrong"),
        "{}",
        table.stdout
    );
    Ok(())
}

#[tokio::test]
async fn list_shows_the_announced_drivers_in_sqlite() -> Result<()> {
    announced_on(Backend::Sqlite).await
}

#[tokio::test]
async fn list_shows_the_announced_drivers_in_mariadb() -> Result<()> {
    announced_on(Backend::Mariadb).await
}

#[tokio::test]
async fn list_shows_the_announced_drivers_in_postgres() -> Result<()> {
    announced_on(Backend::Postgres).await
}

#[tokio::test(flavor = "multi_thread")]
async fn adopt_tells_what_is_wrong_with_each_package_and_check_notices_another_version() -> Result<()> {
    let plugin = PythonPlugin::new(&run_dir()?.folder("adopt")?)?;
    let (venv, drivers) = (python_plugin::venv()?, plugin.drivers.display().to_string());
    let adopt = plugin.manage(&["adopt", "--python", &venv, "--into", &drivers])?;
    let finished = adopt.finish().await?;
    ensure!(finished.status.code() == Some(1), "{finished:?}");
    let made = plugin.drivers.join(format!("{}-1.0.0", python_plugin::DRIVER));
    ensure!(
        finished.stdout.contains(&format!("made {}", made.display())),
        "{finished:?}"
    );
    for problem in [
        "test_exits_v1: cannot be used: SystemExit: this package wants another machine",
        "test_missing_v1: cannot be used: ModuleNotFoundError: No module named 'magnum_test_drivers.nowhere' (a package is \
         imported and not declared: install it into the environment)",
        "test_constructor_v1: cannot be used: FileNotFoundError: /nowhere/kubeconfig (its constructor reads a kubeconfig",
        "test_provides_v1: cannot be used: TypeError",
    ] {
        ensure!(finished.stderr.contains(problem), "{problem}: {finished:?}");
    }
    let only = fs::read_dir(&plugin.drivers)?.count();
    ensure!(only == 1, "{only} folders");

    let manifest = made.join("driver.toml");
    let text = fs::read_to_string(&manifest)?;
    ensure!(
        text.contains("rotate_credential = true") && !text.contains("resize_masters"),
        "{text}"
    );
    let folder = made.display().to_string();
    ensure!(
        plugin
            .manage(&["check", &folder])?
            .finish()
            .await?
            .status
            .success()
    );
    fs::write(&manifest, text.replace("1.0.0", "1.0.1"))?;
    let finished = plugin.manage(&["check", &folder])?.finish().await?;
    ensure!(finished.status.code() == Some(1), "{finished:?}");
    let problem = "describes version 1.0.1, and the environment has 1.0.0: adopt it anew";
    ensure!(finished.stderr.contains(problem), "{finished:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_heat_driver_of_magnum_22_is_adopted_from_its_environment() -> Result<()> {
    let drivers = run_dir()?.folder("adopt")?;
    let adopt = Launch::program("magnum-driver-manage")?
        .args(["adopt", "--python"])
        .args([heat_cloud::environment()?, "--into".into(), drivers.clone()]);
    let said = adopt.output().await?;
    let made = drivers.join(format!("{}-22.0.0", heat_cloud::DRIVER));
    ensure!(
        said.contains(&format!("made {} (magnum, Magnum 22.0.0)", made.display())),
        "{said}"
    );
    let manifest = fs::read_to_string(made.join("driver.toml"))?;
    for line in [
        "server_type = \"vm\"",
        "os = \"fedora-coreos\"",
        "coe = \"kubernetes\"",
        "rotate_ca = true",
        "trusts = true",
    ] {
        ensure!(manifest.contains(line), "{line}: {manifest}");
    }
    let check = || -> Result<Launch> {
        Ok(Launch::program("magnum-driver-manage")?.args(["check".as_ref(), made.as_os_str()]))
    };
    let without = check()?.finish().await?;
    ensure!(
        without.stderr.contains("[trust] trustee_domain_name is not set"),
        "{without:?}"
    );
    let config = drivers.join("magnum.conf");
    let options = "[trust]\ntrustee_domain_name = m\ntrustee_domain_admin_name = a\ntrustee_domain_admin_password = p\n\
                   [keystone_auth]\nauth_url = http://127.0.0.1:9/v3\nusername = m\npassword = p\nproject_name = service\n";
    fs::write(&config, options)?;
    check()?.config(&config).output().await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn check_says_of_every_package_what_it_lacks_on_this_machine() -> Result<()> {
    let folder = run_dir()?.folder("adopt")?;
    let (drivers, kubeconfig) = (folder.join("drivers"), folder.join("kubeconfig"));
    fs::write(&kubeconfig, plugin_world::kubeconfig_of_none().to_string())?;
    let adopt = Launch::program("magnum-driver-manage")?
        .args(["adopt", "--python"])
        .args([plugin_world::environment()?, "--into".into(), drivers.clone()])
        .args([
            "--driver",
            "k8s_capi_helm_v1",
            "--driver",
            "k8s_cluster_api_ubuntu",
        ])
        .env("KUBECONFIG", &kubeconfig);
    adopt.output().await?;

    let check = || {
        Ok::<_, anyhow::Error>(
            Launch::program("magnum-driver-manage")?.args(["check".into(), drivers.clone()]),
        )
    };
    let lacking = check()?
        .env("HOME", &folder)
        .env("PATH", &folder)
        .finish()
        .await?;
    ensure!(lacking.status.code() == Some(1), "{lacking:?}");
    for problem in [
        "magnum-capi-helm runs helm, which is not on PATH",
        "magnum-cluster-api runs helm, which is not on PATH",
        "(its constructor reads a kubeconfig: set KUBECONFIG, for the conductor too)",
    ] {
        ensure!(lacking.stderr.contains(problem), "{problem}: {lacking:?}");
    }
    let helm = Helm::new()?;
    let mut good = check()?.env("KUBECONFIG", &kubeconfig);
    for (name, value) in helm.environment(&text(&folder)) {
        good = good.env(name, value);
    }
    good.output().await.map(drop)
}
