//! Where certificates are kept: repeatable, readable by the real Magnum and from it, private, and removed whole.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, Result};
use magnum_common::ids::OperationId;
use magnum_conductor::workflows::CertificateRefs;
use magnum_config::CertManagerType;
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::run_dir::run_dir;
use magnum_tests::{TestDatabase, on_every_database};
use serde_json::{Value, json};

use super::{Bench, admin, certificates, cluster, settings};
use magnum_tests::probe;

/// The real Magnum on this database.
pub(super) async fn magnum(bench: &Bench, database: &TestDatabase) -> Result<OsloPeer> {
    let config = format!(
        "[DEFAULT]\ntransport_url = fake://\n[database]\nconnection = {}\n[certificates]\ncert_manager_type = x509keypair\n",
        database.url()
    );
    bench.write("magnum.conf", &config)?;
    let path = bench.path("magnum.conf");
    OsloPeer::start("magnum_certificates.py", &[path.to_str().context("path")?]).await
}

pub(super) fn all(refs: &CertificateRefs) -> [&str; 4] {
    [&refs.ca, &refs.magnum, &refs.etcd_ca, &refs.front_proxy_ca]
}

pub(super) fn as_json(refs: &CertificateRefs) -> Value {
    json!({"ca": refs.ca, "magnum": refs.magnum, "etcd_ca": refs.etcd_ca, "front_proxy_ca": refs.front_proxy_ca})
}

async fn rows(db: &magnum_db::Database) -> Result<Vec<String>> {
    Ok(db
        .run(|conn| probe::lines(conn, "SELECT uuid AS line FROM x509keypair ORDER BY uuid"))
        .await?)
}

