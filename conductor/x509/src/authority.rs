//! CAs: making one, opening a stored one, and the client certificate that it signs for the conductor.
//!
//! The content of certificates is that of Magnum, with three differences: it has an authority key
//! identifier, it does not outlive its CA, and its times are UTC (Magnum writes the host's local time as if it
//! were UTC).

use std::time::SystemTime;

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5280::ID_KP_CLIENT_AUTH;
use der::asn1::{Any, SetOfVec};
use der::{Encode, Tag};
use magnum_common::secret::Secret;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages};
use x509_cert::name::{RdnSequence, RelativeDistinguishedName};

use super::certificate::{
    self, BASIC_CONSTRAINTS, CertificateFormatError, Draft, EXTENDED_KEY_USAGE, KEY_USAGE, Period,
};
use super::key::PrivateKey;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");
/// Most characters of a common name.
const LONGEST_NAME: usize = 64;

/// A certificate with its private key, as a manager keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyPair {
    /// PEM, without a newline at its end.
    pub certificate: String,
    /// PEM; encrypted where there is a passphrase.
    pub private_key: Secret,
    /// The passphrase of the private key.
    pub passphrase: Option<Secret>,
    /// PEM of the certificates between this one and its root; Magnum makes none.
    pub intermediates: Option<String>,
}

/// A CA that can sign.
#[derive(Debug)]
pub struct Authority {
    pub(crate) facts: certificate::Facts,
    pub(crate) key: PrivateKey,
}

impl Authority {
    /// A new CA with this key, for the cluster of this name, and what is to be kept of it. Blocks for as long as
    /// signing takes.
    ///
    /// # Errors
    /// The name fits into no certificate, or the key does not sign.
    pub fn new(
        name: &str,
        key: PrivateKey,
        days: u32,
        now: SystemTime,
    ) -> Result<(Self, KeyPair), CertificateFormatError> {
        let public_key = key.public_key()?;
        let key_id = certificate::key_id(&public_key)?;
        let subject = common_name(name)?;
        let mut extensions = vec![constraints(true)?, usage(KeyUsages::KeyCertSign.into())?];
        extensions.extend(certificate::key_identifiers(&key_id, &key_id)?);
        let certificate = certificate::issue(
            Draft {
                issuer: &subject,
                subject: &subject,
                public_key: &public_key,
                period: Period::starting(now, days),
                extensions,
            },
            &key,
        )?;
        let pair = stored_pair(certificate, &key)?;
        let facts = certificate::read(&pair.certificate)?;
        Ok((Self { facts, key }, pair))
    }

    /// A stored CA.
    ///
    /// # Errors
    /// See [`CertificateFormatError`].
    pub fn open(pair: &KeyPair) -> Result<Self, CertificateFormatError> {
        Ok(Self {
            facts: certificate::read(&pair.certificate)?,
            key: PrivateKey::from_pem(&pair.private_key, pair.passphrase.as_ref())?,
        })
    }

    /// A new client certificate for the conductor, with this key: an administrator of the cluster. Blocks for as long
    /// as signing takes.
    ///
    /// # Errors
    /// The CA has expired, or does not sign.
    pub fn client(
        &self,
        key: &PrivateKey,
        days: u32,
        now: SystemTime,
    ) -> Result<KeyPair, CertificateFormatError> {
        let public_key = key.public_key()?;
        let mut extensions = vec![
            usage(KeyUsages::DigitalSignature | KeyUsages::KeyEncipherment)?,
            certificate::extension(
                EXTENDED_KEY_USAGE,
                false,
                &ExtendedKeyUsage(vec![ID_KP_CLIENT_AUTH]),
            )?,
            constraints(false)?,
        ];
        extensions.extend(certificate::key_identifiers(
            &certificate::key_id(&public_key)?,
            &self.facts.key_id,
        )?);
        let certificate = certificate::issue(
            Draft {
                issuer: &self.facts.subject,
                subject: &name(&[(COMMON_NAME, "admin"), (ORGANIZATION, "system:masters")])?,
                public_key: &public_key,
                period: self.period(days, now)?,
                extensions,
            },
            &self.key,
        )?;
        stored_pair(certificate, key)
    }

    /// Whether a stored certificate was signed by this CA.
    pub fn has_signed(&self, pair: &KeyPair) -> bool {
        certificate::read(&pair.certificate)
            .is_ok_and(|facts| facts.authority_key_id.as_ref() == Some(&self.facts.key_id))
    }

