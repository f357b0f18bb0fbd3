//! The pool of keys made ahead of need: each key goes to one taker only, and creates take theirs from it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, ensure};
use diesel::prelude::*;
use magnum_common::ids::OperationId;
use magnum_conductor::certificates::key_pool::KeyPool;
use magnum_conductor::operations::Signals;
use magnum_conductor::periodic::key_pool::KeyPoolFilling;
use magnum_conductor::seal::JournalKey;
use magnum_config::{CertManagerType, KeyType};
use magnum_db::Database;
use magnum_db::schema::conductor_key_pool::dsl as k;
use magnum_tests::run_dir::run_dir;
use magnum_tests::{TestDatabase, on_every_database};
use magnum_x509::key::{KeyKind, PrivateKey};
use tokio::sync::Barrier;
use x509_cert::Certificate;
use x509_cert::der::{DecodePem as _, Encode as _};

use super::stores::all;
use super::{admin, certificates, cluster, settings};
use magnum_tests::probe;

/// Keys that are made quickly: what is kept of them and how is the same for all kinds.
const QUICK: KeyKind = KeyKind::EcdsaP256;
const RSA: KeyKind = KeyKind::Rsa(2048);

/// The key file of [`super::certificates`].
fn journal_key() -> Result<Arc<JournalKey>> {
    let file = run_dir()?.path().join("certificates.key");
    Ok(Arc::new(JournalKey::load_or_create(&file)?))
}

fn pool(db: &Database, kind: KeyKind, size: u32) -> Result<KeyPool> {
    Ok(KeyPool::new(db.clone(), journal_key()?, kind, size))
}

/// Puts so many keys in and returns their public halves.
async fn add(pool: &KeyPool, count: u32) -> Result<HashSet<Vec<u8>>> {
    let mut added = HashSet::new();
    for _ in 0..count {
        let key = PrivateKey::generate(pool.kind())?;
        ensure!(pool.add(&key).await?.is_some(), "the pool is full");
        added.insert(key.public_key()?);
    }
    Ok(added)
}

async fn lines(db: &Database, query: &'static str) -> Result<Vec<String>> {
    Ok(db.run(move |conn| probe::lines(conn, query)).await?)
}

