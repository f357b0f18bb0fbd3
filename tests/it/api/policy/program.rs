//! `magnum-policy` as an operator runs it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::process::{Finished, Launch};
use magnum_tests::run_dir::run_dir;
use serde_json::Value;

async fn policy(args: &[&str]) -> Result<Finished> {
    // Not the configuration of the machine.
    let config = run_dir()?.folder("policy-program")?.join("magnum.conf");
    fs::write(&config, "")?;
    Launch::program("magnum-policy")?
        .args(args)
        .config(&config)
        .finish()
        .await
}

/// The rules that a caller passes.
async fn allowed(args: &[&str]) -> Result<Vec<String>> {
    let listed = policy(&[&["list", "--json"], args].concat()).await?;
    ensure!(listed.status.success(), "{}", listed.stderr);
    let Value::Object(answers) = serde_json::from_str(&listed.stdout)? else {
        anyhow::bail!("{}", listed.stdout);
    };
    Ok(answers
        .into_iter()
        .filter(|(_, answer)| *answer == Value::Bool(true))
        .map(|(name, _)| name)
        .collect())
}

#[tokio::test]
async fn the_sample_in_the_repository_is_the_one_that_the_program_prints() -> Result<()> {
    let printed = policy(&["sample"]).await?.stdout;
    let kept = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/config/policy.yaml.sample"),
    )?;
    ensure!(
        printed == kept,
        "write it anew: magnum-policy sample > deploy/config/policy.yaml.sample"
    );
    Ok(())
}

#[tokio::test]
async fn a_file_is_checked_with_places_and_an_exit_code() -> Result<()> {
    let folder = run_dir()?.folder("policy-files")?;
    let file = folder.join("mine.yaml");
    let path = file.to_str().context("a path")?;
    let check = async |text: &str| {
        fs::write(&file, text)?;
        policy(&["check", "--file", path]).await
    };
    let fine = check("\"cluster:get\": role:reader\n").await?;
    ensure!(
        fine.status.success() && fine.stdout == format!("{path}: fine\n"),
        "{fine:?}"
    );
    let doubtful = check("\"cluster:gett\": role:reader\n").await?;
    ensure!(
        doubtful.status.success()
            && doubtful
                .stderr
                .contains(&format!("{path}:1: rule \"cluster:gett\" is unknown")),
        "{doubtful:?}"
    );
    for (text, told) in [
        ("a: role:b\nb: c\n", ":2: rule \"b\": 'c' is no check"),
        ("a: rule:b\nb: rule:a\n", "refers to itself"),
        (
            "a: http://127.0.0.1/\n",
            "asks a remote server, which is not supported",
        ),
        ("a: [\n", "is not valid YAML"),
    ] {
        let wrong = check(text).await?;
        ensure!(
            wrong.status.code() == Some(1) && wrong.stderr.contains(told),
            "{text}: {wrong:?}"
        );
    }
    let absent = policy(&["check", "--file", "/nowhere/policy.yaml"]).await?;
    ensure!(
        absent.status.code() == Some(1) && absent.stderr.contains("no such file"),
        "{absent:?}"
    );
    Ok(())
}

#[tokio::test]
async fn allowed_rules_of_a_caller_are_listed() -> Result<()> {
    let reader = allowed(&["--roles", "reader", "--project", "p"]).await?;
    ensure!(reader.contains(&"cluster:get".to_owned()) && !reader.contains(&"cluster:create".to_owned()));
    ensure!(
        !reader.iter().any(|rule| rule.ends_with("_all_projects")),
        "{reader:?}"
    );
    let foreign = allowed(&[
        "--roles",
        "member,reader",
        "--project",
        "p",
        "--target-project",
        "q",
    ])
    .await?;
    ensure!(!foreign.contains(&"cluster:get".to_owned()) && foreign.contains(&"cluster:create".to_owned()));
    let colleague = allowed(&[
        "--roles",
        "member,reader",
        "--project",
        "p",
        "--target-user",
        "other",
    ])
    .await?;
    ensure!(
        !colleague.contains(&"certificate:get".to_owned())
            && colleague.contains(&"cluster:delete".to_owned())
    );
    let admin = allowed(&["--roles", "admin", "--project", "p", "--target-project", "q"]).await?;
    ensure!(
        admin.contains(&"cluster:delete_all_projects".to_owned()),
        "{admin:?}"
    );
    ensure!(!admin.contains(&"credential:rotate".to_owned()), "{admin:?}");
    ensure!(
        allowed(&["--roles", "member,reader"]).await?.is_empty(),
        "without a project"
    );

    let one = policy(&[
        "list",
        "--roles",
        "reader",
        "--project",
        "p",
        "--rule",
        "cluster:delete",
    ])
    .await?;
    ensure!(
        one.status.code() == Some(1) && one.stdout == "refused  cluster:delete\n",
        "{one:?}"
    );
    let unknown = policy(&["list", "--rule", "cluster:nope"]).await?;
    ensure!(
        unknown.status.code() == Some(1) && unknown.stderr.contains("there is no rule"),
        "{unknown:?}"
    );
    Ok(())
}
