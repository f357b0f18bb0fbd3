//! Users and trusts of clusters, in the real Keystone.

use std::sync::Arc;

use anyhow::{Result, ensure};
use magnum_common::context::RequestContext;
use magnum_common::ids::ConductorId;
use magnum_common::model::Cluster;
use magnum_common::secret::Secret;
use magnum_conductor::periodic::trust_removal::TrustRemoval;
use magnum_conductor::seal::JournalKey;
use magnum_conductor::store::cluster_trusts::{self, TrustRow};
use magnum_conductor::store::clusters;
use magnum_conductor::store::objects::Table as _;
use magnum_conductor::trusts::{self, Trusts};
use magnum_config::Settings;
use magnum_db::{Database, DbError};
use magnum_driver_api::{ClusterTrust, ClusterTrusts as _, DriverError};
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::keystone_people::{People, Person};
use magnum_tests::openstack::OpenStack;
use magnum_tests::trustee_domain::TrusteeDomain;
use magnum_tests::{TestDatabase, on_every_database, probe};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A domain, somebody who has clusters, and a database with one of them.
struct World {
    people: People,
    owner: Person,
    domain: TrusteeDomain,
    /// Between us and Keystone.
    line: ChaosProxy,
    db: Database,
    key: Arc<JournalKey>,
    cluster: Cluster,
    trusts: Trusts,
    _key_folder: TempDir,
}

impl World {
    async fn new(database: &TestDatabase) -> Result<Self> {
        let openstack = OpenStack::shared().await?;
        let people = People::of(openstack).await?;
        let owner = people.person(&["member", "reader"]).await?;
        let domain = TrusteeDomain::new(&people).await?;
        let line = ChaosProxy::start(openstack.keystone_address()).await?;
        let mut settings = Settings::default();
        openstack.configure(&mut settings);
        domain.configure(&mut settings);
        settings.keystone_auth.auth_url = Some(format!("http://{}/v3", line.address()));
        let key_folder = tempfile::tempdir()?;
        let key = Arc::new(JournalKey::load_or_create(
            &key_folder.path().join("journal.key"),
        )?);
        let db = probe::migrated(database).await?;
        let uuid = uuid::Uuid::new_v4().to_string();
        let mut cluster = Cluster::new(uuid.into(), "t-1".into());
        cluster.project_id = Some(owner.project_id.clone());
        let inserted = cluster.clone();
        db.transaction(move |conn| inserted.insert(conn)).await?;
        Ok(Self {
            people,
            owner,
            domain,
            line,
            trusts: Trusts::new(&settings, db.clone(), Arc::clone(&key)),
            db,
            key,
            cluster,
            _key_folder: key_folder,
        })
    }

    async fn context(&self) -> Result<RequestContext> {
        let token = self.people.token(&self.owner).await?;
        let values = json!({"auth_token": token, "user_id": self.owner.id, "project_id": self.owner.project_id,
                            "roles": ["member", "reader"]});
        Ok(RequestContext::from_map(
            values.as_object().cloned().unwrap_or_default(),
        ))
    }

    async fn ensure(&self) -> Result<ClusterTrust, DriverError> {
        let context = self.context().await.expect("a token");
        self.trusts.ensure(&self.cluster, &context).await
    }

    /// Whether the trustee can act in the owner's project, with the roles that it got.
    async fn roles_of(&self, trust: &ClusterTrust) -> Result<Vec<String>> {
        let identity = json!({"methods": ["password"], "password": {"user": {
            "id": trust.trustee_user_id, "password": trust.trustee_password.expose()}}});
        let auth =
            json!({"auth": {"identity": identity, "scope": {"OS-TRUST:trust": {"id": trust.trust_id}}}});
        let url = format!("{}/auth/tokens", OpenStack::shared().await?.keystone_url());
        let reply = reqwest::Client::new().post(url).json(&auth).send().await?;
        ensure!(reply.status().is_success(), "{}", reply.status());
        let token: Value = reply.json().await?;
        ensure!(
            token["token"]["project"]["id"] == self.owner.project_id,
            "{token}"
        );
        let roles = token["token"]["roles"].as_array().into_iter().flatten();
        let mut names: Vec<String> = roles
            .filter_map(|role| role["name"].as_str().map(str::to_owned))
            .collect();
        names.sort();
        Ok(names)
    }

