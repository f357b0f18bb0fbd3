//! Private keys: made, kept as encrypted PKCS#8, and used to sign.
//!
//! AWS-LC makes them and signs with them: RSA of 2048 to 8192 bits, and ECDSA on the curves P-256 and P-384. Keys
//! are written as Magnum writes them today: PBES2 with PBKDF2-HMAC-SHA256, 2048 rounds, AES-256-CBC. What is read is also
//! what earlier releases of its library wrote (HMAC-SHA1, triple DES), and keys that are not encrypted.
//!
//! Making an RSA-2048 key takes some 65 ms of a processor, signing with it about one: callers do it on blocking threads.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use const_oid::ObjectIdentifier;
use der::asn1::{AnyRef, BitStringRef};
use der::{Decode, Encode};
use magnum_common::secret::Secret;
use magnum_config::{KeyType, Settings};
use pkcs8::pkcs5::pbes2;
use pkcs8::{EncryptedPrivateKeyInfo, PrivateKeyInfo, SecretDocument};
use spki::{AlgorithmIdentifierRef, SubjectPublicKeyInfoRef};

use zeroize::Zeroizing;

use super::{cost, pem};

pub(crate) const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
pub(crate) const SHA256_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
pub(crate) const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
pub(crate) const CURVE_P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
pub(crate) const CURVE_P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
pub(crate) const ECDSA_WITH_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
pub(crate) const ECDSA_WITH_SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3");

/// As Magnum's library does it. The passphrase is random, so that more would gain nothing.
const ROUNDS: u32 = 2048;
const ENCRYPTED: &str = "ENCRYPTED PRIVATE KEY";
const PLAIN: &str = "PRIVATE KEY";
const PKCS1: &str = "RSA PRIVATE KEY";

/// Which keys are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// RSA with at least this many bits: 2048, 3072, 4096 and 8192 are made.
    Rsa(u32),
    /// ECDSA on P-256.
    EcdsaP256,
}

impl KeyKind {
    /// Its name, as in `[certificates] key_type`.
    pub fn name(self) -> String {
        match self {
            Self::Rsa(bits) => format!("rsa-{bits}"),
            Self::EcdsaP256 => "ecdsa-p256".to_owned(),
        }
    }
}

impl From<&Settings> for KeyKind {
    fn from(settings: &Settings) -> Self {
        match settings.certificates.key_type {
            KeyType::Rsa2048 => Self::Rsa(settings.x509.rsa_key_size),
            KeyType::EcdsaP256 => Self::EcdsaP256,
        }
    }
}

/// The next size that can be made: a key is never shorter than it was asked to be. The option allows 8192 at most.
fn rsa_size(bits: u32) -> KeySize {
    match bits {
        0..=2048 => KeySize::Rsa2048,
        2049..=3072 => KeySize::Rsa3072,
        3073..=4096 => KeySize::Rsa4096,
        4097.. => KeySize::Rsa8192,
    }
}

/// Why a key cannot be made, read or used. Never shows any of it.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers")]
    NoRandomness,
    /// No key came out.
    #[error("cannot make a key: {0}")]
    Generation(String),
    /// The text is no private key.
    #[error("the stored private key cannot be read: {0}")]
    Unreadable(String),
    /// The passphrase is another one.
    #[error("the stored private key does not open with the passphrase beside it")]
    Passphrase,
    /// It asks for more work than any key is worth.
    #[error("the stored private key is not opened: it asks for {0}")]
    Costly(String),
    /// An algorithm that we cannot sign with.
    #[error("the stored private key is neither RSA nor on the curves P-256 and P-384")]
    Algorithm,
    /// The key did not sign.
    #[error("the private key cannot sign: {0}")]
    Signing(String),
}

/// A key that can sign certificates.
pub struct PrivateKey(Kind);

enum Kind {
    Rsa(Box<RsaKeyPair>),
    Ec(Curve, SecretDocument, Box<EcdsaKeyPair>),
}

#[derive(Clone, Copy)]
enum Curve {
    P256,
    P384,
}

impl Curve {
    fn algorithm(self) -> &'static EcdsaSigningAlgorithm {
        match self {
            Self::P256 => &ECDSA_P256_SHA256_ASN1_SIGNING,
            Self::P384 => &ECDSA_P384_SHA384_ASN1_SIGNING,
        }
    }

    fn oid(self) -> &'static ObjectIdentifier {
        match self {
            Self::P256 => &CURVE_P256,
            Self::P384 => &CURVE_P384,
        }
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PrivateKey(***)")
    }
}