    /// The validity of a certificate that is signed now: never longer than that of the CA.
    pub(crate) fn period(&self, days: u32, now: SystemTime) -> Result<Period, CertificateFormatError> {
        let wanted = Period::starting(now, days);
        let period = wanted.within(self.facts.period);
        let is_over = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .is_ok_and(|now| now > self.facts.period.not_after);
        if is_over {
            let end = i64::try_from(self.facts.period.not_after.as_secs()).unwrap_or(i64::MAX);
            let end = chrono::DateTime::from_timestamp(end, 0).map_or_else(
                || format!("second {end}"),
                |end| end.format("%F %T UTC").to_string(),
            );
            return Err(CertificateFormatError::Expired(end));
        }
        Ok(period)
    }
}

/// The name of a cluster's CA: that of the cluster, or its uuid where the name is empty, or too long for a certificate
/// (Magnum's library refuses such a name, and the cluster fails).
pub fn authority_name<'a>(name: Option<&'a str>, uuid: &'a str) -> &'a str {
    match name {
        Some(name) if !name.is_empty() && name.chars().count() <= LONGEST_NAME => name,
        _ => uuid,
    }
}

fn stored_pair(certificate: String, key: &PrivateKey) -> Result<KeyPair, CertificateFormatError> {
    let (private_key, passphrase) = key.to_encrypted_pem()?;
    Ok(KeyPair {
        certificate,
        private_key,
        passphrase: Some(passphrase),
        intermediates: None,
    })
}

fn common_name(text: &str) -> der::Result<Vec<u8>> {
    name(&[(COMMON_NAME, text)])
}

fn name(parts: &[(ObjectIdentifier, &str)]) -> der::Result<Vec<u8>> {
    let parts = parts
        .iter()
        .map(|(oid, text)| {
            let part = AttributeTypeAndValue {
                oid: *oid,
                value: Any::new(Tag::Utf8String, text.as_bytes())?,
            };
            Ok(RelativeDistinguishedName(SetOfVec::try_from(vec![part])?))
        })
        .collect::<der::Result<Vec<_>>>()?;
    RdnSequence(parts).to_der()
}

fn constraints(ca: bool) -> der::Result<Extension> {
    let value = BasicConstraints {
        ca,
        path_len_constraint: ca.then_some(0),
    };
    certificate::extension(BASIC_CONSTRAINTS, true, &value)
}

fn usage(usages: der::flagset::FlagSet<KeyUsages>) -> der::Result<Extension> {
    certificate::extension(KEY_USAGE, true, &KeyUsage(usages))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use magnum_common::clock::utc_now;

    use super::*;
    use crate::key::KeyKind;

    fn key() -> PrivateKey {
        PrivateKey::generate(KeyKind::EcdsaP256).unwrap()
    }

    fn authority() -> (Authority, KeyPair) {
        Authority::new("k8s", key(), 10, utc_now().into()).unwrap()
    }

    #[test]
    fn stored_authority_opens_unchanged() {
        let (made, pair) = authority();
        let opened = Authority::open(&pair).unwrap();
        assert_eq!(opened.facts, made.facts);
        assert_eq!(made.facts.authority_key_id.as_ref(), Some(&made.facts.key_id));
        let client = opened.client(&key(), 10, utc_now().into()).unwrap();
        assert!(made.has_signed(&client));
        let (other, _) = authority();
        assert!(!other.has_signed(&client), "the same name, another key");
    }

    #[test]
    fn client_certificate_ends_with_its_authority_and_an_expired_authority_signs_nothing() {
        let (authority, _) = authority();
        let later = SystemTime::from(utc_now()) + Duration::from_secs(5 * 24 * 60 * 60);
        let client = authority.client(&key(), 100, later).unwrap();
        let facts = certificate::read(&client.certificate).unwrap();
        assert_eq!(facts.period.not_after, authority.facts.period.not_after);
        let too_late = SystemTime::from(utc_now()) + Duration::from_secs(11 * 24 * 60 * 60);
        let refused = authority.client(&key(), 1, too_late).unwrap_err().to_string();
        assert!(refused.contains("rotate"), "{refused}");
    }

    #[test]
    fn period_beyond_2049_is_encoded() {
        let (authority, _) = Authority::new("k8s", key(), 36_500, utc_now().into()).unwrap();
        assert!(authority.facts.period.not_after > Duration::from_secs(4_000_000_000));
    }

    #[test]
    fn unusable_name_is_replaced_by_the_uuid() {
        assert_eq!(authority_name(Some("k8s"), "u"), "k8s");
        assert_eq!(authority_name(Some(&"ü".repeat(64)), "u"), "ü".repeat(64));
        for unfit in [None, Some(""), Some(&*"x".repeat(65))] {
            assert_eq!(authority_name(unfit, "u"), "u");
        }
    }
}