    async fn delete_cluster(&self) -> Result<()> {
        let uuid = self.cluster.uuid.clone();
        self.db
            .transaction(move |conn| clusters::remove(conn, &uuid))
            .await?;
        Ok(())
    }

    async fn rows(&self) -> Result<Vec<TrustRow>, DbError> {
        let uuid = self.cluster.uuid.clone();
        self.db
            .run(move |conn| cluster_trusts::find_many(conn, &[uuid.as_str()]))
            .await
    }

    fn removal(&self, conductor: &str) -> TrustRemoval {
        TrustRemoval {
            db: self.db.clone(),
            me: ConductorId::for_host(conductor),
            trusts: self.trusts.clone(),
        }
    }

    /// Writes the row as an attempt leaves it that crashed early, and returns it.
    async fn begun(&self, trustee_user_id: Option<String>) -> Result<TrustRow> {
        let row = TrustRow {
            cluster_uuid: self.cluster.uuid.clone(),
            trustee_username: format!("{}_{}", self.cluster.uuid, self.owner.project_id),
            trustee_user_id,
            trust_id: None,
            sealed_password: trusts::seal(&self.key, &self.cluster.uuid, &Secret::new("Begun4before"))?,
            failures: 0,
            created_ms: 0,
        };
        let added = row.clone();
        self.db
            .transaction(move |conn| cluster_trusts::insert(conn, &added))
            .await?;
        Ok(row)
    }
}