impl PrivateKey {
    /// A new key. Blocks: for RSA some 65 ms and more.
    ///
    /// # Errors
    /// [`KeyError::NoRandomness`]
    pub fn generate(kind: KeyKind) -> Result<Self, KeyError> {
        match kind {
            KeyKind::Rsa(bits) => {
                let pair = RsaKeyPair::generate(rsa_size(bits)).map_err(|_| KeyError::NoRandomness)?;
                Ok(Self(Kind::Rsa(Box::new(pair))))
            }
            KeyKind::EcdsaP256 => {
                let made = EcdsaKeyPair::generate_pkcs8(Curve::P256.algorithm(), &SystemRandom::new())
                    .map_err(|_| KeyError::NoRandomness)?;
                Self::from_pkcs8(made.as_ref())
            }
        }
    }

    /// A key from PEM.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn from_pem(text: &Secret, passphrase: Option<&Secret>) -> Result<Self, KeyError> {
        let unreadable = |error: &dyn std::fmt::Display| KeyError::Unreadable(error.to_string());
        let (label, der) =
            pem::decode(text.expose(), &[ENCRYPTED, PLAIN, PKCS1]).map_err(|error| unreadable(&error))?;
        // Keeps the bytes from staying behind in memory.
        let der = Zeroizing::new(der);
        match label {
            ENCRYPTED => {
                let sealed =
                    EncryptedPrivateKeyInfo::try_from(der.as_slice()).map_err(|error| unreadable(&error))?;
                Self::from_pkcs8(decrypted(&sealed, passphrase)?.as_bytes())
            }
            PLAIN => Self::from_pkcs8(&der),
            _ => RsaKeyPair::from_der(&der)
                .map(|pair| Self(Kind::Rsa(Box::new(pair))))
                .map_err(|error| unreadable(&error)),
        }
    }

    /// A key from PKCS#8 that is not encrypted.
    ///
    /// # Errors
    /// It is none that this program works with.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        let unreadable = |error: &dyn std::fmt::Display| KeyError::Unreadable(error.to_string());
        let info = PrivateKeyInfo::from_der(der).map_err(|error| unreadable(&error))?;
        if info.algorithm.oid == RSA_ENCRYPTION {
            let pair = RsaKeyPair::from_pkcs8(der).map_err(|error| unreadable(&error))?;
            return Ok(Self(Kind::Rsa(Box::new(pair))));
        }
        if info.algorithm.oid != EC_PUBLIC_KEY {
            return Err(KeyError::Algorithm);
        }
        let curve = match info.algorithm.parameters_oid() {
            Ok(CURVE_P256) => Curve::P256,
            Ok(CURVE_P384) => Curve::P384,
            _ => return Err(KeyError::Algorithm),
        };
        let pair = EcdsaKeyPair::from_pkcs8(curve.algorithm(), der).map_err(|error| unreadable(&error))?;
        let document = SecretDocument::try_from(der).map_err(|error| unreadable(&error))?;
        Ok(Self(Kind::Ec(curve, document, Box::new(pair))))
    }

    /// The key as encrypted PEM, and the new passphrase that opens it.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn to_encrypted_pem(&self) -> Result<(Secret, Secret), KeyError> {
        let failed = |error: &dyn std::fmt::Display| KeyError::Generation(error.to_string());
        let random = SystemRandom::new();
        let (mut salt, mut iv) = ([0; 16], [0; 16]);
        random.fill(&mut salt).map_err(|_| KeyError::NoRandomness)?;
        random.fill(&mut iv).map_err(|_| KeyError::NoRandomness)?;
        let passphrase = passphrase(&random)?;
        let document = self.to_pkcs8()?;
        let info = PrivateKeyInfo::from_der(&document).map_err(|error| failed(&error))?;
        let scheme =
            pbes2::Parameters::pbkdf2_sha256_aes256cbc(ROUNDS, &salt, &iv).map_err(|error| failed(&error))?;
        let sealed = info
            .encrypt_with_params(scheme, passphrase.expose())
            .map_err(|error| failed(&error))?;
        Ok((Secret::new(pem::encode(ENCRYPTED, sealed.as_bytes())), passphrase))
    }

    /// The key as PKCS#8 that is not encrypted.
    ///
    /// # Errors
    /// The library does not write it, which it does for every key that it has read or made.
    pub fn to_pkcs8(&self) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        match &self.0 {
            Kind::Rsa(pair) => AsDer::<Pkcs8V1Der>::as_der(&**pair)
                .map(|der| Zeroizing::new(der.as_ref().to_vec()))
                .map_err(|error| KeyError::Generation(error.to_string())),
            Kind::Ec(_, document, _) => Ok(Zeroizing::new(document.as_bytes().to_vec())),
        }
    }

    /// The public half, as a `SubjectPublicKeyInfo` in DER.
    ///
    /// # Errors
    /// [`KeyError::Signing`]: it cannot be written.
    pub fn public_key(&self) -> Result<Vec<u8>, KeyError> {
        let failed = |error: &dyn std::fmt::Display| KeyError::Signing(error.to_string());
        match &self.0 {
            Kind::Rsa(pair) => AsDer::<PublicKeyX509Der>::as_der(pair.public_key())
                .map(|der| der.as_ref().to_vec())
                .map_err(|error| failed(&error)),
            Kind::Ec(curve, _, pair) => SubjectPublicKeyInfoRef {
                algorithm: AlgorithmIdentifierRef {
                    oid: EC_PUBLIC_KEY,
                    parameters: Some(AnyRef::from(curve.oid())),
                },
                subject_public_key: BitStringRef::from_bytes(pair.public_key().as_ref())
                    .map_err(|error| failed(&error))?,
            }
            .to_der()
            .map_err(|error| failed(&error)),
        }
    }

    /// How its signatures are named.
    pub(crate) fn algorithm(&self) -> AlgorithmIdentifierRef<'static> {
        let (oid, parameters) = match &self.0 {
            Kind::Rsa(_) => (SHA256_WITH_RSA, Some(AnyRef::NULL)),
            Kind::Ec(Curve::P256, ..) => (ECDSA_WITH_SHA256, None),
            Kind::Ec(Curve::P384, ..) => (ECDSA_WITH_SHA384, None),
        };
        AlgorithmIdentifierRef { oid, parameters }
    }

    /// Signs some bytes. Blocks: for RSA a millisecond.
    pub(crate) fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, KeyError> {
        match &self.0 {
            Kind::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), bytes, &mut signature)
                    .map(|()| signature)
                    .map_err(|error| KeyError::Signing(error.to_string()))
            }
            Kind::Ec(_, _, pair) => pair
                .sign(&SystemRandom::new(), bytes)
                .map(|signature| signature.as_ref().to_vec())
                .map_err(|_| KeyError::NoRandomness),
        }
    }
}

