//! A driver directory with each kind of mistake: the conductor starts, tells every one with its line, and the
//! driver that is right works; `magnum-driver-manage check` says the same and ends with 1.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::{Deployment, drivers};
use magnum_tests::process::Launch;
use magnum_tests::{Backend, wait};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{SOON, api_with_template, is_unharmed};

const GOOD: &str = r#"[driver]
name = "NAME"
version = "1.0.0"
engine = "exec"

[[provides]]
server_type = "vm"
os = "ubuntu"
coe = "kubernetes"

[capabilities]
upgrade = false

[masters]
sizes = "any"

[exec]
program = "run"
timeout = 20
env = ["PATH"]
"#;

/// A folder's name, what to replace in a good manifest by what, the line to blame (0: the folder), and the words.
type Mistake = (&'static str, &'static str, &'static str, u64, &'static str);

const MISTAKES: &[Mistake] = &[
    ("not-toml", "version = ", "version ! ", 3, "this is not TOML"),
    (
        "unknown-section",
        "[masters]",
        "[master]",
        14,
        "unknown key 'master'",
    ),
    (
        "unknown-key",
        "env = ",
        "environment = ",
        20,
        "unknown key 'environment' in [exec]",
    ),
    (
        "unknown-capability",
        "upgrade = ",
        "upgrades = ",
        12,
        "unknown key 'upgrades'",
    ),
    (
        "no-version",
        "version = \"1.0.0\"\n",
        "",
        1,
        "'version' is missing in [driver]",
    ),
    (
        "no-type",
        "coe = \"kubernetes\"\n",
        "",
        6,
        "'coe' is missing in [[provides]]",
    ),
    (
        "no-program",
        "program = \"run\"\n",
        "",
        17,
        "'program' is missing in [exec]",
    ),
    (
        "bad-name",
        "\"NAME\"",
        "\"Bad Name\"",
        2,
        "'Bad Name' is not a driver name",
    ),
    (
        "name-number",
        "\"NAME\"",
        "7",
        2,
        "must be a string, not an integer",
    ),
    ("bad-version", "\"1.0.0\"", "\"1\"", 3, "'1' is not a version"),
    (
        "bad-engine",
        "\"exec\"",
        "\"magic\"",
        4,
        "'magic' is not an engine",
    ),
    (
        "bad-server",
        "\"vm\"",
        "\"cloud\"",
        7,
        "'cloud' is not a value of 'server_type'",
    ),
    (
        "bad-capability",
        "upgrade = false",
        "upgrade = \"no\"",
        12,
        "must be true or false, not a string",
    ),
    (
        "bad-masters",
        "sizes = \"any\"",
        "sizes = \"even\"",
        15,
        "'even' is not a rule for master sizes",
    ),
    (
        "bad-timeout",
        "timeout = 20",
        "timeout = 0",
        19,
        "must be 1 second or more",
    ),
    (
        "bad-env",
        "[\"PATH\"]",
        "[\"A=B\"]",
        20,
        "'A=B' is not the name of an environment variable",
    ),
    (
        "absent-program",
        "\"run\"",
        "\"walk\"",
        18,
        "the program 'walk' is not in the folder",
    ),
    (
        "outside-program",
        "\"run\"",
        "\"../good/run\"",
        18,
        "must be a path inside the folder",
    ),
    (
        "plain-program",
        "\"run\"",
        "\"driver.toml\"",
        18,
        "is not executable: chmod +x it",
    ),
];

