//! TLS towards Keystone and the services, from the options of the section that has the service user. Rustls with AWS-LC,
//! as everywhere.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use magnum_common::error::with_causes;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, ClientConfig, RootCertStore};

use super::ServiceError;
use magnum_tls::{CertificatePolicy, WithoutAuthorities};

/// TLS towards Keystone and the services: CAs, and our client certificate.
#[derive(Debug, Clone)]
pub struct Trust {
    /// The section of `magnum.conf` that this was read from.
    pub section: &'static str,
    /// CAs that sign server certificates; by default the system's.
    pub cafile: Option<PathBuf>,
    /// Client certificate, in PEM.
    pub certfile: Option<PathBuf>,
    /// Private key of the client certificate, in PEM.
    pub keyfile: Option<PathBuf>,
    /// Disables server certificate verification.
    pub insecure: bool,
}

/// Checks against `cafile`, or the system's CAs where none is given; not at all with `insecure`.
pub(super) fn config(trust: &Trust) -> Result<ClientConfig, ServiceError> {
    let section = trust.section;
    let fault = |option: &str, error: &(dyn Error + 'static)| fault(section, option, error);
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = if trust.insecure {
        tracing::warn!("[{section}] insecure: the certificates of Keystone and the services are not checked");
        WithoutAuthorities::new(&provider, CertificatePolicy::AcceptAny)
    } else {
        match roots(section, trust.cafile.as_deref())? {
            // Without any CA only http can work; https fails with a reason that names the option.
            roots if roots.is_empty() => WithoutAuthorities::new(&provider, CertificatePolicy::RefuseAll),
            roots => WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| fault("cafile", &error))?,
        }
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| fault("cafile", &error))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    match &trust.certfile {
        None => Ok(builder.with_no_client_auth()),
        Some(certificate) => {
            // One file may hold both.
            let key = trust.keyfile.as_ref().unwrap_or(certificate);
            let key = PrivateKeyDer::from_pem_slice(&read(section, "keyfile", key)?)
                .map_err(|error| fault("keyfile", &error))?;
            builder
                .with_client_auth_cert(certificates(section, "certfile", certificate)?, key)
                .map_err(|error| fault("certfile", &error))
        }
    }
}

fn roots(section: &str, cafile: Option<&Path>) -> Result<RootCertStore, ServiceError> {
    let mut roots = RootCertStore::empty();
    match cafile {
        Some(path) => {
            for certificate in certificates(section, "cafile", path)? {
                roots
                    .add(certificate)
                    .map_err(|error| fault(section, "cafile", &error))?;
            }
        }
        None => {
            // Some of a system's bundle may be of a kind that nobody uses any more.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(roots)
}

fn read(section: &str, option: &str, path: &Path) -> Result<Vec<u8>, ServiceError> {
    std::fs::read(path)
        .map_err(|error| ServiceError::Options(format!("[{section}] {option}: {}: {error}", path.display())))
}

fn certificates(
    section: &str,
    option: &str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, ServiceError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(section, option, path)?).collect();
    let found = found.map_err(|error| fault(section, option, &error))?;
    if found.is_empty() {
        return Err(ServiceError::Options(format!(
            "[{section}] {option}: {} holds no certificate",
            path.display()
        )));
    }
    Ok(found)
}

fn fault(section: &str, option: &str, error: &(dyn Error + 'static)) -> ServiceError {
    ServiceError::Options(format!("[{section}] {option}: {}", with_causes(error)))
}

/// What a failed exchange says about certificates, and what to do about it; `None` when it is about something else.
pub(super) fn distrust(section: &str, error: &(dyn Error + 'static)) -> Option<(String, String)> {
    let error = tls_error(error)?;
    let advice = match error {
        rustls::Error::InvalidCertificate(_) => format!(
            "name the CA that signed its certificate in [{section}] cafile, or the address that the certificate is for \
             in auth_url and in the catalog"
        ),
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError
            | AlertDescription::HandshakeFailure,
        ) => wants_a_certificate(section),
        rustls::Error::InvalidMessage(_) => {
            "it does not speak TLS there: check http and https in auth_url and in the catalog".to_owned()
        }
        _ => return None,
    };
    Some((error.to_string(), advice))
}

pub(super) fn wants_a_certificate(section: &str) -> String {
    format!("it may want a client certificate: name one that it knows in [{section}] certfile and keyfile")
}

/// Whether the connection ended between its handshake and the request. Since TLS 1.3 a server refuses a client's
/// certificate in that moment, and the client library keeps its reason to itself then.
pub(super) fn hung_up_unasked(error: &(dyn Error + 'static)) -> bool {
    let mut current = Some(error);
    while let Some(error) = current {
        if error
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_canceled)
        {
            return true;
        }
        current = error.source();
    }
    false
}

/// Input and output wrap the errors of TLS, several times.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        current = match wrapped {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
