//! A MariaDB database that real Magnum made, with rows that its own objects wrote: our `magnum-db-manage upgrade` adds
//! our tables and nothing else, our conductor works on the clusters, and afterwards Magnum takes it back.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::builders::ConfigFile;
use magnum_tests::deployment::Deployment;
use magnum_tests::driver_record::DriverRecord;
use magnum_tests::process::Launch;
use magnum_tests::python_magnum::{ANNA, NORTH, PythonMagnum, Release, Served};
use magnum_tests::rabbitmq::{self, Vhost};
use magnum_tests::rest::Rest;
use magnum_tests::run_dir::run_dir;
use magnum_tests::{Backend, TestDatabase, mariadb};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(90);

const MAGNUM_TABLES: [&str; 8] = [
    "alembic_version",
    "cluster",
    "cluster_template",
    "federation",
    "magnum_service",
    "nodegroup",
    "quotas",
    "x509keypair",
];

/// A database, byte by byte: definitions and rows. `tables` empty: all of them.
async fn dump(database: &TestDatabase, tables: &[&str]) -> Result<String> {
    let address = database.address()?;
    let text = Launch::command("mariadb-dump", Command::new("mariadb-dump"))
        .args([
            "--no-defaults",
            "--skip-comments",
            "--order-by-primary",
            "--hex-blob",
        ])
        .args([
            format!("--host={}", address.ip()),
            format!("--port={}", address.port()),
            format!("--user={}", mariadb::USER),
            database.name.clone(),
        ])
        .args(tables)
        .env("MYSQL_PWD", mariadb::PASSWORD)
        .output()
        .await?;
    ensure!(
        text.contains("CREATE TABLE `cluster`"),
        "an empty dump proves nothing:\n{text}"
    );
    Ok(text)
}

/// Another database with the same content.
async fn copy(database: &TestDatabase) -> Result<TestDatabase> {
    let other = TestDatabase::empty(Backend::Mariadb).await?;
    other.execute(&dump(database, &[]).await?).await?;
    Ok(other)
}

/// A Magnum of its own on a database, without anybody beside it.
async fn magnum(release: Release, database: &TestDatabase, vhost: &Vhost) -> Result<PythonMagnum> {
    let folder = run_dir()?.folder("adoption")?;
    let config = ConfigFile::for_test(&database.url(), &vhost.transport_url(), &folder);
    PythonMagnum::on(release, &config, DriverRecord::new(folder)).await
}

/// Three clusters of one template and a row in each other table, as `release` leaves them. Returns their uuids.
async fn populate(python: &PythonMagnum, release: Release) -> Result<Vec<String>> {
    let mut rows = python.rows().await?;
    let is_22 = release == Release::Magnum22;
    let spoken = rows.ask(json!({"do": "release"})).await??;
    ensure!(
        spoken["Cluster"] == if is_22 { "1.23" } else { "1.24" },
        "{spoken}"
    );
    let template = rows
        .ask(json!({"do": "make_template", "name": "older"}))
        .await??;
    let mut clusters = Vec::new();
    for name in ["listed", "updated", "deleted"] {
        let mut request = json!({"do": "make_cluster", "name": name, "template": template});
        if is_22 {
            // The time of Heat: a user of its own in Keystone for each cluster.
            request["trust_id"] = json!("39d920ca");
            request["trustee_username"] = json!("trustee");
            request["trustee_password"] = json!("trustee-secret");
        }
        let made = rows.ask(request).await??;
        clusters.push(made.as_str().context("uuid")?.to_owned());
    }
    rows.ask(json!({"do": "make_others", "cluster": clusters[0]}))
        .await??;
    Ok(clusters)
}

fn names(listed: &Value) -> Result<Vec<&str>> {
    let all = listed["clusters"].as_array().context("clusters")?;
    Ok(all.iter().filter_map(|one| one["name"].as_str()).collect())
}

