//! `magnum-status upgrade check`: every check is shown a situation that is really broken, and says so; in a sound
//! deployment all of them are content. The table is oslo.upgradecheck's.

mod key_manager;
mod messaging;
mod tokens;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::Deployment;
use magnum_tests::oslo_peer::tool;
use magnum_tests::process::{Finished, Launch};
use magnum_tests::python_magnum::{PythonMagnum, Release};
use magnum_tests::{Backend, TestDatabase, rabbitmq};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

async fn status(deployment: &Deployment, args: &[&str]) -> Result<Finished> {
    Launch::program("magnum-status")?
        .config(&deployment.config_file("status")?)
        .args(["upgrade", "check"])
        .args(args)
        .finish()
        .await
}

/// The result and the details of one check, and the exit code of all.
async fn check(deployment: &Deployment, name: &str) -> Result<(u64, String, i32)> {
    let finished = status(deployment, &["--json"]).await?;
    let told: Value = serde_json::from_str(&finished.stdout).with_context(|| format!("{finished:?}"))?;
    let all = told["checks"].as_array().context("checks")?;
    let one = all
        .iter()
        .find(|one| one["check"] == name)
        .with_context(|| format!("no check {name} in {told}"))?;
    Ok((
        one["result"].as_u64().context("result")?,
        one["details"].as_str().unwrap_or_default().to_owned(),
        finished.status.code().context("it was killed")?,
    ))
}

/// A check ends with this result, says these words, and the program with an exit code that is at least as bad.
async fn finds(deployment: &Deployment, name: &str, result: u64, words: &[&str]) -> Result<()> {
    let (seen, details, code) = check(deployment, name).await?;
    ensure!(seen == result, "{name}: {seen} instead of {result}: {details}");
    for word in words {
        ensure!(details.contains(word), "{name} does not say {word:?}: {details}");
    }
    ensure!(words.is_empty() == details.is_empty(), "{name}: {details}");
    ensure!(
        u64::try_from(code)? >= result,
        "{name} is {result}, and the exit code {code}"
    );
    Ok(())
}

const OK: u64 = 0;
const WARNING: u64 = 1;
const FAILURE: u64 = 2;