/// A stored key as PEM that needs no passphrase, whatever its algorithm.
///
/// # Errors
/// The text is no private key, or the passphrase is not the one it was encrypted with.
pub fn opened(text: &Secret, passphrase: Option<&Secret>) -> Result<Secret, KeyError> {
    let unreadable = |error: &dyn std::fmt::Display| KeyError::Unreadable(error.to_string());
    let (label, der) =
        pem::decode(text.expose(), &[ENCRYPTED, PLAIN, PKCS1]).map_err(|error| unreadable(&error))?;
    let der = Zeroizing::new(der);
    if label != ENCRYPTED {
        return Ok(Secret::new(pem::encode(label, &der)));
    }
    let sealed = EncryptedPrivateKeyInfo::try_from(der.as_slice()).map_err(|error| unreadable(&error))?;
    let opened = decrypted(&sealed, passphrase)?;
    Ok(Secret::new(pem::encode(PLAIN, opened.as_bytes())))
}

fn decrypted(
    sealed: &EncryptedPrivateKeyInfo<'_>,
    passphrase: Option<&Secret>,
) -> Result<SecretDocument, KeyError> {
    let passphrase = passphrase.ok_or(KeyError::Passphrase)?;
    cost::check(&sealed.encryption_algorithm)?;
    sealed
        .decrypt(latin1(passphrase.expose()))
        .map_err(|_| KeyError::Passphrase)
}

/// 24 characters of base32, 120 random bits, in lower case as Magnum's are (which have 60 bits).
fn passphrase(random: &SystemRandom) -> Result<Secret, KeyError> {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0; 24];
    random.fill(&mut bytes).map_err(|_| KeyError::NoRandomness)?;
    Ok(Secret::new(
        bytes
            .iter()
            .map(|byte| char::from(ALPHABET[usize::from(byte % 32)]))
            .collect::<String>(),
    ))
}

