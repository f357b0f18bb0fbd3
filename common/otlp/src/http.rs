//! The way to the collector: one exchange at a time, over kept connections.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use magnum_config::OtlpSection;
use opentelemetry_http::{HttpClient, HttpError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::Handle;

use crate::OtlpError;

/// A collector's answers are small.
const LARGEST_ANSWER: usize = 1 << 20;

/// A collector, and whether it was there last time.
pub(super) struct Collector {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// The exporter's own thread has no runtime.
    runtime: Handle,
    timeout: Duration,
    is_away: Arc<AtomicBool>,
}

impl Collector {
    /// Connects to nothing yet.
    pub(super) fn new(options: &OtlpSection, runtime: Handle) -> Result<Self, OtlpError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(options.timeout));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| OtlpError::Start(error.to_string()))?
            .with_root_certificates(roots(options)?)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Ok(Self {
            http: Client::builder(TokioExecutor::new()).build(connector),
            runtime,
            timeout: options.timeout,
            is_away: Arc::default(),
        })
    }

    /// Logs that the collector does not take spans, and that it does again: once each.
    fn note(&self, trouble: Option<&str>) {
        let was_away = self.is_away.swap(trouble.is_some(), Ordering::Relaxed);
        match trouble {
            Some(reason) if !was_away => {
                tracing::warn!(
                    reason,
                    "the collector of [otlp] takes no spans; they are dropped until it does"
                );
            }
            None if was_away => tracing::info!("the collector of [otlp] takes spans again"),
            _ => {}
        }
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (http, limit) = (self.http.clone(), self.timeout);
        let exchange = self.runtime.spawn(async move {
            let exchange = async {
                let (head, body) = http.request(request.map(Full::new)).await?.into_parts();
                let body = Limited::new(body, LARGEST_ANSWER).collect().await?.to_bytes();
                Ok::<_, HttpError>(Response::from_parts(head, body))
            };
            match tokio::time::timeout(limit, exchange).await {
                Ok(answer) => answer,
                Err(_) => Err(format!("no answer within {limit:?} ([otlp] timeout)").into()),
            }
        });
        let answer = exchange.await.map_err(HttpError::from).flatten();
        match &answer {
            Ok(answer) if answer.status().is_success() => self.note(None),
            Ok(answer) => self.note(Some(answer.status().as_str())),
            Err(error) => self.note(Some(&magnum_common::error::with_causes(error.as_ref()))),
        }
        answer
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its headers may hold a secret.
        f.debug_struct("Collector").finish_non_exhaustive()
    }
}

fn roots(options: &OtlpSection) -> Result<RootCertStore, OtlpError> {
    let mut roots = RootCertStore::empty();
    match &options.cafile {
        // Some of a system's bundle may be of a kind that nobody uses any more.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(path) => {
            let fault = |error: &dyn fmt::Display| OtlpError::Authorities {
                path: path.clone(),
                reason: error.to_string(),
            };
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| fault(&error))? {
                let certificate = certificate.map_err(|error| fault(&error))?;
                roots.add(certificate).map_err(|error| fault(&error))?;
            }
            if roots.is_empty() {
                return Err(fault(&"it holds no certificate"));
            }
        }
    }
    Ok(roots)
}
