//! What connections to peers have in common where no authority decides about the other end's certificate.
//!
//! Roots and client certificates come from the options of each peer; see `rpc` and `openstack`.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};

/// What becomes of every certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Whoever answers is believed: encrypted, but not protected against an impostor.
    Accepted,
    /// Nobody is: for a system without authorities. Plain connections work.
    Refused,
}

/// Has one verdict for all certificates; the handshake's own signatures are checked all the same.
#[derive(Debug)]
pub struct WithoutAuthorities {
    provider: Arc<CryptoProvider>,
    verdict: Verdict,
}

impl WithoutAuthorities {
    /// A verifier that gives `verdict`, with the signature schemes of `provider`.
    pub fn new(provider: &Arc<CryptoProvider>, verdict: Verdict) -> Arc<Self> {
        Arc::new(Self {
            provider: Arc::clone(provider),
            verdict,
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
        match self.verdict {
            Verdict::Accepted => Ok(ServerCertVerified::assertion()),
            Verdict::Refused => Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)),
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
