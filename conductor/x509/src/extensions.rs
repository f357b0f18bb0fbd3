//! Which extensions of a request go into its certificate, by the options of `[x509]`.
//!
//! As in Magnum: what is not allowed is an error where the request calls it critical, and is left out where it
//! does not. Unlike Magnum, key identifiers are never taken from a request: the signer puts its own there, once.

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5280::ID_PE_AUTHORITY_INFO_ACCESS;
use const_oid::db::rfc6960::ID_PKIX_OCSP_NOCHECK;
use der::asn1::{AnyRef, Null};
use der::{Decode, Encode};
use magnum_config::value::Keyword;
use magnum_config::{X509Extension, X509KeyUsage, X509Section};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::{
    BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages, NameConstraints, SubjectAltName,
};

use super::certificate::{
    self, AUTHORITY_KEY_IDENTIFIER, BASIC_CONSTRAINTS, KEY_USAGE, SUBJECT_KEY_IDENTIFIER,
};
use super::signing_error::SigningError;

/// What requests may ask for, and for how long they are signed.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Whether a certificate may sign others.
    pub allow_ca: bool,
    /// Extensions that may be there.
    pub extensions: Vec<X509Extension>,
    /// Purposes that a key may have.
    pub usages: Vec<X509KeyUsage>,
    /// Days that a certificate is valid, if its CA is.
    pub days: u32,
}

impl From<&X509Section> for Rules {
    fn from(section: &X509Section) -> Self {
        Self {
            allow_ca: section.allow_ca,
            extensions: section.allowed_extensions.clone(),
            usages: section.allowed_key_usage.clone(),
            days: section.term_of_validity,
        }
    }
}

impl Rules {
    fn allows(&self, usage: KeyUsages) -> bool {
        let signs = matches!(usage, KeyUsages::KeyCertSign | KeyUsages::CRLSign);
        (self.allow_ca || !signs) && self.usages.iter().any(|allowed| flag(*allowed) == usage)
    }
}

fn known(oid: ObjectIdentifier) -> Option<X509Extension> {
    match oid {
        ID_PKIX_OCSP_NOCHECK => return Some(X509Extension::OcspNoCheck),
        ID_PE_AUTHORITY_INFO_ACCESS => return Some(X509Extension::AuthorityInfoAccess),
        _ => {}
    }
    // 2.5.29.n
    let &[0x55, 0x1d, last] = oid.as_bytes() else {
        return None;
    };
    Some(match last {
        14 => X509Extension::SubjectKeyIdentifier,
        15 => X509Extension::KeyUsage,
        17 => X509Extension::SubjectAltName,
        18 => X509Extension::IssuerAltName,
        19 => X509Extension::BasicConstraints,
        30 => X509Extension::NameConstraints,
        31 => X509Extension::CrlDistributionPoints,
        32 => X509Extension::CertificatePolicies,
        35 => X509Extension::AuthorityKeyIdentifier,
        37 => X509Extension::ExtendedKeyUsage,
        54 => X509Extension::InhibitAnyPolicy,
        _ => return None,
    })
}

/// An extension's name in OpenSSL, or its number.
pub(crate) fn name(oid: ObjectIdentifier) -> String {
    known(oid).map_or_else(|| oid.to_string(), |known| known.word().to_owned())
}

fn flag(usage: X509KeyUsage) -> KeyUsages {
    match usage {
        X509KeyUsage::DigitalSignature => KeyUsages::DigitalSignature,
        X509KeyUsage::KeyEncipherment => KeyUsages::KeyEncipherment,
        X509KeyUsage::NonRepudiation => KeyUsages::NonRepudiation,
        X509KeyUsage::DataEncipherment => KeyUsages::DataEncipherment,
        X509KeyUsage::KeyAgreement => KeyUsages::KeyAgreement,
        X509KeyUsage::CertificateSign => KeyUsages::KeyCertSign,
        X509KeyUsage::CrlSign => KeyUsages::CRLSign,
        X509KeyUsage::EncipherOnly => KeyUsages::EncipherOnly,
        X509KeyUsage::DecipherOnly => KeyUsages::DecipherOnly,
    }
}