/// Our programs on the adopted database: they list, change, remove and add.
async fn ours_go_on(deployment: &Deployment, clusters: &[String]) -> Result<String> {
    let [listed, updated, deleted] = clusters else {
        anyhow::bail!("three clusters")
    };
    let mut conductor = deployment.conductor("ours").await?;
    let api = deployment.api().await?;
    let rest = api.rest.as_somebody(NORTH, ANNA);
    let all = rest.get("/clusters").await?.expect(200)?;
    ensure!(names(&all)? == ["listed", "updated", "deleted"], "{all}");
    let shown = rest.get(&format!("/clusters/{listed}")).await?.expect(200)?;
    ensure!(
        shown["labels"] == json!({"tier": "gold"}) && shown["node_count"] == 2,
        "{shown}"
    );
    ensure!(shown["health_status_reason"] == json!({"api": "ok"}), "{shown}");
    ensure!(
        shown["node_addresses"] == json!(["192.0.2.20", "192.0.2.21"]),
        "{shown}"
    );

    rest.resize(updated, 4).await?.expect(202)?;
    let shown = rest.wait_status(updated, "UPDATE_COMPLETE", PATIENCE).await?;
    ensure!(shown["node_count"] == 4, "{shown}");
    rest.delete(&format!("/clusters/{deleted}")).await?.expect(204)?;
    rest.wait_gone(deleted, PATIENCE).await?;
    let template = shown["cluster_template_id"].as_str().context("template")?;
    let added = rest.create_cluster(template, "added", json!({})).await?;
    rest.wait_status(&added, "CREATE_COMPLETE", PATIENCE).await?;
    deployment.settled(PATIENCE).await?;
    conductor.terminate(PATIENCE).await?;
    Ok(added)
}

/// Magnum on what our programs left behind: it takes the database as its own, and removes what ours had.
async fn python_goes_on(deployment: &Deployment, added: &str, clusters: &[String]) -> Result<()> {
    let python = PythonMagnum::beside(deployment).await?;
    let before = dump(&deployment.database, &[]).await?;
    let version = python.manage(&["version"]).await?;
    ensure!(version.contains("b3e1cf4a2d5e"), "{version}");
    python.manage(&["upgrade"]).await?;
    ensure!(
        dump(&deployment.database, &[]).await? == before,
        "Magnum's upgrade found something to do"
    );

    let mut rows = python.rows().await?;
    let ours = rows
        .ask(json!({"do": "certificates", "cluster": added}))
        .await??;
    let wanted = json!({
        "ca_cert_ref": "CN=added", "etcd_ca_cert_ref": "CN=added", "front_proxy_ca_cert_ref": "CN=added",
        "magnum_cert_ref": "O=system:masters,CN=admin",
    });
    ensure!(ours == wanted, "{ours}");
    let seen = rows.ask(json!({"do": "read"})).await??;
    let pairs = seen["key_pairs"].as_array().context("key pairs")?.len();
    ensure!(
        pairs == 3 * 4,
        "{pairs} key pairs for three clusters: those of the deleted one are gone with it"
    );

    let _conductor = python.conductor(&deployment.vhost).await?;
    let api = python.api(Served::Wsgi).await?;
    let rest: &Rest = &api.rest;
    let all = rest.get("/clusters").await?.expect(200)?;
    ensure!(names(&all)? == ["listed", "updated", "added"], "{all}");
    let shown = rest
        .get(&format!("/clusters/{}", clusters[1]))
        .await?
        .expect(200)?;
    ensure!(
        shown["status"] == "UPDATE_COMPLETE" && shown["node_count"] == 4,
        "{shown}"
    );
    let template = shown["cluster_template_id"].as_str().context("template")?;
    let theirs = rest.create_cluster(template, "theirs", json!({})).await?;
    rest.wait_status(&theirs, "CREATE_COMPLETE", PATIENCE).await?;
    for cluster in [&clusters[0], &clusters[1], added, &theirs] {
        rest.delete(&format!("/clusters/{cluster}")).await?.expect(204)?;
    }
    for cluster in [&clusters[0], &clusters[1], added, &theirs] {
        rest.wait_gone(cluster, PATIENCE).await?;
    }
    Ok(())
}

