//! The store in the real Barbican, shared with the real Magnum.

use std::time::Duration;

use anyhow::{Context as _, Result};
use magnum_common::error::ErrorClass;
use magnum_common::ids::OperationId;
use magnum_common::secret::Secret;
use magnum_conductor::certificates::Certificates;
use magnum_config::{CertManagerType, Settings};
use magnum_tests::openstack::{OpenStack, PASSWORD};
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::{TestDatabase, wait};
use reqwest::Method;
use serde_json::{Value, json};

use super::stores::{all, as_json};
use super::{Bench, admin, certificates, cluster, settings};
use magnum_tests::probe;

/// Certificates in Barbican; the database is never asked.
pub(super) async fn barbican(change: impl FnOnce(&mut Settings)) -> Result<Certificates> {
    let cloud = OpenStack::shared().await?;
    let mut settings = settings(CertManagerType::Barbican);
    cloud.configure(&mut settings);
    change(&mut settings);
    let db = probe::open(&TestDatabase::sqlite()?).await?;
    certificates(&settings, &db)
}

/// What of an operation is in Barbican: containers, secrets.
pub(super) async fn kept(operation: &OperationId) -> Result<(Vec<String>, Vec<String>)> {
    let magnum = OpenStack::shared().await?.log_in("magnum", "service").await?;
    let containers = magnum.names("containers", operation.as_str()).await?;
    Ok((containers, magnum.names("secrets", operation.as_str()).await?))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_is_kept_as_magnum_keeps_it_taken_over_and_removed_whole() -> Result<()> {
    let certificates = barbican(|_| {}).await?;
    let (cluster, operation) = (cluster("k8s"), OperationId::random());
    let refs = certificates.generate(&cluster, &admin(), &operation).await?;
    let (containers, secrets) = kept(&operation).await?;
    assert_eq!(
        (containers.len(), secrets.len()),
        (4, 12),
        "{containers:?} {secrets:?}"
    );
    assert!(containers.contains(&format!(
        "Magnum-Conductor (conductor-client of operation {operation})"
    )));
    assert!(secrets.contains(&format!(
        "Private Key Passphrase (etcd-ca of operation {operation})"
    )));
    for reference in all(&refs) {
        assert!(reference.starts_with("http://127.0.0.1:") && reference.contains("/v1/containers/"));
    }

    // Once more, all of it there; and by a conductor that knows nothing of the first.
    assert_eq!(certificates.generate(&cluster, &admin(), &operation).await?, refs);
    let other = barbican(|_| {}).await?;
    assert_eq!(other.generate(&cluster, &admin(), &operation).await?, refs);
    // Some of it there.
    certificates.remove(&refs.front_proxy_ca).await?;
    let again = other.generate(&cluster, &admin(), &operation).await?;
    assert_eq!(
        (&again.ca, &again.magnum, &again.etcd_ca),
        (&refs.ca, &refs.magnum, &refs.etcd_ca)
    );
    assert_ne!(again.front_proxy_ca, refs.front_proxy_ca);

    let bench = Bench::new()?;
    bench.write("ca.pem", &certificates.ca(&again.ca).await?)?;
    bench.write("client.pem", &certificates.ca(&again.magnum).await?)?;
    bench.openssl("verify -x509_strict -CAfile ca.pem client.pem")?;
    for reference in all(&again) {
        certificates.remove(reference).await?;
        // Gone already is as good.
        certificates.remove(reference).await?;
    }
    assert_eq!(kept(&operation).await?, (Vec::new(), Vec::new()));
    assert!(certificates.ca(&refs.ca).await.is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_of_a_killed_conductor_are_removed_by_the_next_attempt() -> Result<()> {
    let certificates = barbican(|_| {}).await?;
    let operation = OperationId::random();
    let magnum = OpenStack::shared().await?.log_in("magnum", "service").await?;
    let left = |name: &str| {
        json!({"name": format!("{name} (etcd-ca of operation {operation})"), "payload": "-----BEGIN",
               "payload_content_type": "text/plain"})
    };
    // Killed between two secrets, and once in the middle of a removal: a container whose secret is gone.
    for name in ["Certificate", "Private Key"] {
        magnum.barbican(Method::POST, "/secrets", left(name)).await?;
    }
    let lost = magnum
        .barbican(Method::POST, "/secrets", left("Certificate"))
        .await?;
    let lost = lost["secret_ref"].as_str().context("reference")?;
    let container = json!({"name": format!("k8s (kubernetes-ca of operation {operation})"), "type": "certificate",
                           "secret_refs": [{"name": "certificate", "secret_ref": lost}]});
    magnum.barbican(Method::POST, "/containers", container).await?;
    let path = lost.split("/v1").nth(1).context("path")?;
    magnum.barbican(Method::DELETE, path, Value::Null).await?;

    let refs = certificates
        .generate(&cluster("k8s"), &admin(), &operation)
        .await?;
    let (containers, secrets) = kept(&operation).await?;
    assert_eq!(
        (containers.len(), secrets.len()),
        (4, 12),
        "{containers:?} {secrets:?}"
    );
    for reference in all(&refs) {
        certificates.remove(reference).await?;
    }
    assert_eq!(kept(&operation).await?, (Vec::new(), Vec::new()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn conductors_that_store_at_once_come_to_the_same_containers() -> Result<()> {
    let (one, two) = (barbican(|_| {}).await?, barbican(|_| {}).await?);
    let (cluster, operation, context) = (cluster("k8s"), OperationId::random(), admin());
    let outcomes = tokio::join!(
        one.generate(&cluster, &context, &operation),
        two.generate(&cluster, &context, &operation),
    );
    // A loser may be told to come again, as it will by its operation's schedule; it may not come to another set.
    let refs = one.generate(&cluster, &context, &operation).await?;
    for outcome in [outcomes.0, outcomes.1] {
        match outcome {
            Ok(found) => assert_eq!(found.etcd_ca.is_empty(), refs.etcd_ca.is_empty()),
            Err(error) => assert!(!error.to_string().is_empty(), "{error}"),
        }
    }
    assert_eq!(two.generate(&cluster, &context, &operation).await?, refs);
    let (containers, secrets) = kept(&operation).await?;
    assert_eq!(
        (containers.len(), secrets.len()),
        (4, 12),
        "{containers:?} {secrets:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_magnum_reads_signs_and_deletes_ours_and_we_its() -> Result<()> {
    let cloud = OpenStack::shared().await?;
    let bench = Bench::new()?;
    bench.write(
        "magnum.conf",
        &format!(
            "[DEFAULT]\ntransport_url = fake://\n[certificates]\ncert_manager_type = barbican\n{}",
            cloud.config()
        ),
    )?;
    let path = bench.path("magnum.conf");
    let mut peer = OsloPeer::start("magnum_certificates.py", &[path.to_str().context("path")?]).await?;
    let certificates = barbican(|settings| {
        settings.certificates.key_type = magnum_config::KeyType::Rsa2048;
    })
    .await?;
    bench.openssl("req -new -newkey rsa:2048 -nodes -keyout node.key -out node.csr -subj /CN=node")?;
    let csr = bench.read("node.csr")?;

    let operation = OperationId::random();
    let ours = certificates
        .generate(&cluster("ours"), &admin(), &operation)
        .await?;
    let signed = peer
        .ask(json!({"do": "sign", "refs": as_json(&ours), "name": "ours", "project": "p", "type": "etcd", "csr": csr}))
        .await??;
    bench.write("node.pem", signed.as_str().context("PEM")?)?;
    bench.write("ca.pem", &certificates.ca(&ours.etcd_ca).await?)?;
    bench.openssl("verify -CAfile ca.pem node.pem")?;
    for reference in all(&ours) {
        peer.ask(json!({"do": "delete", "ref": reference, "project": "p"}))
            .await??;
    }
    assert_eq!(kept(&operation).await?, (Vec::new(), Vec::new()));

    let name = format!("theirs-{}", OperationId::random());
    let theirs = peer
        .ask(json!({"do": "generate", "name": name, "project": "p", "user": "u"}))
        .await??;
    let reference = theirs["ca"].as_str().context("reference")?;
    bench.write("node.pem", &certificates.sign(reference, &csr).await?)?;
    bench.write("ca.pem", &certificates.ca(reference).await?)?;
    bench.openssl("verify -CAfile ca.pem node.pem")?;
    for reference in theirs.as_object().context("references")?.values() {
        certificates
            .remove(reference.as_str().context("reference")?)
            .await?;
    }
    let magnum = cloud.log_in("magnum", "service").await?;
    assert!(magnum.names("containers", &name).await?.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_keystone_took_back_is_replaced() -> Result<()> {
    let cloud = OpenStack::shared().await?;
    let admins = cloud.log_in("admin", "admin").await?;
    let name = format!("magnum-{}", OperationId::random());
    let user = admins
        .keystone(
            Method::POST,
            "/users",
            json!({"user": {"name": name, "password": PASSWORD}}),
        )
        .await?;
    let user = user["user"]["id"].as_str().context("id")?.to_owned();
    let first = |answer: &Value, kind: &str| answer[kind][0]["id"].as_str().map(str::to_owned);
    let project = admins
        .keystone(Method::GET, "/projects?name=service", Value::Null)
        .await?;
    let role = admins
        .keystone(Method::GET, "/roles?name=admin", Value::Null)
        .await?;
    let (project, role) = (
        first(&project, "projects").context("project")?,
        first(&role, "roles").context("role")?,
    );
    admins
        .keystone(
            Method::PUT,
            &format!("/projects/{project}/users/{user}/roles/{role}"),
            Value::Null,
        )
        .await?;

    let certificates = barbican(|settings| settings.keystone_auth.username = Some(name)).await?;
    let operation = OperationId::random();
    let refs = certificates
        .generate(&cluster("k8s"), &admin(), &operation)
        .await?;
    // A disabled user loses all tokens; enabled again, it must ask for a new one.
    for enabled in [false, true] {
        admins
            .keystone(
                Method::PATCH,
                &format!("/users/{user}"),
                json!({"user": {"enabled": enabled}}),
            )
            .await?;
        if !enabled {
            let error = certificates.ca(&refs.ca).await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Permanent, "{error}");
            assert!(error.to_string().contains("[keystone_auth]"), "{error}");
        }
    }
    // What Keystone gives out within the second of a revocation counts as revoked too.
    let pem = wait::until("a new token", Duration::from_secs(30), async || {
        certificates.ca(&refs.ca).await
    })
    .await?;
    assert!(pem.contains("BEGIN CERTIFICATE"));
    for reference in all(&refs) {
        certificates.remove(reference).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_show_whether_a_retry_helps_and_never_the_password() -> Result<()> {
    let told = async |change: fn(&mut Settings)| -> Result<(ErrorClass, String)> {
        let certificates = barbican(change).await?;
        let outcome = certificates
            .generate(&cluster("k8s"), &admin(), &OperationId::random())
            .await;
        let error = outcome.unwrap_err();
        assert!(error.stored().is_empty());
        let text = format!("{error} {error:?}");
        assert!(
            text.starts_with("Failed to create certificates for Cluster: "),
            "{text}"
        );
        assert!(!text.contains("hunter2") && !text.contains(PASSWORD), "{text}");
        Ok((error.class(), text))
    };
    let (class, text) =
        told(|settings| settings.keystone_auth.auth_url = Some("http://127.0.0.1:1".into())).await?;
    assert_eq!(class, ErrorClass::Transient, "{text}");
    assert!(text.contains("Keystone is not available"), "{text}");
    let (class, text) =
        told(|settings| settings.keystone_auth.password = Some(Secret::new("hunter2"))).await?;
    assert_eq!(class, ErrorClass::Permanent, "{text}");
    assert!(text.contains("HTTP 401"), "{text}");
    let (class, text) = told(|settings| settings.keystone_auth.password = None).await?;
    assert_eq!(class, ErrorClass::Permanent, "{text}");
    assert!(text.contains("[keystone_auth] password"), "{text}");
    let (class, text) =
        told(|settings| settings.barbican_client.region_name = Some("Elsewhere".into())).await?;
    assert_eq!(class, ErrorClass::Permanent, "{text}");
    assert!(text.contains("[barbican_client] region_name"), "{text}");
    // A reader may not store secrets.
    let (class, text) = told(|settings| {
        settings.keystone_auth.username = Some("demo".into());
        settings.keystone_auth.project_name = Some("demo".into());
    })
    .await?;
    assert_eq!(class, ErrorClass::Permanent, "{text}");
    assert!(text.contains("HTTP 403"), "{text}");
    Ok(())
}