/// A passphrase's bytes as Magnum takes them.
fn latin1(text: &str) -> Vec<u8> {
    match text.chars().map(|c| u8::try_from(u32::from(c))).collect() {
        Ok(bytes) => bytes,
        Err(_) => text.as_bytes().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use pkcs8::pkcs5::EncryptionScheme;
    use pkcs8::pkcs5::pbes2::{Kdf, Pbkdf2Params, ScryptParams};

    use super::*;

    #[test]
    fn a_key_opens_with_its_passphrase_only_and_signs_the_same_way_afterwards() {
        for kind in [KeyKind::Rsa(2048), KeyKind::EcdsaP256] {
            let key = PrivateKey::generate(kind).unwrap();
            let (text, passphrase) = key.to_encrypted_pem().unwrap();
            assert!(
                text.expose()
                    .starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
            );
            assert!(text.expose().ends_with("-----END ENCRYPTED PRIVATE KEY-----"));
            assert_eq!(passphrase.expose().len(), 24);
            let again = PrivateKey::from_pem(&text, Some(&passphrase)).unwrap();
            assert_eq!(again.public_key().unwrap(), key.public_key().unwrap());
            assert!(!again.sign(b"x").unwrap().is_empty());
            let plain = opened(&text, Some(&passphrase)).unwrap();
            assert!(plain.expose().starts_with("-----BEGIN PRIVATE KEY-----\n"));
            assert_eq!(opened(&plain, None).unwrap(), plain);
            let again = PrivateKey::from_pem(&plain, None).unwrap();
            assert_eq!(again.public_key().unwrap(), key.public_key().unwrap());
            assert!(matches!(opened(&text, None), Err(KeyError::Passphrase)));
            for wrong in [None, Some(&Secret::new("aaaaaaaaaaaaaaaaaaaaaaaa"))] {
                let refused = PrivateKey::from_pem(&text, wrong).unwrap_err();
                assert!(matches!(refused, KeyError::Passphrase), "{refused}");
            }
        }
    }

    #[test]
    fn a_key_that_asks_for_too_much_work_is_not_opened() {
        let key = PrivateKey::generate(KeyKind::EcdsaP256).unwrap();
        let (text, passphrase) = key.to_encrypted_pem().unwrap();
        let (_, der) = pem::decode(text.expose(), &[ENCRYPTED]).unwrap();
        let costly = |kdf| {
            let mut sealed = EncryptedPrivateKeyInfo::try_from(der.as_slice()).unwrap();
            if let EncryptionScheme::Pbes2(parameters) = &mut sealed.encryption_algorithm {
                parameters.kdf = kdf;
            }
            let text = Secret::new(pem::encode(ENCRYPTED, &sealed.to_der().unwrap()));
            [
                PrivateKey::from_pem(&text, Some(&passphrase)).err(),
                opened(&text, Some(&passphrase)).err(),
            ]
        };
        let rounds = |rounds| Kdf::from(Pbkdf2Params::hmac_with_sha256(rounds, b"saltsalt").unwrap());
        let scrypt = |cost_parameter, block_size, parallelization| {
            Kdf::from(ScryptParams {
                salt: b"saltsalt",
                cost_parameter,
                block_size,
                parallelization,
                key_length: None,
            })
        };
        for kdf in [
            rounds(2_000_001),
            scrypt(1 << 17, 8, 1),
            scrypt(2, 8, 17),
            scrypt(1 << 40, 8, 1),
        ] {
            let refused = costly(kdf);
            assert!(
                refused
                    .iter()
                    .all(|error| matches!(error, Some(KeyError::Costly(_)))),
                "{refused:?}"
            );
        }
        // What others use is tried, with the wrong result.
        for kdf in [rounds(10_000), scrypt(16_384, 8, 1)] {
            let refused = costly(kdf);
            assert!(
                refused
                    .iter()
                    .all(|error| matches!(error, Some(KeyError::Passphrase))),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn an_rsa_key_is_never_shorter_than_asked() {
        for (asked, made) in [
            (2048, 2048),
            (2049, 3072),
            (3072, 3072),
            (4000, 4096),
            (8192, 8192),
        ] {
            assert_eq!(rsa_size(asked).len() * 8, made);
        }
    }

    #[test]
    fn no_error_shows_the_text_of_a_key() {
        let key = PrivateKey::generate(KeyKind::EcdsaP256).unwrap();
        let (text, _) = key.to_encrypted_pem().unwrap();
        let body: String = text.expose().lines().nth(1).unwrap().to_owned();
        for broken in [text.expose().replace("-----END", "-----DNE"), format!("{body}!")] {
            let refused = PrivateKey::from_pem(&Secret::new(broken), None).unwrap_err();
            assert!(!format!("{refused} {refused:?}").contains(&body));
        }
        assert_eq!(format!("{key:?}"), "PrivateKey(***)");
    }

    #[test]
    fn a_passphrase_is_taken_as_latin_1() {
        assert_eq!(latin1("pü"), [b'p', 0xfc]);
        assert_eq!(latin1("€"), "€".as_bytes());
    }
}
