//! TLS towards the broker, from the `ssl*` options.
//!
//! With `ssl_ca_file` the chain and the host name are verified. Without it nothing is: that is what `ssl = true`
//! alone has always meant for Python programs, and existing deployments with their own certificates rely on it.
//! It is said at start, since such a connection is encrypted but not protected against an impostor.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::error::TransportError;
use crate::options::RabbitOptions;
use magnum_tls::{CertificatePolicy, WithoutAuthorities};

/// The TLS side of a connection; none without `ssl`.
pub(super) fn connector(options: &RabbitOptions) -> Result<Option<ClientConfig>, TransportError> {
    if !options.ssl {
        return Ok(None);
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match &options.ssl_ca_file {
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates("ssl_ca_file", path)? {
                roots
                    .add(certificate)
                    .map_err(|error| fault("ssl_ca_file", error))?;
            }
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| fault("ssl_ca_file", error))?
        }
        None => {
            tracing::warn!(
                "[oslo_messaging_rabbit] ssl is on without ssl_ca_file: the broker's certificate is not verified"
            );
            WithoutAuthorities::new(&provider, CertificatePolicy::AcceptAny)
        }
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| fault("ssl", error))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match (&options.ssl_cert_file, &options.ssl_key_file) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), key) => {
            // One file may hold both.
            let key = key.as_ref().unwrap_or(certificate);
            let chain = certificates("ssl_cert_file", certificate)?;
            let key = PrivateKeyDer::from_pem_slice(&read("ssl_key_file", key)?).map_err(|error| {
                fault(
                    "ssl_key_file",
                    format!("{} holds no private key: {error}", key.display()),
                )
            })?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| fault("ssl_cert_file", error))?
        }
        (None, Some(_)) => return Err(fault("ssl_cert_file", "needed with ssl_key_file")),
    };
    Ok(Some(config))
}

/// Which option a failed handshake points to.
pub(super) fn hint(error: &rustls::Error) -> &'static str {
    use rustls::{CertificateError as Bad, Error};
    match error {
        Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "the broker's certificate is not valid for the host name in transport_url"
        }
        Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "the broker's certificate is not signed by an authority in [oslo_messaging_rabbit] ssl_ca_file"
        }
        Error::InvalidCertificate(_) => {
            "the broker's certificate does not stand the check against [oslo_messaging_rabbit] ssl_ca_file"
        }
        Error::AlertReceived(_) => {
            "the broker ended the handshake: does it want or trust the certificate of [oslo_messaging_rabbit] \
             ssl_cert_file?"
        }
        Error::InvalidMessage(_) => {
            "that port does not speak TLS: set [oslo_messaging_rabbit] ssl = false, or name the TLS port (often \
             5671) in transport_url"
        }
        _ => "TLS failed: check the options ssl* of [oslo_messaging_rabbit]",
    }
}

fn read(option: &'static str, path: &Path) -> Result<Vec<u8>, TransportError> {
    fs::read(path).map_err(|error| fault(option, format!("{}: {error}", path.display())))
}

fn certificates(option: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TransportError> {
    let pem = read(option, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| fault(option, format!("{}: {error}", path.display())))?;
    if found.is_empty() {
        return Err(fault(option, format!("{} holds no certificate", path.display())));
    }
    Ok(found)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers have errors and texts made on the spot"
)]
fn fault(option: &'static str, reason: impl ToString) -> TransportError {
    TransportError::Tls {
        option,
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> RabbitOptions {
        RabbitOptions {
            ssl: true,
            ..RabbitOptions::default()
        }
    }

    #[test]
    fn without_ssl_there_is_none() {
        assert!(connector(&RabbitOptions::default()).unwrap().is_none());
        assert!(connector(&options()).unwrap().is_some());
    }

    #[test]
    fn a_missing_or_wrong_file_is_named_with_its_option() {
        let empty = tempfile::NamedTempFile::new().unwrap();
        for (ca, needle) in [
            (Path::new("/no/such/ca.pem"), "/no/such/ca.pem"),
            (empty.path(), "holds no certificate"),
        ] {
            let wrong = RabbitOptions {
                ssl_ca_file: Some(ca.to_owned()),
                ..options()
            };
            let text = connector(&wrong).unwrap_err().to_string();
            assert!(
                text.starts_with("[oslo_messaging_rabbit] ssl_ca_file") && text.contains(needle),
                "{text}"
            );
        }
    }

    #[test]
    fn a_key_needs_its_certificate() {
        let wrong = RabbitOptions {
            ssl_key_file: Some("k.pem".into()),
            ..options()
        };
        assert!(
            connector(&wrong)
                .unwrap_err()
                .to_string()
                .contains("ssl_cert_file")
        );
    }
}
