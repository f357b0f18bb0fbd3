//! A certificate request (PKCS#10): decoding it, and checking that its sender has its key.

use aws_lc_rs::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use const_oid::ObjectIdentifier;
use const_oid::db::rfc5912::ID_EXTENSION_REQ;
use der::asn1::{Any, AnyRef, BitStringRef, SetOfVec, UintRef};
use der::{Decode, Encode, Reader, Sequence, SliceReader, Tag, Tagged};
use spki::{AlgorithmIdentifierRef, SubjectPublicKeyInfoRef};
use x509_cert::attr::Attribute;
use x509_cert::ext::Extension;
use x509_cert::name::RdnSequence;

use super::certificate::{self, Whole};
use super::key::{
    CURVE_P256, CURVE_P384, EC_PUBLIC_KEY, ECDSA_WITH_SHA256, ECDSA_WITH_SHA384, RSA_ENCRYPTION,
    SHA256_WITH_RSA,
};
use super::pem;
use super::signing_error::SigningError;

const SHA384_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.12");
const SHA512_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.13");
const RSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
const SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");

const LEAST_RSA_BITS: usize = 2048;
/// More is not a stronger key but a slow one: each check costs time.
const MOST_RSA_BITS: usize = 8192;
/// More extensions than any certificate has.
const MOST_EXTENSIONS: usize = 64;

/// `openssl req` writes the first, some older tools the second.
const LABELS: &[&str] = &["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"];

#[derive(Sequence)]
struct Signed<'a> {
    version: u8,
    subject: AnyRef<'a>,
    public_key: AnyRef<'a>,
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", optional = "true")]
    attributes: Option<SetOfVec<Attribute>>,
}

#[derive(Sequence)]
struct RsaPublicKey<'a> {
    modulus: UintRef<'a>,
    exponent: UintRef<'a>,
}

/// A request that could be read. Nothing of it has been checked yet.
pub(crate) struct Request<'a> {
    signed: Vec<u8>,
    algorithm: AlgorithmIdentifierRef<'a>,
    signature: BitStringRef<'a>,
    subject: Vec<u8>,
    public_key: Vec<u8>,
    attributes: SetOfVec<Attribute>,
}

fn invalid(reason: impl std::fmt::Display) -> SigningError {
    SigningError::Request(reason.to_string())
}

impl<'a> Request<'a> {
    /// The bytes in a request's PEM.
    pub(crate) fn bytes(text: &str) -> Result<Vec<u8>, SigningError> {
        pem::decode(text, LABELS).map(|(_, der)| der).map_err(invalid)
    }

    /// Takes the bytes apart.
    pub(crate) fn read(der: &'a [u8]) -> Result<Self, SigningError> {
        let unreadable = |error| invalid(format!("it is not a PKCS#10 request: {error}"));
        let whole = Whole::from_der(der).map_err(unreadable)?;
        let signed = whole.signed.to_der().map_err(unreadable)?;
        let info = Signed::from_der(&signed).map_err(unreadable)?;
        if info.version != 0 {
            return Err(invalid(format!("its version is {}, expected 0", info.version)));
        }
        let subject = info.subject.to_der().map_err(unreadable)?;
        RdnSequence::from_der(&subject)
            .map_err(|error| invalid(format!("its subject is not a name: {error}")))?;
        let public_key = info.public_key.to_der().map_err(unreadable)?;
        let attributes = info.attributes.unwrap_or_default();
        Ok(Self {
            algorithm: whole.algorithm,
            signature: whole.signature,
            subject,
            public_key,
            attributes,
            signed,
        })
    }

    /// Its subject, a `Name`, as it came.
    pub(crate) fn subject(&self) -> &[u8] {
        &self.subject
    }

    /// Its key, a `SubjectPublicKeyInfo`, as it came.
    pub(crate) fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// The identifier of its key.
    pub(crate) fn key_id(&self) -> Result<Vec<u8>, SigningError> {
        certificate::key_id(&self.public_key).map_err(invalid)
    }

    /// The extensions it asks for, each once.
    pub(crate) fn extensions(&self) -> Result<Vec<Extension>, SigningError> {
        let mut wanted = self
            .attributes
            .iter()
            .filter(|attribute| attribute.oid == ID_EXTENSION_REQ)
            .flat_map(|attribute| attribute.values.iter());
        let Some(value) = wanted.next() else {
            return Ok(Vec::new());
        };
        if wanted.next().is_some() {
            return Err(invalid(
                "it asks for extensions twice; put them into one attribute",
            ));
        }
        let extensions = value
            .decode_as::<Vec<Extension>>()
            .map_err(|error| invalid(format!("its extensions cannot be read: {error}")))?;
        if extensions.len() > MOST_EXTENSIONS {
            return Err(invalid(format!(
                "it asks for {} extensions, {MOST_EXTENSIONS} are the most",
                extensions.len()
            )));
        }
        for (index, extension) in extensions.iter().enumerate() {
            let earlier = extensions.iter().take(index);
            if earlier
                .into_iter()
                .any(|other| other.extn_id == extension.extn_id)
            {
                return Err(invalid(format!(
                    "it asks for the extension {} twice",
                    super::extensions::name(extension.extn_id)
                )));
            }
        }
        Ok(extensions)
    }

