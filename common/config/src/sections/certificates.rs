//! `[certificates]` and `[x509]`: cluster CAs and the certificates signed by them.

use std::path::PathBuf;

use crate::schema::section;
use crate::value::{Keyword, keywords};

keywords! {
    /// Where certificates and keys are kept.
    CertManagerType {
        /// Barbican.
        Barbican = "barbican",
        /// The table `x509keypair`.
        X509KeyPair = "x509keypair",
        /// Files below storage_path.
        Local = "local",
    }
}

impl CertManagerType {
    /// As it is written in `magnum.conf`, and in our tables.
    pub fn as_str(self) -> &'static str {
        self.word()
    }

    /// The manager of this name.
    pub fn named(name: &str) -> Option<Self> {
        let mut words = Self::WORDS.iter();
        words.find(|(_, word)| *word == name).map(|(kind, _)| *kind)
    }
}

impl std::fmt::Display for CertManagerType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

keywords! {
    /// Algorithm of generated keys.
    KeyType {
        /// RSA with the bits of `[x509] rsa_key_size`.
        Rsa2048 = "rsa-2048",
        /// ECDSA on P-256.
        EcdsaP256 = "ecdsa-p256",
    }
}

keywords! {
    /// An X.509 extension, by its name in OpenSSL.
    #[expect(missing_docs, reason = "names of the standard")]
    X509Extension {
        KeyUsage = "keyUsage",
        ExtendedKeyUsage = "extendedKeyUsage",
        SubjectAltName = "subjectAltName",
        BasicConstraints = "basicConstraints",
        SubjectKeyIdentifier = "subjectKeyIdentifier",
        AuthorityKeyIdentifier = "authorityKeyIdentifier",
        AuthorityInfoAccess = "authorityInfoAccess",
        CrlDistributionPoints = "cRLDistributionPoints",
        CertificatePolicies = "certificatePolicies",
        OcspNoCheck = "OCSPNoCheck",
        InhibitAnyPolicy = "inhibitAnyPolicy",
        NameConstraints = "nameConstraints",
        IssuerAltName = "issuerAltName",
    }
}

keywords! {
    /// A purpose of a key, by its name in Magnum.
    #[expect(missing_docs, reason = "names of the standard")]
    X509KeyUsage {
        DigitalSignature = "Digital Signature",
        KeyEncipherment = "Key Encipherment",
        NonRepudiation = "Non Repudiation",
        DataEncipherment = "Data Encipherment",
        KeyAgreement = "Key Agreement",
        CertificateSign = "Certificate Sign",
        CrlSign = "CRL Sign",
        EncipherOnly = "Encipher Only",
        DecipherOnly = "Decipher Only",
    }
}

section! {
    /// Where certificates are kept.
    CertificatesSection "certificates" {
        /// Where certificates and keys are kept.
        cert_manager_type: CertManagerType as Choice = CertManagerType::Barbican;
        /// Directory for `local`.
        storage_path: PathBuf as Path = PathBuf::from("/var/lib/magnum/certificates/");
        /// Algorithm of generated keys; rsa_key_size may ask for longer RSA keys.
        key_type: KeyType as Choice = KeyType::Rsa2048, ours true;
        /// Private keys made ahead of need, in the database, sealed, for all conductors together: a cluster takes four. 0 turns it off. Only RSA keys are worth it.
        key_pool_size: u32 as Int<0, 10_000> = 256, ours true;
        /// Whether private keys are sealed with the key of journal_key_file, for `x509keypair` and `local`. A Python Magnum reads sealed keys only over the objects RPC, not in the database.
        seal_private_keys: bool as Bool = false, ours true;
    }
}

section! {
    /// What certificate requests of users may ask for.
    X509Section "x509" {
        /// Whether a request may become a CA.
        allow_ca: bool as Bool = false;
        /// Extensions that a request may have.
        allowed_extensions: Vec<X509Extension> as List<Choice> = vec![
            X509Extension::KeyUsage, X509Extension::ExtendedKeyUsage, X509Extension::SubjectAltName,
            X509Extension::BasicConstraints, X509Extension::SubjectKeyIdentifier,
        ];
        /// Key usages that a request may have.
        allowed_key_usage: Vec<X509KeyUsage> as List<Choice> = vec![
            X509KeyUsage::DigitalSignature, X509KeyUsage::KeyEncipherment, X509KeyUsage::NonRepudiation,
        ];
        /// Days that CAs and certificates are valid.
        term_of_validity: u32 as Int<1, 36_500> = 1825;
        /// Bits of generated RSA keys: 2048, 3072, 4096 or 8192; what lies between gets the next of them.
        rsa_key_size: u32 as Int<2048, 8192> = 2048;
    }
}