fn make(root: &Path, folder: &str, manifest: &str) -> Result<()> {
    let dir = root.join(folder);
    fs::create_dir_all(&dir)?;
    fs::write(dir.join("driver.toml"), manifest)?;
    fs::write(dir.join("run"), "#!/bin/sh\n")?;
    fs::set_permissions(dir.join("run"), fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// A directory with all mistakes, and the scripted driver among them.
fn directory(root: &Path) -> Result<()> {
    for (folder, from, to, ..) in MISTAKES {
        let manifest = GOOD.replacen(from, to, 1).replace("NAME", folder);
        ensure!(
            manifest != GOOD.replace("NAME", folder),
            "{folder}: {from} is not there"
        );
        make(root, folder, &manifest)?;
    }
    fs::create_dir_all(root.join("no-manifest"))?;
    make(root, "a-twin", &GOOD.replace("NAME", "twin"))?;
    make(root, "b-twin", &GOOD.replace("NAME", "twin"))?;
    make(root, "not-utf-8", "")?;
    fs::write(root.join("not-utf-8/driver.toml"), b"[driver]\nname = \"\xff\"\n")?;
    let heat = GOOD
        .replace("NAME", "heat-driver")
        .replace("\"exec\"", "\"heat\"");
    make(
        root,
        "heat-driver",
        heat.split("[exec]").next().unwrap_or_default(),
    )?;
    symlink(drivers().join("scripted"), root.join("scripted")).context("the good driver")
}

/// Folder and words of the mistakes that no line is to blame for.
const OF_FOLDERS: &[(&str, &str)] = &[
    ("no-manifest", "there is no driver.toml in it"),
    ("b-twin", "twin 1.0.0 is already provided by"),
    ("not-utf-8", "driver.toml is not UTF-8"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifest_mistakes_are_reported_by_line_and_other_drivers_work() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let root = deployment.folder.join("drivers");
    directory(&root)?;
    deployment.set("drivers", "driver_path", root.display());
    let mut conductor = deployment.conductor("c1").await?;
    let (api, template) = api_with_template(&deployment).await?;
    let built = api.rest.create_cluster(&template, "good", json!({})).await?;
    api.rest.wait_status(&built, "CREATE_COMPLETE", SOON).await?;

    // `check`: one line per mistake, in the form that editors jump to.
    let manage =
        |args: Vec<String>| async { Launch::program("magnum-driver-manage")?.args(args).finish().await };
    let checked = manage(vec!["check".into(), root.display().to_string()]).await?;
    ensure!(checked.status.code() == Some(1), "{}", checked.status);
    ensure!(
        checked.stdout.contains("scripted 1.0.0 is fine"),
        "{}",
        checked.stdout
    );
    for (folder, _, _, line, words) in MISTAKES {
        let place = format!("{}:{line}: ", root.join(folder).join("driver.toml").display());
        let told = checked
            .stderr
            .lines()
            .any(|told| told.starts_with(&place) && told.contains(words));
        ensure!(told, "{place}{words} is not in:\n{}", checked.stderr);
    }
    for (folder, words) in OF_FOLDERS {
        let place = format!("{}: ", root.join(folder).display());
        let told = checked
            .stderr
            .lines()
            .any(|told| told.starts_with(&place) && told.contains(words));
        ensure!(told, "{place}{words} is not in:\n{}", checked.stderr);
    }

    // What the conductor says, in its log and to everybody through the database.
    let log = conductor.log();
    let listed = manage(vec![
        "--config-file".into(),
        deployment.config_file("manage")?.display().to_string(),
        "list-drivers".into(),
        "--details".into(),
        "--format".into(),
        "json".into(),
    ])
    .await?;
    let listed: Value = serde_json::from_str(&listed.stdout).context(listed.stderr)?;
    let announced: Vec<&str> = listed["conductors"]
        .as_array()
        .context("no conductors")?
        .iter()
        .filter_map(|one| one["error"].as_str())
        .collect();
    let folders = MISTAKES
        .iter()
        .map(|(folder, _, _, line, words)| (*folder, format!("driver.toml:{line}: "), *words))
        .chain(
            OF_FOLDERS
                .iter()
                .map(|(folder, words)| (*folder, String::new(), *words)),
        )
        .chain([(
            "heat-driver",
            String::new(),
            "engine 'heat' is not part of this release",
        )]);
    for (folder, line, words) in folders {
        let path = root.join(folder).display().to_string();
        let tells = |text: &str| text.contains(&path) && text.contains(&line) && text.contains(words);
        ensure!(
            announced.iter().any(|told| tells(told)),
            "{folder} is not in {announced:#?}"
        );
        ensure!(log.lines().any(tells), "{folder} is not in the log");
    }

    // A corrected one is there after a SIGHUP, without a restart.
    make(&root, "no-version", &GOOD.replace("NAME", "corrected"))?;
    conductor.signal(Signal::SIGHUP)?;
    conductor.wait_log("corrected 1.0.0", SOON).await?;
    wait::until("the corrected driver to be announced", SOON, async || {
        let mut body = json!({
            "name": "u", "image_id": magnum_tests::rest::IMAGE, "coe": "kubernetes", "keypair_id": "key",
            "external_network_id": "public", "driver": "corrected",
        });
        body["name"] = json!(super::new_uuid());
        api.rest.post("/clustertemplates", &body).await?.expect(201)
    })
    .await?;
    is_unharmed(&mut conductor)
}