on_every_database! {
    async fn a_key_goes_to_one_of_many_takers_only(database: TestDatabase) -> Result<()> {
        const KEYS: u32 = 60;
        const TAKERS: usize = 6;
        let db = probe::migrated(&database).await?;
        let one = pool(&db, QUICK, KEYS)?;
        // Another conductor, with connections of its own.
        let two = pool(&probe::open(&database).await?, QUICK, KEYS)?;
        let added = add(&one, KEYS).await?;
        let together = Arc::new(Barrier::new(2 * TAKERS));
        let takers: Vec<_> = (0..2 * TAKERS)
            .map(|number| {
                let pool = if number % 2 == 0 { one.clone() } else { two.clone() };
                let together = Arc::clone(&together);
                tokio::spawn(async move {
                    together.wait().await;
                    let mut taken = Vec::new();
                    while let Some(key) = pool.take().await {
                        taken.push(key.public_key()?);
                    }
                    anyhow::Ok(taken)
                })
            })
            .collect();
        let mut taken = Vec::new();
        for taker in takers {
            taken.extend(taker.await??);
        }
        ensure!(taken.len() == KEYS as usize, "{} of {KEYS} keys were taken", taken.len());
        ensure!(taken.into_iter().collect::<HashSet<_>>() == added, "a key was taken twice");
        ensure!(one.depth().await? == 0);
        Ok(())
    }

    async fn the_pool_is_bounded_and_size_0_turns_it_off(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let (on, off) = (pool(&db, QUICK, 2)?, pool(&db, QUICK, 0)?);
        add(&on, 2).await?;
        ensure!(on.add(&PrivateKey::generate(QUICK)?).await?.is_none(), "a third one");
        ensure!(on.depth().await? == 2);
        ensure!(off.take().await.is_none() && off.add(&PrivateKey::generate(QUICK)?).await?.is_none());
        ensure!(on.depth().await? == 2);
        Ok(())
    }

    async fn a_key_of_another_type_or_of_yesterday_is_not_taken(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let (ec, rsa) = (pool(&db, QUICK, 9)?, pool(&db, RSA, 9)?);
        add(&ec, 2).await?;
        ensure!(rsa.depth().await? == 0 && rsa.take().await.is_none());
        ensure!(ec.take().await.is_some(), "it is still there");

        probe::execute(&db, "UPDATE conductor_key_pool SET created_ms = created_ms - 86400001").await?;
        ensure!(ec.depth().await? == 0 && ec.take().await.is_none());
        add(&ec, 1).await?;
        // Whichever type is configured, the old ones of all go.
        ensure!(rsa.discard_old().await? == 1);
        ensure!(ec.depth().await? == 1);
        Ok(())
    }

    async fn a_key_is_sealed_and_discarded_once_no_line_of_the_key_file_opens_it(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let folder = run_dir()?.folder("key-pool")?;
        let file = |name: &str| folder.join(run_dir().map_or_else(|_| name.to_owned(), |run| run.unique(name)));
        let (old_file, new_file, both_file) = (file("old"), file("new"), file("both"));
        let old = Arc::new(JournalKey::load_or_create(&old_file)?);
        let new = Arc::new(JournalKey::load_or_create(&new_file)?);
        let text = [std::fs::read_to_string(&new_file)?, std::fs::read_to_string(&old_file)?].concat();
        JournalKey::create_if_missing(&both_file)?;
        std::fs::write(&both_file, text)?;
        let both = Arc::new(JournalKey::load(&both_file)?);
        let with = |key: &Arc<JournalKey>| KeyPool::new(db.clone(), Arc::clone(key), QUICK, 9);

        let added = add(&with(&old), 2).await?;
        let sealed: Vec<Vec<u8>> = db.run(|conn| Ok(k::conductor_key_pool.select(k::sealed).load(conn)?)).await?;
        ensure!(sealed.len() == 2);
        // A private key in clear has its public half beside it.
        for public in added.iter().filter_map(|key| key.get(key.len() - 32..)) {
            ensure!(!sealed.iter().any(|sealed| sealed.windows(32).any(|part| part == public)));
        }
        ensure!(with(&both).take().await.is_some(), "the old line still opens");
        let mine = add(&with(&new), 1).await?;
        let taken = with(&new).take().await.context("the one that it can open")?;
        ensure!(mine.contains(&taken.public_key()?));
        ensure!(with(&new).take().await.is_none());
        ensure!(with(&new).depth().await? == 0, "what nobody can open is gone");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_takes_its_keys_from_the_pool_and_a_repeated_step_takes_none() -> Result<()> {
    let db = probe::migrated(&TestDatabase::sqlite()?).await?;
    let mut settings = settings(CertManagerType::X509KeyPair);
    settings.certificates.key_type = KeyType::Rsa2048;
    let certificates = certificates(&settings, &db)?;
    let pool = certificates.key_pool();
    let ahead = add(pool, 6).await?;
    let operation = OperationId::random();
    let refs = certificates
        .generate(&cluster("k8s"), &admin(), &operation)
        .await?;
    let mut used = HashSet::new();
    for reference in all(&refs) {
        let certificate = Certificate::from_pem(certificates.ca(reference).await?)?;
        used.insert(certificate.tbs_certificate.subject_public_key_info.to_der()?);
    }
    ensure!(used.len() == 4 && used.is_subset(&ahead), "a key was made");
    ensure!(pool.depth().await? == 2);

    let again = certificates
        .generate(&cluster("k8s"), &admin(), &operation)
        .await?;
    ensure!(again == refs && pool.depth().await? == 2);

    // Two are left for four certificates: the rest is made.
    certificates
        .generate(&cluster("other"), &admin(), &OperationId::random())
        .await?;
    ensure!(pool.depth().await? == 0);
    ensure!(lines(&db, "SELECT uuid AS line FROM x509keypair").await?.len() == 8);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_conductor_fills_the_pool_and_a_busy_one_does_not() -> Result<()> {
    let db = probe::migrated(&TestDatabase::sqlite()?).await?;
    let (pool, signals) = (pool(&db, QUICK, 5)?, Arc::new(Signals::default()));
    let filling = KeyPoolFilling::new(pool.clone(), Arc::clone(&signals));
    signals.running.store(1, Ordering::Relaxed);
    filling.pass().await?;
    ensure!(pool.depth().await? == 0, "an operation runs");
    signals.running.store(0, Ordering::Relaxed);
    signals.messages.fetch_add(1000, Ordering::Relaxed);
    filling.pass().await?;
    ensure!(pool.depth().await? == 0, "many messages came since the last pass");
    signals.messages.fetch_add(10, Ordering::Relaxed);
    filling.pass().await?;
    ensure!(pool.depth().await? == 5);
    ensure!(pool.take().await.is_some());
    filling.pass().await?;
    ensure!(pool.depth().await? == 5, "only what is missing is made");
    Ok(())
}
