//! `[certificates]` and `[x509]`: cluster CAs and the certificates signed by them.

use std::path::PathBuf;

use crate::schema::section;
use crate::value::{Keyword, keywords};

keywords! {
    /// Store of certificates and private keys.
    CertManagerType {
        /// OpenStack's key manager, Barbican.
        Barbican = "barbican",
        /// The database table `x509keypair`.
        X509KeyPair = "x509keypair",
        /// Files below `storage_path`.
        Local = "local",
    }
    "; certificate managers of Python packages (entry points of magnum.cert_manager.backend) cannot be loaded here: keep \
     to Python conductors, or move the certificates to one of these"
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
    /// What becomes of private keys in the database that are not encrypted while `seal_private_keys` is on.
    UnsealedKeys {
        /// Read from rows that are older than that.
        BeforeSealing = "before_sealing",
        /// Read from any row.
        Accept = "accept",
        /// Read from none.
        Refuse = "refuse",
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
    /// Generation and storage of cluster certificates.
    CertificatesSection "certificates" {
        /// Store of certificates and private keys: Barbican, the database (`x509keypair`), or files (`local`).
        cert_manager_type: CertManagerType as Choice = CertManagerType::Barbican;
        /// Directory of certificate files; used with cert_manager_type `local`.
        storage_path: PathBuf as Path = PathBuf::from("/var/lib/magnum/certificates/");
        /// Algorithm of generated keys. The size of RSA keys is `[x509] rsa_key_size`.
        key_type: KeyType as Choice = KeyType::Rsa2048, ours true;
        /// Number of private keys that are generated ahead of need and kept in the database, encrypted, for all conductors
        /// together; a cluster takes four. Only RSA keys are pooled. 0: no pool.
        key_pool_size: u32 as Int<0, 10_000> = 256, ours true;
        /// Encrypt private keys at rest with the key of journal_key_file; for `x509keypair` and `local`. Python Magnum
        /// can read encrypted keys only over the objects RPC, not from the database.
        seal_private_keys: bool as Bool = false, ours true;
        /// With seal_private_keys: which rows of `x509keypair` may hold a private key that is not encrypted. `before_sealing`:
        /// those that are older than that; `accept`: any, for a deployment in which a Python Magnum makes clusters, too;
        /// `refuse`: none.
        unsealed_keys: UnsealedKeys as Choice = UnsealedKeys::BeforeSealing, ours true;
    }
}

section! {
    /// Limits on certificate signing requests of users, and properties of generated certificates.
    X509Section "x509" {
        /// Allow signing requests for CA certificates.
        allow_ca: bool as Bool = false;
        /// X.509 extensions allowed in a signing request.
        allowed_extensions: Vec<X509Extension> as List<Choice> = vec![
            X509Extension::KeyUsage, X509Extension::ExtendedKeyUsage, X509Extension::SubjectAltName,
            X509Extension::BasicConstraints, X509Extension::SubjectKeyIdentifier,
        ];
        /// Key usages allowed in a signing request.
        allowed_key_usage: Vec<X509KeyUsage> as List<Choice> = vec![
            X509KeyUsage::DigitalSignature, X509KeyUsage::KeyEncipherment, X509KeyUsage::NonRepudiation,
        ];
        /// Validity period of CA and client certificates, in days.
        term_of_validity: u32 as Int<1, 36_500> = 1825;
        /// Size of generated RSA keys, in bits: 2048, 3072, 4096 or 8192. Other values are rounded up to the next of these.
        rsa_key_size: u32 as Int<2048, 8192> = 2048;
    }
}
