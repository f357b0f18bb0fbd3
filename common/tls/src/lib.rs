//! TLS without a certificate authority: verification of server certificates is disabled, or always fails.
//!
//! Roots and client certificates come from the options of each peer; see `rpc` and `openstack`.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};

/// What happens to every server certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificatePolicy {
    /// Accepts any: encrypted, but not protected against an impostor.
    AcceptAny,
    /// Refuses all: for a system without CAs. Plain connections work.
    RefuseAll,
}

/// Applies one policy to all certificates; the handshake's own signatures are verified all the same.
#[derive(Debug)]
pub struct WithoutAuthorities {
    provider: Arc<CryptoProvider>,
    policy: CertificatePolicy,
}

impl WithoutAuthorities {
    /// A verifier that applies `policy`, with the signature schemes of `provider`.
    pub fn new(provider: &Arc<CryptoProvider>, policy: CertificatePolicy) -> Arc<Self> {
        Arc::new(Self {
            provider: Arc::clone(provider),
            policy,
        })
    }
}

impl ServerCertVerifier for WithoutAuthorities {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.policy {
            CertificatePolicy::AcceptAny => Ok(ServerCertVerified::assertion()),
            CertificatePolicy::RefuseAll => {
                Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer))
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
