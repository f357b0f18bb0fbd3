//! Requests of many kinds, made by OpenSSL: what is signed, what is left out, what is refused, and what is said.

use anyhow::{Context as _, Result};
use magnum_common::clock::utc_now;
use magnum_common::error::{Exception, Fault};
use magnum_config::{Settings, X509Extension, X509KeyUsage};
use magnum_x509::SigningError;
use magnum_x509::authority::Authority;
use magnum_x509::extensions::Rules;
use magnum_x509::key::{KeyKind, PrivateKey};
use magnum_x509::signing::sign;

use super::Bench;

/// A CA, and OpenSSL beside it.
struct Office {
    bench: Bench,
    ca: Authority,
    rules: Rules,
}

impl Office {
    fn new() -> Result<Self> {
        let bench = Bench::new()?;
        let (ca, pair) = Authority::new(
            "k8s",
            PrivateKey::generate(KeyKind::EcdsaP256)?,
            100,
            utc_now().into(),
        )?;
        bench.write("ca.pem", &pair.certificate)?;
        Ok(Self {
            bench,
            ca,
            rules: Rules::from(&Settings::default().x509),
        })
    }

    /// A request for a new key with these lines as its extensions.
    fn request(&self, key: &str, extensions: &str) -> Result<String> {
        let (wanted, section) = match extensions {
            "" => ("", String::new()),
            lines => ("req_extensions=e\n", format!("[e]\n{lines}\n")),
        };
        let config = format!(
            "[req]\ndistinguished_name=d\nprompt=no\nutf8=yes\n{wanted}[d]\nCN=node-ü\nO=system:nodes\n{section}"
        );
        self.bench.write("req.cnf", &config)?;
        self.bench.openssl(&format!(
            "req -new -config req.cnf -newkey {key} -nodes -keyout req.key -out req.pem"
        ))?;
        self.bench.read("req.pem")
    }

    fn sign(&self, csr: &str) -> Result<String, SigningError> {
        sign(csr, &self.ca, &self.rules, utc_now().into())
    }

    /// Signs, lets OpenSSL verify, and returns what it reads.
    fn signed(&self, csr: &str) -> Result<String> {
        let pem = self.sign(csr)?;
        self.bench.write("signed.pem", &pem)?;
        self.bench.openssl("verify -CAfile ca.pem signed.pem")?;
        self.bench
            .openssl("x509 -in signed.pem -noout -text -nameopt RFC2253,-esc_msb,utf8")
    }

    fn refused(&self, csr: &str) -> Fault {
        let error = self.sign(csr).unwrap_err();
        assert!(!matches!(error, SigningError::Authority(_)), "{error}");
        error.into()
    }
}

const P256: &str = "ec -pkeyopt ec_paramgen_curve:P-256";

#[test]
fn strong_keys_of_every_accepted_kind_are_signed() -> Result<()> {
    let office = Office::new()?;
    for key in [
        "rsa:2048",
        "rsa:4096",
        P256,
        "ec -pkeyopt ec_paramgen_curve:P-384",
        "ed25519",
    ] {
        let text = office.signed(&office.request(key, "")?).context(key)?;
        assert!(text.contains("Subject: O=system:nodes,CN=node-ü"), "{text}");
        assert!(text.contains("Issuer: CN=k8s"), "{text}");
        assert_eq!(text.matches("X509v3 Subject Key Identifier").count(), 1, "{text}");
        assert_eq!(
            text.matches("X509v3 Authority Key Identifier").count(),
            1,
            "{text}"
        );
    }
    Ok(())
}

#[test]
fn weak_and_unknown_keys_are_refused_with_the_accepted_ones() -> Result<()> {
    let office = Office::new()?;
    for (key, told) in [
        ("rsa:1024", "1024 bits; 2048 to 8192"),
        ("ec -pkeyopt ec_paramgen_curve:secp256k1", "P-256 and P-384"),
        ("ed448", "RSA, ECDSA (P-256, P-384) and Ed25519"),
    ] {
        let fault = office.refused(&office.request(key, "")?);
        assert_eq!(fault.exception, Exception::InvalidCsr);
        assert!(fault.message.contains(told), "{key}: {}", fault.message);
    }
    Ok(())
}