fn usage_name(usage: KeyUsages) -> &'static str {
    X509KeyUsage::WORDS
        .iter()
        .find(|(named, _)| flag(*named) == usage)
        .map_or("?", |(_, word)| *word)
}

/// The requested extensions that go into the certificate. Key identifiers do not: the signer adds its own.
pub(crate) fn allowed(wanted: Vec<Extension>, rules: &Rules) -> Result<Vec<Extension>, SigningError> {
    let mut taken = Vec::new();
    for extension in wanted {
        let is_allowed = known(extension.extn_id).is_some_and(|known| rules.extensions.contains(&known));
        if !is_allowed {
            if extension.critical {
                return Err(refused(
                    &extension,
                    "the request calls it critical and it is not in [x509] allowed_extensions",
                ));
            }
            continue;
        }
        match extension.extn_id {
            SUBJECT_KEY_IDENTIFIER | AUTHORITY_KEY_IDENTIFIER => {}
            KEY_USAGE => taken.push(key_usage(&extension, rules)?),
            BASIC_CONSTRAINTS => taken.push(basic_constraints(extension, rules)?),
            _ => {
                check_value(&extension)?;
                taken.push(extension);
            }
        }
    }
    Ok(taken)
}

fn refused(extension: &Extension, reason: &str) -> SigningError {
    SigningError::Extension {
        extension: name(extension.extn_id),
        reason: reason.to_owned(),
    }
}

fn unreadable(extension: &Extension, error: &dyn std::fmt::Display) -> SigningError {
    SigningError::Request(format!(
        "its extension {} cannot be read: {error}",
        name(extension.extn_id)
    ))
}

/// Purposes that are not allowed are an error or taken away.
fn key_usage(extension: &Extension, rules: &Rules) -> Result<Extension, SigningError> {
    let wanted =
        KeyUsage::from_der(extension.extn_value.as_bytes()).map_err(|error| unreadable(extension, &error))?;
    let mut usages = wanted.0;
    if !usages.contains(KeyUsages::KeyAgreement) {
        // Without it these two have no meaning.
        usages -= KeyUsages::EncipherOnly | KeyUsages::DecipherOnly;
    }
    for usage in usages.into_iter() {
        if rules.allows(usage) {
            continue;
        }
        if extension.critical {
            return Err(refused(
                extension,
                &format!(
                    "the request calls it critical and '{}' is not in [x509] allowed_key_usage",
                    usage_name(usage)
                ),
            ));
        }
        usages -= usage;
    }
    certificate::extension(KEY_USAGE, extension.critical, &KeyUsage(usages))
        .map_err(|error| unreadable(extension, &error))
}

fn basic_constraints(extension: Extension, rules: &Rules) -> Result<Extension, SigningError> {
    let wanted = BasicConstraints::from_der(extension.extn_value.as_bytes())
        .map_err(|error| unreadable(&extension, &error))?;
    if rules.allow_ca || !wanted.ca {
        return Ok(extension);
    }
    if extension.critical {
        return Err(refused(
            &extension,
            "the request asks to become a CA, and [x509] allow_ca is false",
        ));
    }
    let value = BasicConstraints {
        ca: false,
        path_len_constraint: None,
    };
    certificate::extension(BASIC_CONSTRAINTS, false, &value).map_err(|error| unreadable(&extension, &error))
}

/// Refuses a value that does not decode as its extension: everybody would refuse the certificate later.
fn check_value(extension: &Extension) -> Result<(), SigningError> {
    let value = extension.extn_value.as_bytes();
    let checked = match known(extension.extn_id) {
        Some(X509Extension::ExtendedKeyUsage) => ExtendedKeyUsage::from_der(value).and_then(|usage| {
            if usage.0.is_empty() {
                Err(der::Tag::Sequence.length_error())
            } else {
                Ok(())
            }
        }),
        Some(X509Extension::SubjectAltName | X509Extension::IssuerAltName) => {
            SubjectAltName::from_der(value).map(drop)
        }
        Some(X509Extension::NameConstraints) => NameConstraints::from_der(value).map(drop),
        Some(X509Extension::OcspNoCheck) => Null::from_der(value).map(drop),
        _ => AnyRef::from_der(value).and_then(|any| any.to_der()).map(drop),
    };
    checked.map_err(|error| unreadable(extension, &error))
}