/// A deployment that has run, with one cluster.
async fn sound(backend: Backend) -> Result<(Deployment, String)> {
    let deployment = Deployment::new(backend).await?;
    let mut conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("small").await?;
    let cluster = api.rest.create_cluster(&template, "one", json!({})).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    deployment.settled(PATIENCE).await?;
    conductor.terminate(PATIENCE).await?;
    // Once gone, it has no drivers that would count as announced.
    deployment
        .database
        .execute("DELETE FROM conductor_driver")
        .await?;
    Ok((deployment, cluster))
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_sound_deployment_all_is_well_and_looks_as_oslo_prints_it() -> Result<()> {
    let (deployment, cluster) = sound(Backend::Mariadb).await?;
    let stored = "UPDATE cluster SET ca_cert_ref = uuid, magnum_cert_ref = uuid";
    deployment.database.execute(stored).await?;
    let pair = format!("INSERT INTO x509keypair (uuid) VALUES ('{cluster}')");
    deployment.database.execute(&pair).await?;
    let mut deployment = deployment;
    deployment.set("certificates", "cert_manager_type", "x509keypair");
    let (table, json) = (
        status(&deployment, &[]).await?,
        status(&deployment, &["--json"]).await?,
    );
    ensure!(table.status.code() == Some(0), "{table:?}");
    // oslo's own code prints what our JSON says.
    let script = "import json, sys\n\
        from oslo_upgradecheck import upgradecheck as u\n\
        told = json.loads(sys.argv[1])\n\
        class Checks(u.UpgradeCommands):\n    \
            _upgrade_checks = tuple((one['check'], lambda self, one=one: u.Result(u.Code(one['result']), one['details'])) \
            for one in told['checks'])\n\
        sys.exit(Checks().check())";
    let oslo = Launch::command("python", Command::new(tool("python")?)).args([
        "-W",
        "ignore",
        "-c",
        script,
        json.stdout.trim(),
    ]);
    let oslo = oslo.finish().await?;
    ensure!(
        oslo.stdout == table.stdout,
        "oslo prints\n{}\nours\n{}{}",
        oslo.stdout,
        table.stdout,
        oslo.stderr
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_mistakes_are_reported_and_unusable_ones_fail_the_check() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set("conductor", "wokers", 3);
    deployment.set("bay", "trustee_domain_name", "magnum");
    finds(&deployment, "Configuration", WARNING, &["wokers", "bay"]).await?;
    deployment.set("certificates", "cert_manager_type", "drawer");
    deployment.set("api", "port", "95l1");
    finds(
        &deployment,
        "Configuration",
        FAILURE,
        &["cert_manager_type", "drawer", "95l1"],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_empty_or_unknown_stops() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    finds(&deployment, "Database", OK, &[]).await?;
    finds(&deployment, "Tables of this release", OK, &[]).await?;
    deployment
        .database
        .execute("UPDATE alembic_version SET version_num = 'd7e6a4d39fe4'")
        .await?;
    finds(
        &deployment,
        "Database",
        FAILURE,
        &["d7e6a4d39fe4", "does not know"],
    )
    .await?;

    let empty = TestDatabase::empty(Backend::Mariadb).await?;
    deployment.set("database", "connection", empty.url());
    finds(&deployment, "Database", FAILURE, &["magnum-db-manage upgrade"]).await?;
    let nowhere = "mysql+pymysql://magnum:secret@127.0.0.1:1/magnum";
    deployment.set("database", "connection", nowhere);
    let (result, details, code) = check(&deployment, "Database").await?;
    ensure!(
        result == FAILURE && code == 2 && !details.contains("secret"),
        "{details}"
    );
    Ok(())
}

/// Made by Magnum 22 itself: Heat's clusters, with a user of their own in Keystone.
#[tokio::test(flavor = "multi_thread")]
async fn leftovers_of_magnum_22_are_reported_before_a_change() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    let older = TestDatabase::empty(Backend::Mariadb).await?;
    deployment.set("database", "connection", older.url());
    let python = PythonMagnum::on(Release::Magnum22, deployment.config(), deployment.record.clone()).await?;
    python.manage(&["upgrade"]).await?;
    let mut rows = python.rows().await?;
    let heat = json!({"do": "make_template", "name": "heat", "driver": "k8s_fedora_coreos_v1"});
    let heat = rows.ask(heat).await??;
    for name in ["a", "b"] {
        let request = json!({"do": "make_cluster", "name": name, "template": heat, "trust_id": "39d9"});
        rows.ask(request).await??;
    }
    let fine = rows.ask(json!({"do": "make_template", "name": "fine"})).await??;
    rows.ask(json!({"do": "make_cluster", "name": "c", "template": fine}))
        .await??;
    older
        .execute("UPDATE cluster_template SET coe = 'swarm' WHERE name = 'heat'")
        .await?;
    deployment.set("certificates", "cert_manager_type", "x509keypair");

    finds(
        &deployment,
        "Database",
        FAILURE,
        &["c0f832afc4fd", "magnum-db-manage upgrade"],
    )
    .await?;
    finds(
        &deployment,
        "Tables of this release",
        FAILURE,
        &["create_conductor_tables"],
    )
    .await?;
    let words = ["2 clusters need the driver k8s_fedora_coreos_v1, which Magnum has removed"];
    finds(&deployment, "Drivers of clusters", FAILURE, &words).await?;
    let words = [
        "2 clusters have a user or a trust",
        "2 clusters are of the COE swarm",
    ];
    finds(&deployment, "Clusters of former releases", WARNING, &words).await?;
    finds(&deployment, "Certificates", OK, &[]).await?;
    // And where Magnum 22 kept them with another manager.
    deployment.set("certificates", "cert_manager_type", "barbican");
    let words = ["certificates of 3 clusters", "cert_manager_type = barbican"];
    finds(&deployment, "Certificates", FAILURE, &words).await
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_without_driver_certificate_or_conductor_are_counted() -> Result<()> {
    let (mut deployment, cluster) = sound(Backend::Postgres).await?;
    finds(&deployment, "Drivers of clusters", OK, &[]).await?;
    finds(&deployment, "Unfinished clusters", OK, &[]).await?;
    finds(&deployment, "Service records", OK, &[]).await?;
    let nowhere = deployment.folder.join("no-drivers");
    deployment.set("drivers", "driver_path", nowhere.display());
    finds(
        &deployment,
        "Drivers of clusters",
        FAILURE,
        &["1 cluster needs the driver scripted 1.0.0"],
    )
    .await?;
    // A running conductor that has it is as good.
    deployment.set(
        "drivers",
        "driver_path",
        magnum_tests::deployment::drivers().display(),
    );
    let conductor = deployment.conductor("one").await?;
    deployment.set("drivers", "driver_path", nowhere.display());
    finds(&deployment, "Drivers of clusters", OK, &[]).await?;
    drop(conductor);

    let broken = nowhere.join("broken");
    std::fs::create_dir_all(&broken)?;
    std::fs::write(broken.join("driver.toml"), "[driver]\nname = 3\n")?;
    finds(&deployment, "Driver folders", WARNING, &["broken"]).await?;

    deployment.set("certificates", "cert_manager_type", "x509keypair");
    deployment
        .database
        .execute("UPDATE cluster SET ca_cert_ref = NULL")
        .await?;
    finds(
        &deployment,
        "Certificates",
        WARNING,
        &["1 cluster has no certificates"],
    )
    .await?;
    let lost = "UPDATE cluster SET ca_cert_ref = uuid, magnum_cert_ref = uuid";
    deployment.database.execute(lost).await?;
    finds(
        &deployment,
        "Certificates",
        FAILURE,
        &["certificates of 1 cluster", "x509keypair"],
    )
    .await?;

    let stuck = format!(
        "INSERT INTO cluster (uuid, name, cluster_template_id, status, labels) \
         SELECT '00000000-0000-4000-8000-000000000001', 'stuck', cluster_template_id, 'CREATE_IN_PROGRESS', labels \
         FROM cluster WHERE uuid = '{cluster}'"
    );
    deployment.database.execute(&stuck).await?;
    finds(
        &deployment,
        "Unfinished clusters",
        WARNING,
        &["1 cluster is CREATE_IN_PROGRESS without a stack"],
    )
    .await?;
    let nameless = "INSERT INTO magnum_service (\"binary\", report_count) VALUES ('magnum-conductor', 0)";
    deployment.database.execute(nameless).await?;
    finds(&deployment, "Service records", WARNING, &["1 row without a host"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_exposed_or_foreign_journal_key_is_reported() -> Result<()> {
    let deployment = Deployment::on(
        TestDatabase::empty(Backend::Mariadb).await?,
        rabbitmq::vhost().await?,
    )
    .await?;
    finds(&deployment, "Journal key", OK, &[]).await?;
    // An operation that waits, sealed by a conductor that has stopped.
    let mut conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("small").await?;
    api.rest
        .create_cluster(&template, "one", json!({"scripted_create": "hang"}))
        .await?;
    conductor.kill().await?;
    finds(&deployment, "Journal key", OK, &[]).await?;

    let key = deployment.folder.join("journal.key");
    let text = std::fs::read_to_string(&key)?;
    std::fs::remove_file(&key)?;
    finds(
        &deployment,
        "Journal key",
        FAILURE,
        &["does not exist", "1 of 1 unfinished operations"],
    )
    .await?;
    ensure!(!key.exists(), "the look made a key");
    deployment.manage(&["upgrade"]).await?;
    finds(
        &deployment,
        "Journal key",
        FAILURE,
        &["1 of 1 unfinished operations were sealed with a key"],
    )
    .await?;
    std::fs::write(&key, text)?;
    finds(&deployment, "Journal key", OK, &[]).await?;
    let mut open = std::fs::metadata(&key)?.permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut open, 0o644);
    std::fs::set_permissions(&key, open)?;
    finds(&deployment, "Journal key", FAILURE, &["chmod 600"]).await
}
