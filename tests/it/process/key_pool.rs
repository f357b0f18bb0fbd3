//! The pool of keys made ahead of need, across processes. An idle conductor fills it, and operators see it. A conductor
//! that is killed between taking keys and storing what it made with them loses them: the next one finishes the operation
//! with others.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use diesel::{Connection as _, MysqlConnection, RunQueryDsl as _};
use magnum_conductor::certificates::key_pool::KeyPool;
use magnum_conductor::seal::JournalKey;
use magnum_db::Database;
use magnum_tests::deployment::Deployment;
use magnum_tests::process::Launch;
use magnum_tests::{Backend, wait};
use magnum_x509::key::{KeyKind, PrivateKey};
use serde_json::json;
use x509_cert::Certificate;
use x509_cert::der::{DecodePem as _, Encode as _};

use magnum_tests::probe;

const PATIENCE: Duration = Duration::from_secs(60);
const KEYS: u32 = 8;

async fn ids(db: &Database) -> Result<HashSet<String>> {
    let rows = db
        .run(|conn| probe::lines(conn, "SELECT CAST(id AS CHAR) AS line FROM conductor_key_pool"))
        .await?;
    Ok(rows.into_iter().collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_in_the_hands_of_a_killed_conductor_are_lost_and_never_used() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    deployment.set("certificates", "key_type", "rsa-2048");
    deployment.set("certificates", "key_pool_size", KEYS);
    let db = probe::open(&deployment.database).await?;
    let key = JournalKey::load(&deployment.folder.join("journal.key"))?;
    let pool = KeyPool::new(db.clone(), key.into(), KeyKind::Rsa(2048), KEYS);
    let mut known: HashMap<String, Vec<u8>> = HashMap::new();
    for _ in 0..KEYS {
        let before = ids(&db).await?;
        let key = PrivateKey::generate(KeyKind::Rsa(2048))?;
        ensure!(pool.add(&key).await?.is_some(), "the pool is full");
        for id in ids(&db).await?.difference(&before) {
            known.insert(id.clone(), key.public_key()?);
        }
    }
    // The pool is full, so that it makes none.
    let mut conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("small").await?;

    // Certificates can be read and not be stored.
    let mut lock = MysqlConnection::establish(&deployment.database.plain_url())?;
    diesel::sql_query("LOCK TABLES x509keypair READ").execute(&mut lock)?;
    let before = ids(&db).await?;
    let cluster = api.rest.create_cluster(&template, "c", json!({})).await?;
    let left = wait::until("the keys of three CAs to be taken", PATIENCE, async || {
        let left = ids(&db).await?;
        ensure!(left.len() == before.len() - 3, "{} left", left.len());
        Ok(left)
    })
    .await?;
    conductor.kill().await?;
    diesel::sql_query("UNLOCK TABLES").execute(&mut lock)?;
    let lost: HashSet<&String> = before.difference(&left).collect();

    let _next = deployment.conductor("two").await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    let certificates = db
        .run(|conn| probe::lines(conn, "SELECT certificate AS line FROM x509keypair"))
        .await?;
    let mut used = HashSet::new();
    for certificate in &certificates {
        let certificate = Certificate::from_pem(certificate)?;
        used.insert(certificate.tbs_certificate.subject_public_key_info.to_der()?);
    }
    ensure!(certificates.len() == 4 && used.len() == 4, "{} keys", used.len());
    let now = ids(&db).await?;
    for id in lost {
        let key = known
            .get(id)
            .with_context(|| format!("a key {id} of somebody else"))?;
        ensure!(!used.contains(key), "the lost key {id} is used");
        ensure!(!now.contains(id), "the lost key {id} is back");
    }
    let mut of_pool = known.iter().filter(|(id, _)| left.contains(*id));
    ensure!(
        of_pool.any(|(_, key)| used.contains(key)),
        "the next conductor took none of the pool"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_conductor_fills_the_pool_and_metrics_and_status_show_it() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set("certificates", "key_type", "rsa-2048");
    deployment.set("certificates", "key_pool_size", 3);
    let mut conductor = deployment.conductor("one").await?;
    wait::until("a full pool in the metrics", PATIENCE, async || {
        let metrics = deployment.metrics("one").await?;
        ensure!(metrics.contains("\nmagnum_key_pool_keys 3\n"), "{metrics}");
        Ok(())
    })
    .await?;
    let status = Launch::program("magnum-status")?
        .config(&deployment.config_file("status")?)
        .args(["upgrade", "check"])
        .finish()
        .await?;
    ensure!(
        status.stdout.contains("3 of 3 keys of type rsa-2048 are ready"),
        "{status:?}"
    );
    ensure!(conductor.terminate(PATIENCE).await?.success());
    Ok(())
}