on_every_database! {
    async fn a_cluster_gets_one_user_and_one_trust_however_often_it_is_asked_for(database: TestDatabase) -> Result<()> {
        let world = World::new(&database).await?;
        let trust = world.ensure().await?;
        ensure!(world.roles_of(&trust).await? == ["member", "reader"]);
        let name = format!("{}_{}", world.cluster.uuid, world.owner.project_id);
        ensure!(world.domain.users().await? == [(name, trust.trustee_user_id.clone())]);
        ensure!(world.ensure().await? == trust);
        ensure!(world.domain.trusts_in(&trust.trustee_user_id).await?.len() == 1);
        let read = world.trusts.of(std::slice::from_ref(&world.cluster.uuid)).await?;
        ensure!(read.get(&world.cluster.uuid) == Some(&trust));
        Ok(())
    }

    async fn the_user_and_the_trust_of_a_deleted_cluster_are_removed(database: TestDatabase) -> Result<()> {
        let world = World::new(&database).await?;
        let trust = world.ensure().await?;
        world.removal("one").pass().await?;
        ensure!(world.rows().await?.len() == 1, "not before the cluster is gone");
        world.delete_cluster().await?;
        world.removal("one").pass().await?;
        ensure!(world.rows().await?.is_empty());
        ensure!(world.domain.users().await?.is_empty());
        ensure!(world.domain.trusts_in(&trust.trustee_user_id).await?.is_empty());
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_after_a_crash_uses_the_user_and_the_trust_of_the_one_before() -> Result<()> {
    let database = TestDatabase::sqlite()?;
    let world = World::new(&database).await?;
    // The user was made, and nobody wrote down that it was.
    let name = format!("{}_{}", world.cluster.uuid, world.owner.project_id);
    let user = json!({"user": {"name": name, "password": "lost", "domain_id": world.domain.id}});
    world
        .people
        .administrate(reqwest::Method::POST, "/users", user)
        .await?;
    world.begun(None).await?;
    let trust = world.ensure().await?;
    ensure!(world.domain.users().await? == [(name, trust.trustee_user_id.clone())]);
    ensure!(trust.trustee_password.expose() == "Begun4before");
    ensure!(world.roles_of(&trust).await? == ["member", "reader"]);

    // So was the trust.
    let uuid = world.cluster.uuid.clone();
    world
        .db
        .run(move |conn| cluster_trusts::removed(conn, &uuid))
        .await?;
    world.begun(Some(trust.trustee_user_id.clone())).await?;
    let again = world.ensure().await?;
    ensure!(again.trust_id == trust.trust_id, "{again:?} {trust:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_that_nobody_wrote_down_is_removed_by_its_name() -> Result<()> {
    let database = TestDatabase::sqlite()?;
    let world = World::new(&database).await?;
    let row = world.begun(None).await?;
    let user =
        json!({"user": {"name": row.trustee_username, "password": "lost", "domain_id": world.domain.id}});
    world
        .people
        .administrate(reqwest::Method::POST, "/users", user)
        .await?;
    world.delete_cluster().await?;
    world.removal("one").pass().await?;
    ensure!(world.domain.users().await?.is_empty() && world.rows().await?.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_keystones_outage_stops_is_made_later() -> Result<()> {
    let database = TestDatabase::sqlite()?;
    let world = World::new(&database).await?;
    world.ensure().await?;
    world.delete_cluster().await?;
    world.line.cut();
    world.removal("one").pass().await?;
    let rows = world.rows().await?;
    ensure!(rows.len() == 1 && rows[0].failures == 1, "{rows:?}");
    world.line.restore();
    let due = "UPDATE conductor_cluster_trust SET next_attempt_ms = 1";
    probe::execute(&world.db, due).await?;
    world.removal("two").pass().await?;
    ensure!(world.rows().await?.is_empty() && world.domain.users().await?.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_permanent_an_outage_is_not_and_neither_shows_a_secret() -> Result<()> {
    let database = TestDatabase::sqlite()?;
    let world = World::new(&database).await?;
    world.line.cut();
    let away = world.ensure().await.unwrap_err();
    ensure!(matches!(&away, DriverError::Transient(_)), "{away:?}");
    world.line.restore();
    let mut context = world.context().await?;
    context.set("auth_token", json!("expired-token"));
    let refused = world.trusts.ensure(&world.cluster, &context).await.unwrap_err();
    let begins = format!(
        "Failed to create trustee or trust for Cluster: {}: Keystone refuses",
        world.cluster.uuid
    );
    ensure!(
        matches!(&refused, DriverError::Permanent(why) if why.told().starts_with(&begins)),
        "{refused:?}"
    );
    ensure!(!refused.to_string().contains("expired-token"), "{refused}");
    ensure!(
        world.ensure().await.is_ok(),
        "the user of the refused attempt is used"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trust_whose_password_is_lost_is_removed_all_the_same() -> Result<()> {
    let database = TestDatabase::sqlite()?;
    let world = World::new(&database).await?;
    let trust = world.ensure().await?;
    world.delete_cluster().await?;
    let lost = "UPDATE conductor_cluster_trust SET sealed_password = X'00'";
    probe::execute(&world.db, lost).await?;
    world.removal("one").pass().await?;
    ensure!(world.domain.trusts_in(&trust.trustee_user_id).await?.is_empty());
    ensure!(world.rows().await?.is_empty() && world.domain.users().await?.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trust_whose_password_cannot_be_opened_counts_as_none() -> Result<()> {
    let database = TestDatabase::sqlite()?;
    let world = World::new(&database).await?;
    world.ensure().await?;
    let folder = tempfile::tempdir()?;
    let other = JournalKey::load_or_create(&folder.path().join("journal.key"))?;
    let trusts = Trusts::new(&Settings::default(), world.db.clone(), Arc::new(other));
    let found = trusts.of(std::slice::from_ref(&world.cluster.uuid)).await?;
    ensure!(found.is_empty(), "{found:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_option_is_named() -> Result<()> {
    let database = TestDatabase::sqlite()?;
    let world = World::new(&database).await?;
    let trusts = Trusts::new(&Settings::default(), world.db.clone(), Arc::clone(&world.key));
    let error = trusts
        .ensure(&world.cluster, &world.context().await?)
        .await
        .unwrap_err();
    ensure!(
        error
            .reason()
            .whole()
            .contains("[trust] trustee_domain_name is not set"),
        "{error:?}"
    );
    ensure!(!error.to_string().contains("[trust]"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_gone_gets_no_trust() -> Result<()> {
    let database = TestDatabase::sqlite()?;
    let world = World::new(&database).await?;
    world.delete_cluster().await?;
    let error = world.ensure().await.unwrap_err();
    ensure!(matches!(error, DriverError::Cancelled), "{error:?}");
    ensure!(world.domain.users().await?.is_empty());
    Ok(())
}