#[test]
fn every_signature_that_openssl_makes_by_default_or_on_demand_is_checked() -> Result<()> {
    let office = Office::new()?;
    office.request("rsa:2048", "")?;
    for options in [
        "-sha384",
        "-sha512",
        "-sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest",
    ] {
        office.bench.openssl(&format!(
            "req -new -config req.cnf -key req.key {options} -out again.pem"
        ))?;
        office.signed(&office.bench.read("again.pem")?).context(options)?;
    }
    office
        .bench
        .openssl("req -new -config req.cnf -key req.key -sha1 -out sha1.pem")?;
    let fault = office.refused(&office.bench.read("sha1.pem")?);
    assert!(
        fault.message.contains("sign it with SHA-256"),
        "{}",
        fault.message
    );
    Ok(())
}

#[test]
fn a_request_that_its_key_did_not_sign_is_refused() -> Result<()> {
    let office = Office::new()?;
    for key in ["rsa:2048", P256, "ed25519"] {
        office.request(key, "")?;
        office
            .bench
            .openssl("req -in req.pem -outform DER -out req.der")?;
        let der = std::fs::read(office.bench.path("req.der"))?;
        // The subject, and the last byte of the signature.
        let subject = der
            .windows(5)
            .position(|part| part == b"node-")
            .context("subject")?;
        for at in [subject, der.len() - 1] {
            let mut changed = der.clone();
            changed[at] ^= 1;
            std::fs::write(office.bench.path("changed.der"), changed)?;
            office
                .bench
                .openssl("req -inform DER -in changed.der -out changed.pem")?;
            let fault = office.refused(&office.bench.read("changed.pem")?);
            assert_eq!(fault.exception, Exception::InvalidCsr);
            assert!(fault.message.contains("signature"), "{key}: {}", fault.message);
        }
    }
    Ok(())
}

#[test]
fn malformed_signing_request_is_refused_without_quoting_it() -> Result<()> {
    let office = Office::new()?;
    let whole = office.request(P256, "")?;
    let half = whole.lines().take(3).collect::<Vec<_>>().join("\n");
    let short = format!("{half}\n-----END CERTIFICATE REQUEST-----");
    let certificate = office.bench.read("ca.pem")?;
    for (text, told) in [
        ("", "no PEM block"),
        ("hello", "no PEM block"),
        (&*certificate, "no PEM block"),
        (&*half, "cut off"),
        (&*short, "not "),
        (
            "-----BEGIN CERTIFICATE REQUEST-----\nEXAMPLE\n-----END CERTIFICATE REQUEST-----",
            "base64",
        ),
    ] {
        let fault = office.refused(text);
        assert_eq!(fault.exception, Exception::InvalidCsr);
        assert!(fault.message.contains(told), "{told}: {}", fault.message);
        assert!(fault.message.starts_with("Received invalid csr"));
    }
    assert!(office.signed(&format!("text before\n{whole}text after")).is_ok());
    Ok(())
}

