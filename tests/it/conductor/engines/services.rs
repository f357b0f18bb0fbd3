//! What the conductor offers to engines, with the real Keystone and Barbican: sessions, and clusters' CA material.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use magnum_common::context::{Caller, RequestContext};
use magnum_common::ids::{ClusterUuid, OperationId, RequestId, TemplateUuid};
use magnum_common::model::Cluster;
use magnum_common::secret::Secret;
use magnum_conductor::certificates::Certificates;
use magnum_conductor::seal::JournalKey;
use magnum_config::{CertManagerType, KeyType, Settings};
use magnum_driver_api::{Cloud, ClusterCertificates as _, DriverError};
use magnum_openstack::{Endpoint, ServiceError, ServiceRequest};
use magnum_tests::TestDatabase;
use magnum_tests::openstack::OpenStack;
use magnum_tests::run_dir::run_dir;

use magnum_tests::probe;

fn barbican() -> Endpoint {
    Endpoint::new("Barbican", &["key-manager"], "barbican_client", "publicURL", None)
}

fn context(token: Option<&str>) -> RequestContext {
    let caller = Caller {
        auth_token: token.map(Secret::new),
        ..Caller::default()
    };
    RequestContext::for_caller(&caller, &RequestId::random())
}

#[tokio::test(flavor = "multi_thread")]
async fn services_are_asked_as_the_service_user_and_as_the_user_of_the_call() -> Result<()> {
    let openstack = OpenStack::shared().await?;
    let mut settings = Settings::default();
    openstack.configure(&mut settings);
    let (cloud, endpoint) = (Cloud::new(&settings), barbican());
    let request = ServiceRequest::get(&endpoint, "/v1/secrets", &[]);
    let as_service = cloud.service()?.request(&request).await?.json()?;
    ensure!(as_service["total"].is_u64(), "{as_service}");

    let admin = openstack.log_in("admin", "admin").await?;
    let context_of_admin = context(Some(admin.token()));
    let user = cloud.user(&context_of_admin).await?;
    let as_user = user.request(&request).await?.json()?;
    ensure!(as_user["total"].is_u64(), "{as_user}");

    let lapsed = cloud
        .user(&context(Some("no-such-token")))
        .await
        .err()
        .context("refused")?;
    ensure!(matches!(lapsed, ServiceError::Refused { .. }), "{lapsed}");
    ensure!(!lapsed.to_string().contains("no-such-token"), "{lapsed}");
    let without = cloud.user(&context(None)).await.err().context("refused")?;
    ensure!(matches!(DriverError::from(without), DriverError::Permanent(_)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_service_user_the_first_use_names_the_option() -> Result<()> {
    let cloud = Cloud::new(&Settings::default());
    let told = cloud.service().err().context("refused")?.to_string();
    ensure!(told.contains("[keystone_auth]"), "{told}");
    Ok(())
}

/// Certificates in the store `kind`, with keys that are made fast.
async fn certificates(kind: CertManagerType) -> Result<Certificates> {
    let mut settings = Settings::default();
    settings.certificates.cert_manager_type = kind;
    settings.certificates.key_type = KeyType::EcdsaP256;
    let folder = run_dir()?.folder("certificates-of-a-driver")?;
    settings.certificates.storage_path = folder.join("stored");
    OpenStack::shared().await?.configure(&mut settings);
    let key = JournalKey::load_or_create(&folder.join("journal.key"))?;
    let db = probe::migrated(&TestDatabase::sqlite()?).await?;
    Ok(Certificates::new(&settings, db, key))
}

/// What `openssl` makes of a text.
fn openssl(arguments: &[&str], input: &str) -> Result<String> {
    let mut child = Command::new("openssl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child
        .stdin
        .take()
        .context("its input")?
        .write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "openssl {arguments:?}");
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clusters_material_is_opened_from_every_store_and_kept_by_its_references() -> Result<()> {
    for kind in [
        CertManagerType::X509KeyPair,
        CertManagerType::Local,
        CertManagerType::Barbican,
    ] {
        let certificates = certificates(kind).await?;
        let mut cluster = Cluster::new(ClusterUuid::random(), TemplateUuid::random());
        cluster.project_id = Some("p".into());
        ensure!(certificates.open(&cluster).await?.is_none(), "it has none yet");
        let refs = certificates
            .generate(&cluster, &context(None), &OperationId::random())
            .await?;
        let reference = refs.ca.clone();
        refs.apply(&mut cluster);
        let material = certificates.open(&cluster).await?.context("it has some now")?;
        ensure!(material.ca == certificates.ca(&reference).await?, "{kind:?}");
        ensure!(
            material.client.starts_with("-----BEGIN CERTIFICATE-----"),
            "{kind:?}"
        );
        ensure!(material.client != material.ca, "{kind:?}");
        let key = material.key.expose();
        ensure!(
            key.starts_with("-----BEGIN PRIVATE KEY-----"),
            "{kind:?}: {}",
            &key[..30]
        );
        // Two halves of one pair.
        let of_client = openssl(&["x509", "-noout", "-pubkey"], &material.client)?;
        ensure!(openssl(&["pkey", "-pubout"], key)? == of_client, "{kind:?}");
        ensure!(!format!("{material:?}").contains("PRIVATE"), "{kind:?}");

        certificates.remove(&reference).await?;
        let kept = certificates.open(&cluster).await?.context("it was opened")?;
        ensure!(kept == material, "{kind:?}");
        // As after a rotation: other references, which nobody has opened.
        let refs = certificates
            .generate(&cluster, &context(None), &OperationId::random())
            .await?;
        certificates.remove(&refs.ca).await?;
        refs.apply(&mut cluster);
        let lost = certificates.open(&cluster).await.err().context("it is gone")?;
        ensure!(matches!(lost, DriverError::Permanent(_)), "{kind:?}: {lost:?}");
    }
    Ok(())
}
