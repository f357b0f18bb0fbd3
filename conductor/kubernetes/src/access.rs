//! Where a cluster's API server is, whom it is believed by, and who asks.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::Uri;
use hyper::http::uri::{Authority, Scheme};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use magnum_common::secret::Secret;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// All that is needed to ask a cluster's API server. `Debug` shows neither certificates nor the key.
#[derive(Clone)]
pub struct ApiServerAccess {
    /// `https://address:port`, as the cluster's `api_address` has it; `http://` for a cluster with TLS disabled.
    pub address: String,
    /// The cluster's CA in PEM: the only one that is believed.
    pub authority: String,
    /// A client certificate that this CA signed, in PEM.
    pub certificate: String,
    /// Its private key in PEM, not encrypted: PKCS#8, PKCS#1 or SEC1.
    pub key: Secret,
}

impl std::fmt::Debug for ApiServerAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServerAccess")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Why an API server cannot even be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The cluster has no address yet, or none that is one.
    #[error(
        "the cluster's API address {0:?} is not one: it begins with https:// or http://, then host and port"
    )]
    Address(String),
    /// The CA cannot be used.
    #[error("the cluster's CA certificate cannot be used: {0}")]
    Authority(String),
    /// The address asks for TLS, and there is nothing to believe the server by.
    #[error("the cluster has no certificates, and its API address {0:?} asks for TLS")]
    NoCertificates(String),
    /// The client certificate or its key cannot be used, or one is not the other's. Says nothing of their content.
    #[error("the cluster's client certificate and key cannot be used: {0}")]
    Client(String),
}

/// An API server and the connection to it, kept between the requests of one check.
pub(crate) struct Server {
    pub(crate) http: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    scheme: Scheme,
    authority: Authority,
}

impl Server {
    /// Address of a path on this server.
    pub(crate) fn uri(&self, path_and_query: &str) -> Uri {
        let uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(path_and_query);
        // Paths are constants, and what is put behind them is encoded.
        uri.build().unwrap_or_default()
    }
}

impl ApiServerAccess {
    /// To a cluster whose template disables TLS.
    ///
    /// # Errors
    /// The address asks for TLS.
    pub fn without_tls(address: String) -> Result<Self, AccessError> {
        if !address.starts_with("http://") {
            return Err(AccessError::NoCertificates(address));
        }
        Ok(Self {
            address,
            authority: String::new(),
            certificate: String::new(),
            key: Secret::new(""),
        })
    }

    /// Connects to nothing yet.
    pub(crate) fn connect(&self) -> Result<Server, AccessError> {
        let wrong = || AccessError::Address(self.address.clone());
        let parts = self.address.parse::<Uri>().map_err(|_| wrong())?.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(wrong());
        };
        let tls = if scheme == Scheme::HTTPS {
            self.tls()?
        } else if scheme == Scheme::HTTP {
            without_identity(RootCertStore::empty())?
        } else {
            return Err(wrong());
        };
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Ok(Server {
            http: Client::builder(TokioExecutor::new()).build(connector),
            scheme,
            authority,
        })
    }

    fn tls(&self) -> Result<ClientConfig, AccessError> {
        // Errors of the key name what was expected, never what is there.
        let key = PrivateKeyDer::from_pem_slice(self.key.expose().as_bytes())
            .map_err(|_| AccessError::Client("the key is not a private key in PEM".to_owned()))?;
        let certificate = certificates(&self.certificate).map_err(AccessError::Client)?;
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.authority).map_err(AccessError::Authority)? {
            roots
                .add(certificate)
                .map_err(|error| AccessError::Authority(error.to_string()))?;
        }
        builder(roots)?
            .with_client_auth_cert(certificate, key)
            .map_err(|error| AccessError::Client(error.to_string()))
    }
}

fn without_identity(roots: RootCertStore) -> Result<ClientConfig, AccessError> {
    Ok(builder(roots)?.with_no_client_auth())
}

fn builder(
    roots: RootCertStore,
) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>, AccessError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| AccessError::Authority(error.to_string()))?;
    Ok(builder.with_root_certificates(roots))
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match found {
        Ok(found) if found.is_empty() => Err("there is no certificate in PEM".to_owned()),
        Ok(found) => Ok(found),
        Err(_) => Err("it is not a certificate in PEM".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: &str) -> ApiServerAccess {
        ApiServerAccess {
            address: address.to_owned(),
            authority: "no PEM".to_owned(),
            certificate: String::new(),
            key: Secret::new("hunter2"),
        }
    }

    #[test]
    fn an_address_that_is_none_is_named_in_the_error() {
        for address in ["", "10.0.0.1", "/readyz", "ftp://10.0.0.1", "https://", "unix:/x"] {
            let error = access(address).connect().err();
            assert_eq!(error, Some(AccessError::Address(address.to_owned())));
        }
        // Without TLS nobody needs certificates.
        assert!(access("http://10.0.0.1:8080").connect().is_ok());
    }

    #[test]
    fn a_key_is_neither_in_debug_nor_in_errors() {
        assert!(!format!("{:?}", access("x")).contains("hunter2"));
        let mut access = access("https://10.0.0.1:6443");
        access.key = Secret::new("-----BEGIN PRIVATE KEY-----\nhunter2!\n-----END PRIVATE KEY-----\n");
        let error = access.connect().err();
        let expected = AccessError::Client("the key is not a private key in PEM".to_owned());
        assert_eq!(error, Some(expected));
    }

    #[test]
    fn a_path_is_put_behind_host_and_port() {
        let server = access("http://[::1]:8080/ignored").connect().expect("plain");
        assert_eq!(server.uri("/readyz").to_string(), "http://[::1]:8080/readyz");
    }
}
