//! TLS for the API's own socket: rustls with AWS-LC, TLS 1.2 and 1.3, HTTP/1.1.
//!
//! Certificate and key are files in PEM. They are read at start, where a file that cannot be used is an error that
//! names it, and again on request: then a file that cannot be used leaves what was.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use magnum_config::ApiSection;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// An option is not set.
    #[error("[api] {0} must be set when enabled_ssl is true")]
    Missing(&'static str),
    /// A file cannot be read, or does not hold what it should.
    #[error("[api] {option}: {}: {reason}", path.display())]
    File {
        /// Which option names it.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Each file is good by itself.
    #[error("[api] ssl_cert_file and ssl_key_file cannot be used together: {0}")]
    Pair(rustls::Error),
}

/// Certificate and key, which can be replaced while connections are accepted.
#[derive(Clone)]
pub struct Tls {
    current: Arc<RwLock<Arc<ServerConfig>>>,
}

impl Tls {
    /// By `[api] enabled_ssl`, `ssl_cert_file` and `ssl_key_file`; `None` when it is off. Blocks on files.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn from_settings(api: &ApiSection) -> Result<Option<Self>, TlsError> {
        if !api.enabled_ssl {
            return Ok(None);
        }
        let current = Arc::new(RwLock::new(Arc::new(read(api)?)));
        Ok(Some(Self { current }))
    }

    /// Reads the files again. New connections get what is in them; open ones keep what they began with.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn reload(&self, api: &ApiSection) -> Result<(), TlsError> {
        let config = Arc::new(read(api)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&current))
    }
}

fn read(api: &ApiSection) -> Result<ServerConfig, TlsError> {
    let certificate = named(api.ssl_cert_file.as_deref(), "ssl_cert_file")?;
    let key = named(api.ssl_key_file.as_deref(), "ssl_key_file")?;
    let wrong = |option, path: &Path, reason: String| TlsError::File {
        option,
        path: path.to_owned(),
        reason,
    };
    let chain: Vec<CertificateDer<'_>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| wrong("ssl_cert_file", certificate, in_words(&error, "certificate")))?;
    if chain.is_empty() {
        let reason = "has no certificate in PEM".to_owned();
        return Err(wrong("ssl_cert_file", certificate, reason));
    }
    let key = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| wrong("ssl_key_file", key, in_words(&error, "private key")))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn named<'a>(path: Option<&'a Path>, option: &'static str) -> Result<&'a Path, TlsError> {
    path.ok_or(TlsError::Missing(option))
}

/// Never quotes the file: it may be the key.
fn in_words(error: &pem::Error, what: &str) -> String {
    match error {
        pem::Error::Io(error) => format!("cannot be read: {error}"),
        pem::Error::NoItemsFound => format!("has no {what} in PEM"),
        _ => "is not in PEM".to_owned(),
    }
}
