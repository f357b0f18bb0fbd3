//! Keystone and Barbican behind TLS: the CA that is named is trusted and no other, unless nothing is to be checked; a
//! client certificate is shown where one is asked for.

use anyhow::{Result, ensure};
use magnum_common::error::ErrorClass;
use magnum_common::ids::OperationId;
use magnum_common::secret::Secret;
use magnum_config::Settings;
use magnum_openstack::{Credentials, Session};
use magnum_tests::certificates::Authority;
use magnum_tests::openstack::OpenStack;
use magnum_tests::ports::free_port;
use magnum_tests::tls_front::TlsFront;
use tokio::runtime;

use super::barbican::{barbican, kept};
use super::stores::all;
use super::{admin, cluster};

/// Both services behind TLS, with certificates of one authority.
struct Scene {
    authority: Authority,
    keystone: TlsFront,
    region: String,
    _barbican: TlsFront,
}

impl Scene {
    async fn set(with_client_certificates: bool) -> Result<Self> {
        let cloud = OpenStack::shared().await?;
        let authority = Authority::new()?;
        let own = authority.sign("services", "IP:127.0.0.1")?;
        let certificate = authority.certificate();
        let clients = with_client_certificates.then_some(certificate.as_path());
        let keystone = TlsFront::start(cloud.keystone_address(), &own, clients).await?;
        let barbican = TlsFront::start(cloud.barbican_address(), &own, clients).await?;
        let region = cloud
            .region_via(&format!("https://{}", barbican.address()))
            .await?;
        Ok(Self {
            authority,
            keystone,
            region,
            _barbican: barbican,
        })
    }

    fn configure(&self, settings: &mut Settings) {
        settings.keystone_auth.auth_url = Some(format!("https://{}/v3", self.keystone.address()));
        settings.barbican_client.region_name = Some(self.region.clone());
        settings.keystone_auth.cafile = Some(self.authority.certificate());
    }

    /// A set is made, read and removed.
    async fn works(&self, change: impl FnOnce(&mut Settings)) -> Result<()> {
        let certificates = barbican(|settings| {
            self.configure(settings);
            change(settings);
        })
        .await?;
        let operation = OperationId::random();
        let refs = certificates
            .generate(&cluster("k8s"), &admin(), &operation)
            .await?;
        for reference in all(&refs) {
            certificates.ca(reference).await?;
            certificates.remove(reference).await?;
        }
        ensure!(kept(&operation).await? == (Vec::new(), Vec::new()));
        Ok(())
    }