async fn there_and_back(database: TestDatabase, vhost: Vhost, clusters: &[String]) -> Result<()> {
    let tables = dump(&database, &MAGNUM_TABLES).await?;
    let deployment = Deployment::on(database, vhost).await?;
    ensure!(
        dump(&deployment.database, &MAGNUM_TABLES).await? == tables,
        "our upgrade changed a table of Magnum's"
    );
    let all = dump(&deployment.database, &[]).await?;
    let others = all.lines().filter_map(|line| line.strip_prefix("CREATE TABLE `"));
    let others = others.filter_map(|line| line.split('`').next());
    let strangers: Vec<_> = others
        .filter(|name| !MAGNUM_TABLES.contains(name) && *name != "__diesel_schema_migrations")
        .filter(|name| !name.starts_with("conductor_"))
        .collect();
    ensure!(strangers.is_empty(), "{strangers:?}");

    let added = ours_go_on(&deployment, clusters).await?;
    python_goes_on(&deployment, &added, clusters).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_magnum_23_is_taken_over_and_given_back() -> Result<()> {
    let (database, vhost) = (
        TestDatabase::empty(Backend::Mariadb).await?,
        rabbitmq::vhost().await?,
    );
    let python = magnum(Release::Magnum23, &database, &vhost).await?;
    python.manage(&["upgrade"]).await?;
    let clusters = populate(&python, Release::Magnum23).await?;
    there_and_back(database, vhost, &clusters).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_magnum_22_is_brought_to_the_head_as_magnum_23_does_it() -> Result<()> {
    let (database, vhost) = (
        TestDatabase::empty(Backend::Mariadb).await?,
        rabbitmq::vhost().await?,
    );
    let python = magnum(Release::Magnum22, &database, &vhost).await?;
    python.manage(&["upgrade"]).await?;
    let version = python.manage(&["version"]).await?;
    ensure!(version.contains("c0f832afc4fd"), "{version}");
    let clusters = populate(&python, Release::Magnum22).await?;

    let theirs = copy(&database).await?;
    magnum(Release::Magnum23, &theirs, &vhost)
        .await?
        .manage(&["upgrade"])
        .await?;
    let ours = copy(&database).await?;
    let folder = run_dir()?.folder("adoption")?;
    let config = ConfigFile::for_test(&ours.url(), "fake://", &folder).write(&folder.join("magnum.conf"))?;
    let said = Launch::program("magnum-db-manage")?
        .config(&config)
        .args(["upgrade"])
        .output()
        .await?;
    ensure!(
        said.contains("from revision c0f832afc4fd to b3e1cf4a2d5e"),
        "{said}"
    );
    ensure!(
        dump(&ours, &MAGNUM_TABLES).await? == dump(&theirs, &MAGNUM_TABLES).await?,
        "our two steps end elsewhere than Magnum's"
    );
    there_and_back(ours, vhost, &clusters).await
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_that_we_do_not_know_are_refused_by_name_and_stay_as_they_are() -> Result<()> {
    let database = TestDatabase::empty(Backend::Mariadb).await?;
    let python = magnum(Release::Magnum23, &database, &rabbitmq::vhost().await?).await?;
    let folder = run_dir()?.folder("adoption")?;
    let config =
        ConfigFile::for_test(&database.url(), "fake://", &folder).write(&folder.join("magnum.conf"))?;
    let ours = |args: &'static [&'static str]| {
        let config = config.clone();
        async move {
            Launch::program("magnum-db-manage")?
                .config(&config)
                .args(args)
                .finish()
                .await
        }
    };
    // An older release, a step between two releases, and one that comes after us.
    for (revision, is_real) in [
        ("7da8489d6a68", true),
        ("d7e6a4d39fe4", true),
        ("fedcba987654", false),
    ] {
        if is_real {
            python.manage(&["upgrade", revision]).await?;
        } else {
            let stamp = format!("UPDATE alembic_version SET version_num = '{revision}'");
            database.execute(&stamp).await?;
        }
        let before = dump(&database, &[]).await?;
        let refused = ours(&["upgrade"]).await?;
        ensure!(!refused.status.success(), "{revision} was taken");
        ensure!(
            refused.stderr.contains(revision) && refused.stderr.contains("Nothing was changed"),
            "{}",
            refused.stderr
        );
        let told = ours(&["version"]).await?;
        ensure!(told.stdout.contains(revision), "{}", told.stdout);
        ensure!(dump(&database, &[]).await? == before, "{revision} was touched");
    }
    Ok(())
}