#[test]
fn allowed_extensions_are_carried_over() -> Result<()> {
    let office = Office::new()?;
    let text = office.signed(&office.request(
        P256,
        "keyUsage=critical,digitalSignature,keyEncipherment,nonRepudiation\n\
         extendedKeyUsage=serverAuth,clientAuth\n\
         subjectAltName=DNS:node.example,IP:10.0.0.5,email:a@b.example,URI:urn:x\n\
         basicConstraints=critical,CA:FALSE\n\
         subjectKeyIdentifier=hash",
    )?)?;
    for part in [
        "X509v3 Key Usage: critical\n                Digital Signature, Non Repudiation, Key Encipherment",
        "TLS Web Server Authentication, TLS Web Client Authentication",
        "DNS:node.example, IP Address:10.0.0.5, email:a@b.example, URI:urn:x",
        "X509v3 Basic Constraints: critical\n                CA:FALSE",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(text.matches("X509v3 Subject Key Identifier").count(), 1, "{text}");
    Ok(())
}

#[test]
fn disallowed_extension_is_dropped_or_refused_if_critical() -> Result<()> {
    let office = Office::new()?;
    // Not in the list of allowed extensions.
    let text = office.signed(&office.request(P256, "certificatePolicies=1.2.3.4\n1.2.3.9=ASN1:NULL")?)?;
    assert!(!text.contains("Policies") && !text.contains("1.2.3.9"), "{text}");
    for (lines, name) in [
        ("certificatePolicies=critical,1.2.3.4", "certificatePolicies"),
        ("1.2.3.9=critical,ASN1:NULL", "1.2.3.9"),
    ] {
        let fault = office.refused(&office.request(P256, lines)?);
        assert_eq!(fault.exception, Exception::CertificateValidationError);
        assert!(
            fault
                .message
                .starts_with(&format!("Extension '{name}' not allowed"))
        );
    }
    // Purposes.
    let text = office
        .signed(&office.request(P256, "keyUsage=digitalSignature,keyCertSign,cRLSign,keyAgreement")?)?;
    assert!(
        text.contains("X509v3 Key Usage: \n                Digital Signature\n"),
        "{text}"
    );
    let fault = office.refused(&office.request(P256, "keyUsage=critical,keyCertSign")?);
    assert_eq!(fault.exception, Exception::CertificateValidationError);
    assert!(fault.message.contains("'Certificate Sign'"), "{}", fault.message);
    // Becoming a CA.
    let text = office.signed(&office.request(P256, "basicConstraints=CA:TRUE")?)?;
    assert!(text.contains("CA:FALSE") && !text.contains("CA:TRUE"), "{text}");
    let fault = office.refused(&office.request(P256, "basicConstraints=critical,CA:TRUE")?);
    assert!(fault.message.contains("allow_ca"), "{}", fault.message);
    Ok(())
}

#[test]
fn options_widen_and_narrow_the_allowed_extensions() -> Result<()> {
    let mut office = Office::new()?;
    let ca = office.request(
        P256,
        "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign",
    )?;
    office.rules.allow_ca = true;
    office.rules.usages.push(X509KeyUsage::CertificateSign);
    let text = office.signed(&ca)?;
    assert!(
        text.contains("CA:TRUE, pathlen:0") && text.contains("Certificate Sign"),
        "{text}"
    );
    // Without allow_ca the list of usages does not help.
    office.rules.allow_ca = false;
    let certs = office.request(P256, "keyUsage=critical,keyCertSign")?;
    assert_eq!(
        office.refused(&certs).exception,
        Exception::CertificateValidationError
    );

    office.rules.extensions = vec![X509Extension::CertificatePolicies];
    let text =
        office.signed(&office.request(P256, "certificatePolicies=1.2.3.4\nsubjectAltName=DNS:x.example")?)?;
    assert!(
        text.contains("Policy: 1.2.3.4") && !text.contains("x.example"),
        "{text}"
    );
    Ok(())
}

#[test]
fn values_that_nobody_can_read_and_extensions_asked_for_twice_are_refused() -> Result<()> {
    let office = Office::new()?;
    for (lines, name) in [
        ("2.5.29.17=ASN1:INTEGER:5", "subjectAltName"),
        ("2.5.29.37=ASN1:NULL", "extendedKeyUsage"),
        ("2.5.29.15=DER:00", "keyUsage"),
        ("2.5.29.19=ASN1:NULL", "basicConstraints"),
    ] {
        let fault = office.refused(&office.request(P256, lines)?);
        assert_eq!(fault.exception, Exception::InvalidCsr);
        assert!(fault.message.contains(name), "{}", fault.message);
    }
    let twice = office.request(P256, "subjectAltName=DNS:a.example\n2.5.29.17=ASN1:INTEGER:5")?;
    let fault = office.refused(&twice);
    assert!(
        fault.message.contains("subjectAltName twice"),
        "{}",
        fault.message
    );
    Ok(())
}

#[test]
fn a_certificate_never_outlives_its_ca() -> Result<()> {
    let mut office = Office::new()?;
    office.rules.days = 36_500;
    office.signed(&office.request(P256, "")?)?;
    let end = |name: &str| office.bench.openssl(&format!("x509 -in {name} -noout -enddate"));
    assert_eq!(end("signed.pem")?, end("ca.pem")?);
    Ok(())
}