on_every_database! {
    /// The conductor was killed in the middle, and another one begins again.
    async fn repeated_generation_takes_over_stored_certificates(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let certificates = certificates(&settings(CertManagerType::X509KeyPair), &db)?;
        let (cluster, operation) = (cluster("k8s"), OperationId::random());
        let refs = certificates.generate(&cluster, &admin(), &operation).await?;
        let mut expected: Vec<String> = all(&refs).into_iter().map(str::to_owned).collect();
        expected.sort_unstable();
        assert_eq!(rows(&db).await?, expected, "four rows, nothing else");
        let ca = certificates.ca(&refs.ca).await?;

        // All of it there.
        assert_eq!(certificates.generate(&cluster, &admin(), &operation).await?, refs);
        // Some of it there: what is missing is made, the rest stays.
        certificates.remove(&refs.etcd_ca).await?;
        certificates.remove(&refs.magnum).await?;
        assert_eq!(certificates.generate(&cluster, &admin(), &operation).await?, refs);
        assert_eq!(rows(&db).await?, expected);
        assert_eq!(certificates.ca(&refs.ca).await?, ca);
        // The CA is a new one: the client certificate of the old one goes.
        certificates.remove(&refs.ca).await?;
        assert_eq!(certificates.generate(&cluster, &admin(), &operation).await?, refs);
        let bench = Bench::new()?;
        bench.write("ca.pem", &certificates.ca(&refs.ca).await?)?;
        bench.write("client.pem", &certificates.ca(&refs.magnum).await?)?;
        bench.openssl("verify -CAfile ca.pem client.pem")?;

        // Another operation has its own.
        let other = certificates.generate(&cluster, &admin(), &OperationId::random()).await?;
        assert!(all(&other).iter().all(|reference| !all(&refs).contains(reference)));
        for reference in all(&refs).into_iter().chain(all(&other)) {
            certificates.remove(reference).await?;
            // Gone already is as good.
            certificates.remove(reference).await?;
        }
        assert!(rows(&db).await?.is_empty());
        Ok(())
    }

    async fn conductors_that_generate_at_once_come_to_the_same_set(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let (cluster, operation) = (cluster("k8s"), OperationId::random());
        let settings = settings(CertManagerType::X509KeyPair);
        let (one, two) = (certificates(&settings, &db)?, certificates(&settings, &db)?);
        let context = admin();
        let (one, two) = tokio::join!(
            one.generate(&cluster, &context, &operation),
            two.generate(&cluster, &context, &operation),
        );
        assert_eq!(one?, two?);
        assert_eq!(rows(&db).await?.len(), 4);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_magnum_reads_our_rows_and_signs_with_them_for_the_clusters_owner() -> Result<()> {
    let bench = Bench::new()?;
    let database = TestDatabase::empty(magnum_tests::Backend::Mariadb).await?;
    let db = probe::migrated(&database).await?;
    let mut settings = settings(CertManagerType::X509KeyPair);
    settings.certificates.key_type = magnum_config::KeyType::Rsa2048;
    let certificates = certificates(&settings, &db)?;
    // An administrator asks, the cluster is somebody else's.
    let refs = certificates
        .generate(&cluster("k8s"), &admin(), &OperationId::random())
        .await?;

    let mut peer = magnum(&bench, &database).await?;
    for reference in all(&refs) {
        let got = peer
            .ask(json!({"do": "get", "ref": reference, "project": "owner-project"}))
            .await??;
        bench.write("their.key", got["key"].as_str().context("key")?)?;
        bench.write("their.pem", got["certificate"].as_str().context("certificate")?)?;
        assert_eq!(
            bench.openssl("pkey -in their.key -pubout")?,
            bench.openssl("x509 -in their.pem -noout -pubkey")?
        );
    }
    bench.openssl("req -new -newkey rsa:2048 -nodes -keyout node.key -out node.csr -subj /CN=node")?;
    let csr = bench.read("node.csr")?;
    for (kind, ca) in [
        ("kubernetes", &refs.ca),
        ("etcd", &refs.etcd_ca),
        ("front-proxy", &refs.front_proxy_ca),
    ] {
        let signed = peer
            .ask(
                json!({"do": "sign", "refs": as_json(&refs), "name": "k8s", "project": "owner-project",
                        "type": kind, "csr": csr}),
            )
            .await??;
        bench.write("node.pem", signed.as_str().context("PEM")?)?;
        bench.write("ca.pem", &certificates.ca(ca).await?)?;
        bench.openssl("verify -CAfile ca.pem node.pem").context(kind)?;
    }
    peer.ask(json!({"do": "delete", "ref": refs.ca, "project": "owner-project"}))
        .await??;
    assert_eq!(rows(&db).await?.len(), 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn we_read_rows_of_the_real_magnum_and_sign_with_them() -> Result<()> {
    let bench = Bench::new()?;
    let database = TestDatabase::empty(magnum_tests::Backend::Mariadb).await?;
    let db = probe::migrated(&database).await?;
    let mut peer = magnum(&bench, &database).await?;
    let refs = peer
        .ask(json!({"do": "generate", "name": "theirs", "project": "p", "user": "u"}))
        .await??;
    let certificates = certificates(&settings(CertManagerType::X509KeyPair), &db)?;
    let reference = refs["etcd_ca"].as_str().context("reference")?;
    bench.openssl("req -new -newkey rsa:2048 -nodes -keyout node.key -out node.csr -subj /CN=node")?;
    bench.write(
        "node.pem",
        &certificates.sign(reference, &bench.read("node.csr")?).await?,
    )?;
    bench.write("ca.pem", &certificates.ca(reference).await?)?;
    bench.openssl("verify -CAfile ca.pem node.pem")?;
    Ok(())
}

on_every_database! {
    async fn sealed_keys_are_unreadable_in_the_database_and_both_forms_are_read(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let plain = settings(CertManagerType::X509KeyPair);
        let mut sealed = plain.clone();
        sealed.certificates.seal_private_keys = true;
        let (plain, sealed) = (certificates(&plain, &db)?, certificates(&sealed, &db)?);
        let old = plain.generate(&cluster("old"), &admin(), &OperationId::random()).await?;
        let new = sealed.generate(&cluster("new"), &admin(), &OperationId::random()).await?;
        let keys = |reference: String| {
            let query = format!("SELECT private_key AS line FROM x509keypair WHERE uuid = '{reference}'");
            db.run(move |conn| probe::lines(conn, &query))
        };
        assert!(keys(old.ca.clone()).await?[0].contains("ENCRYPTED PRIVATE KEY"));
        assert!(keys(new.ca.clone()).await?[0].starts_with("magnum-sealed-v1:"));
        let bench = Bench::new()?;
        bench.openssl("req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout k -out csr -subj /CN=n")?;
        let csr = bench.read("csr")?;
        for certificates in [plain, sealed] {
            for reference in [&old.ca, &new.ca] {
                bench.write("n.pem", &certificates.sign(reference, &csr).await?)?;
                bench.write("ca.pem", &certificates.ca(reference).await?)?;
                bench.openssl("verify -x509_strict -CAfile ca.pem n.pem")?;
            }
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_private_complete_and_taken_over() -> Result<()> {
    let db = probe::open(&TestDatabase::sqlite()?).await?;
    let run = run_dir()?;
    let folder = run.folder("certificates")?.join(run.unique("local"));
    let mut settings = settings(CertManagerType::Local);
    settings.certificates.storage_path = folder.clone();
    let certificates = certificates(&settings, &db)?;
    let operation = OperationId::random();
    let refs = certificates
        .generate(&cluster("k8s"), &admin(), &operation)
        .await?;
    let names = || -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    };
    let mut expected = Vec::new();
    for reference in all(&refs) {
        for ending in ["crt", "key", "pass"] {
            expected.push(format!("{reference}.{ending}"));
            let file = folder.join(format!("{reference}.{ending}"));
            assert_eq!(fs::metadata(&file)?.permissions().mode() & 0o777, 0o600);
        }
    }
    expected.sort_unstable();
    assert_eq!(names()?, expected);

    // Killed before the certificate was in its place: the key beside it is replaced.
    let torn = folder.join(format!("{}.crt", refs.etcd_ca));
    fs::rename(&torn, folder.join(format!("{}.crt.new", refs.etcd_ca)))?;
    assert_eq!(
        certificates
            .generate(&cluster("k8s"), &admin(), &operation)
            .await?,
        refs
    );
    assert_eq!(names()?, expected);
    let bench = Bench::new()?;
    bench.openssl(
        "req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout k -out csr -subj /CN=n",
    )?;
    bench.write(
        "n.pem",
        &certificates.sign(&refs.etcd_ca, &bench.read("csr")?).await?,
    )?;
    bench.write("ca.pem", &certificates.ca(&refs.etcd_ca).await?)?;
    bench.openssl("verify -x509_strict -CAfile ca.pem n.pem")?;

    // A reference is a name in this folder and nothing else.
    for path in ["../../../etc/passwd", "/etc/passwd", ""] {
        assert!(certificates.ca(path).await.is_err());
        certificates.remove(path).await?;
    }
    for reference in all(&refs) {
        certificates.remove(reference).await?;
    }
    assert!(names()?.is_empty());
    Ok(())
}
