//! Certificates as bytes: what goes into one, and signing it.
//!
//! Names are carried over byte for byte, never decoded and written anew: an issuer must equal the subject of its
//! CA exactly, and the subject of a request is the requester's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use const_oid::ObjectIdentifier;
use der::asn1::{AnyRef, BitString, BitStringRef, GeneralizedTime, OctetString, UintRef, UtcTime};
use der::{Decode, Encode, Sequence};
use spki::{AlgorithmIdentifierRef, SubjectPublicKeyInfoRef};
use x509_cert::ext::Extension;
use x509_cert::time::{Time, Validity};

use super::key::{KeyError, PrivateKey};
use super::pem;

pub(crate) const KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.15");
pub(crate) const EXTENDED_KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37");
pub(crate) const BASIC_CONSTRAINTS: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.19");
pub(crate) const SUBJECT_KEY_IDENTIFIER: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.14");
pub(crate) const AUTHORITY_KEY_IDENTIFIER: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.35");

pub(crate) const CERTIFICATE: &str = "CERTIFICATE";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The first second that `UTCTime` cannot represent: 2050-01-01.
const END_OF_UTC_TIME: Duration = Duration::from_secs(2_524_608_000);

/// The part of a certificate that is signed.
#[derive(Sequence)]
struct Signed<'a> {
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT")]
    version: u8,
    serial_number: UintRef<'a>,
    signature: AlgorithmIdentifierRef<'a>,
    issuer: AnyRef<'a>,
    validity: Validity,
    subject: AnyRef<'a>,
    public_key: AnyRef<'a>,
    #[asn1(context_specific = "3", tag_mode = "EXPLICIT")]
    extensions: Vec<Extension>,
}

/// A certificate or a request: what is signed, how, and the signature.
#[derive(Sequence)]
pub(crate) struct Whole<'a> {
    pub(crate) signed: AnyRef<'a>,
    pub(crate) algorithm: AlgorithmIdentifierRef<'a>,
    pub(crate) signature: BitStringRef<'a>,
}

/// Reads a stored certificate: only what signing with it needs.
#[derive(Sequence)]
struct Issued<'a> {
    signed: IssuedSigned<'a>,
    algorithm: AnyRef<'a>,
    signature: BitString,
}

#[derive(Sequence)]
struct IssuedSigned<'a> {
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    version: Option<u8>,
    serial_number: AnyRef<'a>,
    signature: AnyRef<'a>,
    issuer: AnyRef<'a>,
    validity: Validity,
    subject: AnyRef<'a>,
    public_key: AnyRef<'a>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", optional = "true")]
    issuer_id: Option<BitString>,
    #[asn1(context_specific = "2", tag_mode = "IMPLICIT", optional = "true")]
    subject_id: Option<BitString>,
    #[asn1(context_specific = "3", tag_mode = "EXPLICIT", optional = "true")]
    extensions: Option<Vec<Extension>>,
}

/// Why a certificate cannot be made, or a stored one not be read.
#[derive(Debug, thiserror::Error)]
pub enum CertificateFormatError {
    /// The key failed.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A stored certificate is none.
    #[error("the stored certificate cannot be read: {0}")]
    Unreadable(String),
    /// Something cannot be written as DER.
    #[error("the certificate cannot be written: {0}")]
    Encoding(#[from] der::Error),
    /// It ended.
    #[error("the CA's certificate has expired on {0}; rotate the cluster's CA")]
    Expired(String),
}

/// When a certificate is valid, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) not_before: Duration,
    pub(crate) not_after: Duration,
}

impl Period {
    /// From a day ago, for clocks that are behind, and for `days`.
    pub(crate) fn starting(now: SystemTime, days: u32) -> Self {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        // Whole seconds: a certificate has no others.
        let now = Duration::from_secs(now.as_secs());
        Self {
            not_before: now.saturating_sub(DAY),
            not_after: now.saturating_add(DAY.saturating_mul(days)),
        }
    }

    /// The part of it that lies within another one.
    pub(crate) fn within(self, outer: Self) -> Self {
        Self {
            not_before: self.not_before.max(outer.not_before),
            not_after: self.not_after.min(outer.not_after),
        }
    }

    fn validity(self) -> der::Result<Validity> {
        Ok(Validity {
            not_before: time(self.not_before)?,
            not_after: time(self.not_after)?,
        })
    }
}

fn time(at: Duration) -> der::Result<Time> {
    if at < END_OF_UTC_TIME {
        Ok(Time::UtcTime(UtcTime::from_unix_duration(at)?))
    } else {
        Ok(Time::GeneralTime(GeneralizedTime::from_unix_duration(at)?))
    }
}

