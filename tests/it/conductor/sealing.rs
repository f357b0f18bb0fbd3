//! Sealed values in the database: what somebody who may write there and has no key can do with them, and how those of the
//! release before are brought to the present form.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_common::ids::{ClusterUuid, OperationId};
use magnum_common::model::Cluster;
use magnum_common::secret::Secret;
use magnum_conductor::certificates::{self, Certificates};
use magnum_conductor::seal::{ALWAYS, Beginning, JournalKey};
use magnum_conductor::store::cluster_trusts::{self, TrustRow};
use magnum_conductor::store::objects::Table as _;
use magnum_conductor::store::resealing::{self, Resealed};
use magnum_conductor::store::sealing;
use magnum_conductor::trusts::{self, Trusts};
use magnum_config::{CertManagerType, KeyType, Settings, UnsealedKeys};
use magnum_db::{Database, DbError, now_ms};
use magnum_driver_api::ClusterTrusts as _;
use magnum_tests::deployment::Deployment;
use magnum_tests::{Backend, TestDatabase, on_every_database, probe};

/// A database with two clusters, and the key file of its conductors.
struct World {
    db: Database,
    folder: tempfile::TempDir,
    clusters: [ClusterUuid; 2],
}

impl World {
    async fn new(database: &TestDatabase) -> Result<Self> {
        let db = probe::migrated(database).await?;
        let clusters = [ClusterUuid::random(), ClusterUuid::random()];
        for uuid in clusters.clone() {
            let cluster = Cluster::new(uuid, "t".into());
            db.transaction(move |conn| cluster.insert(conn)).await?;
        }
        let folder = tempfile::tempdir()?;
        Ok(Self { db, folder, clusters })
    }

    /// The key as a conductor has it that has just started.
    fn key(&self) -> Result<JournalKey> {
        Ok(JournalKey::load_or_create(
            &self.folder.path().join("journal.key"),
        )?)
    }

    async fn refresh(&self, key: &JournalKey) -> Result<Vec<String>> {
        let key = key.clone();
        Ok(self
            .db
            .transaction(move |conn| sealing::refresh(conn, &key))
            .await?)
    }

    /// Each cluster gets a trust, with a password of its own.
    async fn put_trusts(&self, key: &JournalKey) -> Result<()> {
        for uuid in self.clusters.clone() {
            let row = TrustRow {
                sealed_password: trusts::seal(key, &uuid, &Secret::new(format!("password of {uuid}")))?,
                cluster_uuid: uuid,
                trustee_username: "u".to_owned(),
                trustee_user_id: Some("user".to_owned()),
                trust_id: Some("trust".to_owned()),
                failures: 0,
                created_ms: 0,
            };
            let added = self
                .db
                .transaction(move |conn| cluster_trusts::insert(conn, &row))
                .await?;
            ensure!(added);
        }
        Ok(())
    }

    /// The passwords that a conductor with this key can use, in the order of the clusters.
    async fn passwords(&self, key: &JournalKey) -> Result<[Option<String>; 2]> {
        let trusts = Trusts::new(&Settings::default(), self.db.clone(), Arc::new(key.clone()));
        let found = trusts.of(&self.clusters).await?;
        Ok(self.clusters.each_ref().map(|uuid| {
            let trust = found.get(uuid)?;
            Some(trust.trustee_password.expose().to_owned())
        }))
    }

    fn own_passwords(&self) -> [Option<String>; 2] {
        self.clusters
            .each_ref()
            .map(|uuid| Some(format!("password of {uuid}")))
    }

    /// The first cluster gets what is sealed for the second.
    async fn move_password(&self) -> Result<()> {
        let [to, from] = self.clusters.clone();
        let moved = self
            .db
            .transaction(move |conn| {
                use diesel::prelude::*;
                use magnum_db::schema::conductor_cluster_trust::dsl as t;
                let sealed: Vec<u8> = t::conductor_cluster_trust
                    .find(from.as_str())
                    .select(t::sealed_password)
                    .first(conn)?;
                Ok::<_, DbError>(
                    diesel::update(t::conductor_cluster_trust.find(to.as_str()))
                        .set(t::sealed_password.eq(sealed))
                        .execute(conn)?,
                )
            })
            .await?;
        ensure!(moved == 1);
        Ok(())
    }