    /// Nothing is made, and these words say why.
    async fn fails(
        &self,
        class: ErrorClass,
        words: &[&str],
        change: impl FnOnce(&mut Settings),
    ) -> Result<()> {
        let certificates = barbican(|settings| {
            self.configure(settings);
            change(settings);
        })
        .await?;
        let outcome = certificates
            .generate(&cluster("k8s"), &admin(), &OperationId::random())
            .await;
        let error = outcome.err().map(|error| (error.class(), error.to_string()));
        let Some((seen, text)) = error else {
            anyhow::bail!("it works");
        };
        ensure!(seen == class, "{seen:?}: {text}");
        for word in words {
            ensure!(text.contains(word), "{word:?} is not in {text:?}");
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ca_of_cafile_is_trusted_and_no_other() -> Result<()> {
    let scene = Scene::set(false).await?;
    scene.works(|_| {}).await?;
    let other = Authority::new()?;
    let wrong = ["Keystone", "certificate", "[keystone_auth] cafile"];
    scene
        .fails(ErrorClass::Transient, &wrong, |settings| {
            settings.keystone_auth.cafile = Some(other.certificate());
        })
        .await?;
    // The system's own CAs do not know it either.
    scene
        .fails(ErrorClass::Transient, &wrong, |settings| {
            settings.keystone_auth.cafile = None
        })
        .await?;
    // Keystone is found by another name than its certificate is for.
    let port = scene.keystone.address().port();
    scene
        .fails(ErrorClass::Transient, &["Keystone", "auth_url"], |settings| {
            settings.keystone_auth.auth_url = Some(format!("https://localhost:{port}/v3"));
        })
        .await?;
    let missing = ["[keystone_auth] cafile", "/nowhere/ca.pem"];
    scene
        .fails(ErrorClass::Permanent, &missing, |settings| {
            settings.keystone_auth.cafile = Some("/nowhere/ca.pem".into());
        })
        .await?;
    scene
        .works(|settings| {
            settings.keystone_auth.cafile = None;
            settings.keystone_auth.insecure = true;
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn barbicans_certificate_is_checked_as_keystones_is() -> Result<()> {
    let scene = Scene::set(false).await?;
    let cloud = OpenStack::shared().await?;
    let strange = Authority::new()?;
    let front = TlsFront::start(
        cloud.barbican_address(),
        &strange.sign("b", "IP:127.0.0.1")?,
        None,
    )
    .await?;
    let region = cloud.region_via(&format!("https://{}", front.address())).await?;
    let words = ["no TLS connection to Barbican", "[keystone_auth] cafile"];
    scene
        .fails(ErrorClass::Transient, &words, |settings| {
            settings.barbican_client.region_name = Some(region);
        })
        .await?;
    // https in the catalog, and no TLS at that address.
    let plain = cloud
        .region_via(&format!("https://{}", cloud.barbican_address()))
        .await?;
    scene
        .fails(
            ErrorClass::Transient,
            &["Barbican", "does not speak TLS"],
            |settings| {
                settings.barbican_client.region_name = Some(plain);
            },
        )
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_is_shown_where_one_is_asked_for() -> Result<()> {
    let scene = Scene::set(true).await?;
    let client = scene.authority.sign("magnum", "DNS:magnum")?;
    let strange = Authority::new()?.sign("stranger", "DNS:stranger")?;
    scene
        .works(|settings| {
            settings.keystone_auth.certfile = Some(client.certificate.clone());
            settings.keystone_auth.keyfile = Some(client.key.clone());
        })
        .await?;
    // One file may hold both.
    let both = client.certificate.with_extension("both");
    let parts = [std::fs::read(&client.certificate)?, std::fs::read(&client.key)?];
    std::fs::write(&both, parts.concat())?;
    scene
        .works(|settings| settings.keystone_auth.certfile = Some(both))
        .await?;
    let words = ["Keystone", "[keystone_auth] certfile"];
    scene.fails(ErrorClass::Transient, &words, |_| {}).await?;
    scene
        .fails(ErrorClass::Transient, &words, |settings| {
            settings.keystone_auth.certfile = Some(strange.certificate);
            settings.keystone_auth.keyfile = Some(strange.key);
        })
        .await
}

/// When the refusal arrives, the request may be on its way or not: whoever gets it has to be told the same.
///
/// The client has one thread, and the server others. With more of them, a request that is handed to a connection in the moment in
/// which that ends may stay in tokio's channel between the two (its receiver empties the channel once, and the sender's handle
/// keeps it): it fails at the limit of the exchange, which is another error.
#[test]
fn every_refusal_of_a_missing_certificate_names_the_option() -> Result<()> {
    let authority = Authority::new()?;
    let own = authority.sign("services", "IP:127.0.0.1")?;
    let certificate = authority.certificate();
    // Nobody gets as far as to what is behind it.
    let behind = ([127, 0, 0, 1], free_port()?).into();
    let server = runtime::Builder::new_multi_thread().enable_all().build()?;
    let client = runtime::Builder::new_current_thread().enable_all().build()?;
    let front = server.block_on(TlsFront::start(behind, &own, Some(&certificate)))?;
    let mut settings = Settings::default();
    let section = &mut settings.keystone_auth;
    section.auth_url = Some(format!("https://{}/v3", front.address()));
    section.cafile = Some(certificate);
    section.username = Some("magnum".to_owned());
    section.password = Some(Secret::new("secret"));
    section.project_name = Some("service".to_owned());
    for attempt in 0..200 {
        let session = Session::new(Credentials::new(&settings)?)?;
        let Err(error) = client.block_on(session.domain_id()) else {
            anyhow::bail!("it works");
        };
        let text = error.to_string();
        ensure!(text.contains("[keystone_auth] certfile"), "{attempt}: {text}");
        ensure!(error.class() == ErrorClass::Transient, "{attempt}: {text}");
    }
    Ok(())
}