    /// Whether the key is strong enough, and has signed the request.
    pub(crate) fn check_key_and_signature(&self) -> Result<(), SigningError> {
        let info = SubjectPublicKeyInfoRef::from_der(&self.public_key)
            .map_err(|error| invalid(format!("its public key cannot be read: {error}")))?;
        let bits = info
            .subject_public_key
            .as_bytes()
            .ok_or_else(|| invalid("its public key is not whole bytes"))?;
        let key = Key::of(&info.algorithm, bits)?;
        let algorithm = self.verification(key)?;
        let signature = self
            .signature
            .as_bytes()
            .ok_or_else(|| invalid("its signature is not whole bytes"))?;
        UnparsedPublicKey::new(algorithm, bits)
            .verify(&self.signed, signature)
            .map_err(|_| {
                invalid("its signature was not made by its own key, or the request was changed since")
            })
    }

    fn verification(&self, key: Key) -> Result<&'static dyn VerificationAlgorithm, SigningError> {
        let oid = self.algorithm.oid;
        Ok(match (key, oid) {
            (Key::Rsa, SHA256_WITH_RSA) => &signature::RSA_PKCS1_2048_8192_SHA256,
            (Key::Rsa, SHA384_WITH_RSA) => &signature::RSA_PKCS1_2048_8192_SHA384,
            (Key::Rsa, SHA512_WITH_RSA) => &signature::RSA_PKCS1_2048_8192_SHA512,
            (Key::Rsa, RSA_PSS) => match pss_hash(&self.algorithm) {
                Some(SHA256) => &signature::RSA_PSS_2048_8192_SHA256,
                Some(SHA384) => &signature::RSA_PSS_2048_8192_SHA384,
                Some(SHA512) => &signature::RSA_PSS_2048_8192_SHA512,
                _ => return Err(unknown_signature(&oid)),
            },
            (Key::P256, ECDSA_WITH_SHA256) => &signature::ECDSA_P256_SHA256_ASN1,
            (Key::P256, ECDSA_WITH_SHA384) => &signature::ECDSA_P256_SHA384_ASN1,
            (Key::P384, ECDSA_WITH_SHA256) => &signature::ECDSA_P384_SHA256_ASN1,
            (Key::P384, ECDSA_WITH_SHA384) => &signature::ECDSA_P384_SHA384_ASN1,
            (Key::Ed25519, ED25519) => &signature::ED25519,
            _ => return Err(unknown_signature(&oid)),
        })
    }
}

fn unknown_signature(oid: &ObjectIdentifier) -> SigningError {
    invalid(format!(
        "it is signed by the algorithm {oid}, which is not accepted for its key; sign it with SHA-256"
    ))
}

/// Keys that a certificate may be for.
#[derive(Clone, Copy)]
enum Key {
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl Key {
    fn of(algorithm: &AlgorithmIdentifierRef<'_>, bits: &[u8]) -> Result<Self, SigningError> {
        match algorithm.oid {
            RSA_ENCRYPTION => {
                let key = RsaPublicKey::from_der(bits)
                    .map_err(|error| invalid(format!("its RSA key cannot be read: {error}")))?;
                let leading = key
                    .modulus
                    .as_bytes()
                    .first()
                    .map_or(8, |first| first.leading_zeros() as usize);
                let size = (key.modulus.as_bytes().len() * 8).saturating_sub(leading);
                if !(LEAST_RSA_BITS..=MOST_RSA_BITS).contains(&size) {
                    return Err(invalid(format!(
                        "its RSA key has {size} bits; {LEAST_RSA_BITS} to {MOST_RSA_BITS} are accepted"
                    )));
                }
                Ok(Self::Rsa)
            }
            EC_PUBLIC_KEY => match algorithm.parameters_oid() {
                Ok(CURVE_P256) => Ok(Self::P256),
                Ok(CURVE_P384) => Ok(Self::P384),
                Ok(curve) => Err(invalid(format!(
                    "its key is on the curve {curve}; P-256 and P-384 are accepted"
                ))),
                Err(_) => Err(invalid(
                    "its key does not name its curve; P-256 and P-384 are accepted",
                )),
            },
            ED25519 => Ok(Self::Ed25519),
            other => Err(invalid(format!(
                "its key is of the kind {other}; RSA, ECDSA (P-256, P-384) and Ed25519 are accepted"
            ))),
        }
    }
}

/// The hash of RSASSA-PSS parameters; `None` where it is the default (SHA-1) or they cannot be read.
fn pss_hash(algorithm: &AlgorithmIdentifierRef<'_>) -> Option<ObjectIdentifier> {
    let parameters = algorithm.parameters.filter(|any| any.tag() == Tag::Sequence)?;
    let mut reader = SliceReader::new(parameters.value()).ok()?;
    let hash: Any = reader.decode().ok()?;
    let is_hash = matches!(hash.tag(), Tag::ContextSpecific { number, .. } if number.value() == 0);
    let hash = is_hash.then(|| AlgorithmIdentifierRef::from_der(hash.value()).ok())??;
    Some(hash.oid)
}