    async fn reseal_trusts(&self, key: &JournalKey) -> Result<Resealed> {
        let key = key.clone();
        Ok(self
            .db
            .transaction(move |conn| resealing::trusts(conn, &key))
            .await?)
    }
}

on_every_database! {
    async fn passwords_of_the_release_before_stay_readable_and_cannot_be_moved_once_resealed(database: TestDatabase) -> Result<()> {
        let world = World::new(&database).await?;
        let key = world.key()?;
        world.put_trusts(&key).await?;
        ensure!(world.passwords(&key).await? == world.own_passwords());

        let begun = key.clone();
        world.db.transaction(move |conn| sealing::begin(conn, &begun, Beginning::BoundValues, Duration::from_secs(60))).await?;
        ensure!(world.passwords(&key).await? == world.own_passwords(), "rows from before");
        ensure!(world.reseal_trusts(&key).await? == Resealed { renewed: 2, refused: 0 });
        ensure!(world.reseal_trusts(&key).await? == Resealed::default(), "once");
        ensure!(world.passwords(&key).await? == world.own_passwords());

        world.move_password().await?;
        let [moved, own] = world.passwords(&key).await?;
        ensure!(moved.is_none() && own == world.own_passwords()[1], "{moved:?}");
        ensure!(world.reseal_trusts(&key).await?.refused == 1, "resealing makes it no better");
        Ok(())
    }

    async fn a_former_value_in_a_newer_row_is_refused_by_every_conductor(database: TestDatabase) -> Result<()> {
        let world = World::new(&database).await?;
        let key = world.key()?;
        let complete = key.clone();
        world.db.transaction(move |conn| sealing::complete(conn, &complete, Beginning::BoundValues)).await?;
        // As somebody puts them there who has kept values of the release before.
        world.put_trusts(&world.key()?).await?;
        ensure!(world.passwords(&key).await? == [None, None]);
        let another = world.key()?;
        ensure!(world.refresh(&another).await?.is_empty());
        ensure!(world.passwords(&another).await? == [None, None]);
        Ok(())
    }

    async fn a_time_without_the_keys_proof_counts_as_always_and_a_row_that_is_gone_is_reported(database: TestDatabase) -> Result<()> {
        let world = World::new(&database).await?;
        let key = world.key()?;
        let begun = key.clone();
        world.db.transaction(move |conn| sealing::begin(conn, &begun, Beginning::SealedKeys, Duration::ZERO)).await?;
        let since = key.begun().since(Beginning::SealedKeys).context("a time")?;
        let now = world.db.run(now_ms).await?;
        ensure!((now - 60_000..=now).contains(&since), "{since}, {now}");

        probe::execute(&world.db, "UPDATE conductor_sealing SET since_ms = since_ms + 86400000").await?;
        let another = world.key()?;
        let problems = world.refresh(&another).await?;
        ensure!(problems.len() == 1 && problems[0].contains("no valid proof"), "{problems:?}");
        ensure!(another.begun().since(Beginning::SealedKeys) == Some(ALWAYS));

        probe::execute(&world.db, "DELETE FROM conductor_sealing").await?;
        let problems = world.refresh(&key).await?;
        ensure!(problems.len() == 1 && problems[0].contains("is gone"), "{problems:?}");
        ensure!(key.begun().since(Beginning::SealedKeys) == Some(since), "it keeps to it");
        Ok(())
    }

    async fn a_plain_key_in_place_of_a_sealed_one_is_refused_by_its_row_and_option(database: TestDatabase) -> Result<()> {
        let world = World::new(&database).await?;
        let key = world.key()?;
        let mut settings = Settings::default();
        settings.certificates.cert_manager_type = CertManagerType::X509KeyPair;
        settings.certificates.key_type = KeyType::EcdsaP256;
        let plain = settings.clone();
        settings.certificates.seal_private_keys = true;
        let with = |settings: &Settings| Certificates::new(settings, world.db.clone(), key.clone());
        let cluster = Cluster::new(world.clusters[0].clone(), "t".into());
        let context = magnum_common::context::RequestContext::default();
        let old = with(&plain).generate(&cluster, &context, &OperationId::random()).await?;
        probe::execute(&world.db, "UPDATE x509keypair SET created_at = '2020-01-01 00:00:00'").await?;

        let begun = key.clone();
        world.db.transaction(move |conn| {
            sealing::begin(conn, &begun, Beginning::BoundValues, Duration::ZERO)?;
            sealing::begin(conn, &begun, Beginning::SealedKeys, Duration::ZERO)
        }).await?;
        let sealed = with(&settings);
        ensure!(sealed.ca(&old.ca).await.is_ok(), "it is older");
        // An attacker knows a key of his own making.
        let new = with(&plain).generate(&cluster, &context, &OperationId::random()).await?;
        probe::execute(&world.db, "UPDATE x509keypair SET created_at = '2100-01-01 00:00:00' WHERE created_at > '2021-01-01'").await?;
        let refused = sealed.ca(&new.ca).await.err().context("a refusal")?.to_string();
        ensure!(refused.contains(&new.ca) && refused.contains("[certificates] unsealed_keys"), "{refused}");
        let mut beside_python = settings.clone();
        beside_python.certificates.unsealed_keys = UnsealedKeys::Accept;
        ensure!(with(&beside_python).ca(&new.ca).await.is_ok());

        // Resealing takes what may be read, and leaves the rest.
        let (options, with_key) = (settings.clone(), key.clone());
        let reseal = |settings: Settings| {
            let (db, key, settings) = (world.db.clone(), with_key.clone(), Box::new(settings));
            async move { db.transaction(move |conn| certificates::reseal(conn, &settings, &key)).await }
        };
        ensure!(reseal(options).await? == Resealed { renewed: 4, refused: 4 });
        ensure!(reseal(beside_python).await? == Resealed { renewed: 4, refused: 0 });
        ensure!(sealed.ca(&new.ca).await.is_ok() && sealed.ca(&old.ca).await.is_ok());
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_was_never_used_needs_no_exceptions() -> Result<()> {
    let (database, used_database) = (TestDatabase::sqlite()?, TestDatabase::sqlite()?);
    let world = World::new(&database).await?;
    let key = world.key()?;
    let unused = key.clone();
    let is_unused = world
        .db
        .transaction(move |conn| sealing::complete_if_unused(conn, &unused))
        .await?;
    ensure!(is_unused && key.begun().since(Beginning::BoundValues) == Some(ALWAYS));

    let world = World::new(&used_database).await?;
    let former = world.key()?;
    world.put_trusts(&former).await?;
    let key = world.key()?;
    let used = key.clone();
    let is_unused = world
        .db
        .transaction(move |conn| sealing::complete_if_unused(conn, &used))
        .await?;
    ensure!(!is_unused && key.begun().since(Beginning::BoundValues).is_none());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_takes_two_runs_and_says_when_nothing_is_left() -> Result<()> {
    let deployment = Deployment::new(Backend::Mariadb).await?;
    let db = probe::open(&deployment.database).await?;
    let first = deployment.manage(&["reseal"]).await?;
    ensure!(first.contains("run this again then, in 60 minutes"), "{first}");
    ensure!(
        deployment
            .manage(&["reseal"])
            .await?
            .contains("run this again then")
    );

    // As an hour later; the time cannot be changed in the table.
    let key = JournalKey::load(&deployment.folder.join("journal.key"))?;
    let uuid = ClusterUuid::random();
    let cluster = Cluster::new(uuid.clone(), "t".into());
    let row = TrustRow {
        sealed_password: trusts::seal(&key, &uuid, &Secret::new("old".to_owned()))?,
        cluster_uuid: uuid,
        trustee_username: "u".to_owned(),
        trustee_user_id: None,
        trust_id: None,
        failures: 0,
        created_ms: 0,
    };
    probe::execute(&db, "DELETE FROM conductor_sealing").await?;
    db.transaction(move |conn| {
        cluster.insert(conn)?;
        cluster_trusts::insert(conn, &row)?;
        sealing::begin(conn, &key, Beginning::BoundValues, Duration::from_millis(1))
    })
    .await?;
    let second = deployment.manage(&["reseal"]).await?;
    ensure!(
        second.contains("sealed 1 passwords of clusters' users")
            && second.contains("everything is sealed as it should be"),
        "{second}"
    );
    let third = deployment.manage(&["reseal"]).await?;
    ensure!(
        third == "everything is sealed as it should be, and nothing else is accepted\n",
        "{third}"
    );
    Ok(())
}
