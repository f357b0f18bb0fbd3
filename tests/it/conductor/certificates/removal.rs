//! Certificates of clusters that are gone: forgotten with the cluster, removed as soon as their store allows it.

use std::fs;

use anyhow::{Context as _, Result};
use magnum_common::ids::{ClusterUuid, ConductorId, OperationId};
use magnum_common::secret::Secret;
use magnum_conductor::periodic::certificate_removal::CertificateRemoval;
use magnum_conductor::store::certificate_removals::{MadeBy, queue};
use magnum_conductor::store::{certificate_removals, clusters};
use magnum_config::{CertManagerType, Settings};
use magnum_db::Database;
use magnum_tests::run_dir::run_dir;
use magnum_tests::{TestDatabase, on_every_database};
use tokio_util::sync::CancellationToken;

use super::stores::all;
use super::{admin, certificates, cluster, settings};
use magnum_tests::probe;

async fn waiting(db: &Database) -> Result<i64> {
    Ok(db.run(queue::depth).await?)
}

on_every_database! {
    async fn rows_go_with_the_cluster_and_the_rest_is_removed_when_its_store_allows_it(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let run = run_dir()?;
        let folder = run.folder("removal")?.join(run.unique("files"));
        let mut local = settings(CertManagerType::Local);
        local.certificates.storage_path = folder.clone();
        let local = certificates(&local, &db)?;
        let table = certificates(&settings(CertManagerType::X509KeyPair), &db)?;

        // Two of one store, two of the other, as after a change of the option.
        let mut cluster = cluster("k8s");
        let context = admin();
        let rows = table.generate(&cluster, &context, &OperationId::random()).await?;
        let files = local.generate(&cluster, &context, &OperationId::random()).await?;
        cluster.ca_cert_ref = Some(rows.ca.clone());
        cluster.magnum_cert_ref = Some(rows.magnum.clone());
        cluster.etcd_ca_cert_ref = Some(files.etcd_ca.clone());
        cluster.front_proxy_ca_cert_ref = Some(files.front_proxy_ca.clone());
        let uuid = cluster.uuid.clone();
        let gone = uuid.clone();
        let written = cluster.clone();
        db.transaction(move |conn| clusters::insert(conn, std::slice::from_ref(&written))).await?;
        // Twice: the second time there is nothing left to forget.
        for _ in 0..2 {
            let gone = gone.clone();
            db.transaction(move |conn| clusters::remove(conn, &gone)).await?;
        }
        assert!(table.ca(&rows.ca).await.is_err());
        assert!(table.ca(&rows.etcd_ca).await.is_ok(), "not this cluster's");
        assert_eq!(waiting(&db).await?, 2);

        // The store is away: its folder is a file.
        let away = folder.with_extension("away");
        fs::rename(&folder, &away)?;
        fs::write(&folder, "")?;
        let removal = CertificateRemoval { db: db.clone(), me: ConductorId::new("one"), certificates: local.clone() };
        assert_eq!(removal.pass().await?, 0);
        assert_eq!(waiting(&db).await?, 2);
        let told = db.run(|conn| probe::lines(conn,
            "SELECT reason AS line FROM conductor_certificate_removal WHERE failures = 1")).await?;
        assert_eq!(told.len(), 2);
        assert!(told[0].contains(folder.to_str().context("path")?), "{told:?}");
        // Not again at once.
        fs::remove_file(&folder)?;
        fs::rename(&away, &folder)?;
        assert_eq!(removal.pass().await?, 0);
        database.execute("UPDATE conductor_certificate_removal SET next_attempt_ms = 0").await?;
        assert_eq!(removal.pass().await?, 2);
        assert_eq!(waiting(&db).await?, 0);
        for reference in [&files.etcd_ca, &files.front_proxy_ca] {
            assert!(local.ca(reference).await.is_err());
        }
        assert!(local.ca(&files.ca).await.is_ok(), "not forgotten");
        for reference in all(&files) {
            local.remove(reference).await?;
        }
        Ok(())
    }

    async fn claimed_removal_belongs_to_one_conductor_until_the_claim_expires(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let references: Vec<String> = (0..30).map(|number| format!("http://b/v1/containers/{number}")).collect();
        let cluster = ClusterUuid::random();
        db.transaction(move |conn| certificate_removals::remove(conn, &cluster, &references)).await?;
        let claim = async |me: &str| {
            let me = ConductorId::new(me);
            db.transaction(move |conn| queue::claim(conn, &me, std::time::Duration::from_secs(60), 20)).await
        };
        let (one, two) = tokio::join!(claim("one"), claim("two"));
        let (one, two) = (one?, two?);
        let mut ids: Vec<i64> = one.iter().chain(&two).map(|due| due.id).collect();
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count, "nothing is claimed twice");
        let mut rest = claim("three").await?;
        rest.extend(claim("three").await?);
        assert_eq!(count + rest.iter().filter(|due| !ids.contains(&due.id)).count(), 30);
        // Dead: its claims end.
        database.execute("UPDATE conductor_certificate_removal SET next_attempt_ms = 0").await?;
        assert_eq!(claim("four").await?.len(), 20);
        Ok(())
    }

    async fn certificates_are_removed_by_their_own_manager_and_kept_without_it(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let run = run_dir()?;
        let folder = run.folder("removal")?.join(run.unique("files"));
        let mut local = settings(CertManagerType::Local);
        local.certificates.storage_path = folder.clone();
        let context = admin();
        let (files, gone) = (certificates(&local, &db)?, OperationId::random());
        let kept = files.generate(&cluster("k8s"), &context, &OperationId::random()).await?;
        let made = files.generate(&cluster("given up"), &context, &gone).await?;
        let (uuid, reference) = (ClusterUuid::random(), kept.ca.clone());
        let of = MadeBy { operation: gone, name: "given up".to_owned() };
        db.transaction(move |conn| {
            certificate_removals::remove(conn, &uuid, &[reference.clone(), "https://b/v1/containers/1".to_owned()])?;
            certificate_removals::remove_made_by(conn, &uuid, &of)
        })
        .await?;
        // A conductor that keeps certificates in files sees them first, and is exchanged for one that does not.
        let own = CertManagerType::Local;
        db.transaction(move |conn| queue::assign_managers(conn, own)).await?;
        database.execute("UPDATE conductor_certificate_removal SET next_attempt_ms = 0").await?;
        let mut table = settings(CertManagerType::X509KeyPair);
        table.certificates.storage_path = folder.with_extension("elsewhere");
        let removal = |settings: &Settings| -> Result<CertificateRemoval> {
            Ok(CertificateRemoval {
                db: db.clone(),
                me: ConductorId::new("one"),
                certificates: certificates(settings, &db)?,
            })
        };
        assert_eq!(removal(&table)?.pass().await?, 0);
        let told = db.run(|conn| probe::lines(conn,
            "SELECT reason AS line FROM conductor_certificate_removal ORDER BY id")).await?;
        assert_eq!(told.len(), 3);
        assert!(told[0].contains("certificate manager local") && told[0].contains("storage_path"), "{told:?}");
        assert!(told[1].contains("certificate manager barbican") && told[1].contains("auth_url"), "{told:?}");
        assert!(told[2].contains("certificate manager local"), "{told:?}");
        for reference in [&kept.ca, &made.ca] {
            assert!(files.ca(reference).await.is_ok(), "removed by somebody else");
        }
        // Where the folder is, its files go, whatever keeps certificates now.
        database.execute("UPDATE conductor_certificate_removal SET next_attempt_ms = 0").await?;
        table.certificates.storage_path = folder.clone();
        assert_eq!(removal(&table)?.pass().await?, 2);
        assert_eq!(waiting(&db).await?, 1, "Barbican's");
        assert!(files.ca(&kept.ca).await.is_err() && files.ca(&kept.magnum).await.is_ok());
        for reference in all(&made) {
            assert!(files.ca(reference).await.is_err());
        }
        Ok(())
    }

    async fn removals_of_a_stopped_conductor_are_due_at_once(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        // A store that takes a connection and says nothing.
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let mut away = settings(CertManagerType::Barbican);
        away.keystone_auth.auth_url = Some(format!("http://{}/v3", silent.local_addr()?));
        away.keystone_auth.username = Some("magnum".to_owned());
        away.keystone_auth.password = Some(Secret::new("p"));
        away.keystone_auth.project_name = Some("service".to_owned());
        let references: Vec<String> = (0..3).map(|number| format!(
            "http://b/v1/containers/6a1f7e0c-0000-4000-8000-00000000000{number}")).collect();
        let uuid = ClusterUuid::random();
        db.transaction(move |conn| certificate_removals::remove(conn, &uuid, &references)).await?;
        let removal = CertificateRemoval {
            db: db.clone(),
            me: ConductorId::new("one"),
            certificates: certificates(&away, &db)?,
        };
        let stop = CancellationToken::new();
        let running = tokio::spawn(removal.run(stop.clone()));
        // It is in the middle of the first.
        let _connection = silent.accept().await?;
        let claim = async || {
            let me = ConductorId::new("two");
            let term = std::time::Duration::from_secs(60);
            db.transaction(move |conn| queue::claim(conn, &me, term, 20)).await
        };
        assert_eq!(claim().await?.len(), 0, "claimed by the first");
        stop.cancel();
        running.await?;
        let due = claim().await?;
        assert_eq!(due.len(), 3);
        assert!(due.iter().all(|one| one.failures == 0 && one.manager == Some(CertManagerType::Barbican)), "{due:?}");
        Ok(())
    }
}
