//! TLS before a service that speaks none: ends it, and forwards what is inside.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::certificates::Signed;

/// A running front. Dropping it closes the port.
#[derive(Debug)]
pub struct TlsFront {
    address: SocketAddr,
    acceptor: JoinHandle<()>,
}

impl TlsFront {
    /// Listens on a free port. With `clients`, a CA, only those are let in whose certificate it has signed.
    pub async fn start(upstream: SocketAddr, own: &Signed, clients: Option<&Path>) -> Result<Self> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(CertificateDer::from_pem_file(authority)?)?;
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build()?)
            }
        };
        let certificate = CertificateDer::from_pem_file(&own.certificate)?;
        let config = builder.with_single_cert(vec![certificate], PrivateKeyDer::from_pem_file(&own.key)?)?;
        let tls = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let acceptor = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let tls = tls.clone();
                tokio::spawn(async move {
                    // Who does not get through sees that at its own end.
                    let mut client = tls.accept(client).await.ok()?;
                    let mut server = TcpStream::connect(upstream).await.ok()?;
                    copy_bidirectional(&mut client, &mut server).await.ok()
                });
            }
        });
        Ok(Self { address, acceptor })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}