/// The content of a certificate to be signed.
pub(crate) struct Draft<'a> {
    /// A `Name`.
    pub(crate) issuer: &'a [u8],
    /// A `Name`.
    pub(crate) subject: &'a [u8],
    /// A `SubjectPublicKeyInfo`.
    pub(crate) public_key: &'a [u8],
    pub(crate) period: Period,
    pub(crate) extensions: Vec<Extension>,
}

/// Signs a draft. Returns PEM without a newline at its end.
pub(crate) fn issue(draft: Draft<'_>, key: &PrivateKey) -> Result<String, CertificateFormatError> {
    // As Magnum: a random uuid as a number.
    let serial = uuid::Uuid::new_v4().into_bytes();
    let algorithm = key.algorithm();
    let signed = Signed {
        version: 2,
        serial_number: UintRef::new(&serial)?,
        signature: algorithm,
        issuer: AnyRef::from_der(draft.issuer)?,
        validity: draft.period.validity()?,
        subject: AnyRef::from_der(draft.subject)?,
        public_key: AnyRef::from_der(draft.public_key)?,
        extensions: draft.extensions,
    }
    .to_der()?;
    let signature = key.sign(&signed)?;
    let whole = Whole {
        signed: AnyRef::from_der(&signed)?,
        algorithm,
        signature: BitStringRef::from_bytes(&signature)?,
    }
    .to_der()?;
    Ok(pem::encode(CERTIFICATE, &whole))
}

/// What is needed of a stored certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) subject: Vec<u8>,
    pub(crate) public_key: Vec<u8>,
    pub(crate) period: Period,
    /// The identifier of its key: its subject key identifier, else the computed one.
    pub(crate) key_id: Vec<u8>,
    /// The identifier of the key that signed it: its authority key identifier.
    pub(crate) authority_key_id: Option<Vec<u8>>,
}

/// Reads a stored certificate.
pub(crate) fn read(text: &str) -> Result<Facts, CertificateFormatError> {
    let unreadable = |error: &dyn std::fmt::Display| CertificateFormatError::Unreadable(error.to_string());
    let (_, der) = pem::decode(text, &[CERTIFICATE]).map_err(|error| unreadable(&error))?;
    let whole = Issued::from_der(&der).map_err(|error| unreadable(&error))?;
    let signed = whole.signed;
    let public_key = signed.public_key.to_der().map_err(|error| unreadable(&error))?;
    let extension = |oid| {
        signed
            .extensions
            .iter()
            .flatten()
            .find(|extension| extension.extn_id == oid)
            .map(|extension| extension.extn_value.as_bytes())
    };
    let key_id = match extension(SUBJECT_KEY_IDENTIFIER) {
        Some(value) => OctetString::from_der(value)
            .map_err(|error| unreadable(&error))?
            .into_bytes(),
        None => key_id(&public_key).map_err(|error| unreadable(&error))?,
    };
    let authority_key_id = extension(AUTHORITY_KEY_IDENTIFIER)
        .and_then(|value| x509_cert::ext::pkix::AuthorityKeyIdentifier::from_der(value).ok())
        .and_then(|authority| authority.key_identifier)
        .map(OctetString::into_bytes);
    Ok(Facts {
        subject: signed.subject.to_der().map_err(|error| unreadable(&error))?,
        public_key,
        period: Period {
            not_before: signed.validity.not_before.to_unix_duration(),
            not_after: signed.validity.not_after.to_unix_duration(),
        },
        key_id,
        authority_key_id,
    })
}

/// The identifier of a public key that all libraries agree on: SHA-1 of its bits.
pub(crate) fn key_id(public_key: &[u8]) -> der::Result<Vec<u8>> {
    let info = SubjectPublicKeyInfoRef::from_der(public_key)?;
    let bits = info.subject_public_key.raw_bytes();
    Ok(
        aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, bits)
            .as_ref()
            .to_vec(),
    )
}

/// An extension with this value.
pub(crate) fn extension(
    oid: ObjectIdentifier,
    critical: bool,
    value: &impl Encode,
) -> der::Result<Extension> {
    Ok(Extension {
        extn_id: oid,
        critical,
        extn_value: OctetString::new(value.to_der()?)?,
    })
}

/// The two extensions that every certificate gets: which key it is for, and which key signed it.
pub(crate) fn key_identifiers(own: &[u8], authority: &[u8]) -> der::Result<[Extension; 2]> {
    Ok([
        extension(SUBJECT_KEY_IDENTIFIER, false, &OctetString::new(own)?)?,
        extension(
            AUTHORITY_KEY_IDENTIFIER,
            false,
            &x509_cert::ext::pkix::AuthorityKeyIdentifier {
                key_identifier: Some(OctetString::new(authority)?),
                ..Default::default()
            },
        )?,
    ])
}
