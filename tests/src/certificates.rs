//! Certificates for TLS, made by `openssl` as an operator would: an authority, and what it signs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::run_dir::run_dir;

/// An authority with a folder of its own.
#[derive(Debug)]
pub struct Authority {
    folder: PathBuf,
}

/// A certificate and its private key, in PEM.
#[derive(Debug, Clone)]
pub struct Signed {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

const KEY: [&str; 5] = [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
];

impl Authority {
    /// A new one; two never trust each other.
    pub fn new() -> Result<Self> {
        let folder = run_dir()?.folder("certificates")?;
        let authority = Self { folder };
        let subject = [
            "-subj",
            "/CN=Authority of a test",
            "-days",
            "2",
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
        ];
        authority.openssl(["req", "-x509"].iter().chain(&KEY).chain(&subject))?;
        Ok(authority)
    }

    /// Its own certificate, in PEM.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// Signs a certificate called `name` for what `alternative` says, such as `IP:127.0.0.1`.
    pub fn sign(&self, name: &str, alternative: &str) -> Result<Signed> {
        self.sign_subject(&format!("/CN={name}"), name, alternative)
    }

    /// The same for a member of an organization, which is a group of users in Kubernetes.
    pub fn sign_member(&self, organization: &str, name: &str, alternative: &str) -> Result<Signed> {
        self.sign_subject(&format!("/O={organization}/CN={name}"), name, alternative)
    }

    fn sign_subject(&self, subject: &str, name: &str, alternative: &str) -> Result<Signed> {
        let file = |ending: &str| format!("{name}.{ending}");
        fs::write(
            self.folder.join(file("ext")),
            format!("subjectAltName={alternative}\nbasicConstraints=CA:FALSE\n"),
        )?;
        let (key, request) = (file("key"), file("csr"));
        let names = ["-subj", subject, "-keyout", &key, "-out", &request];
        self.openssl(["req"].iter().chain(&KEY).chain(&names))?;
        let (extensions, certificate) = (file("ext"), file("pem"));
        let signing = [
            "x509",
            "-req",
            "-in",
            &request,
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            &extensions,
            "-out",
            &certificate,
        ];
        self.openssl(signing.iter())?;
        Ok(Signed {
            certificate: self.folder.join(certificate),
            key: self.folder.join(key),
        })
    }

    fn openssl<'a>(&self, args: impl Iterator<Item = &'a &'a str>) -> Result<()> {
        let mut command = Command::new("openssl");
        command.args(args).current_dir(Path::new(&self.folder));
        let output = command
            .output()
            .context("openssl cannot be run; tests/run installs it")?;
        ensure!(
            output.status.success(),
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }
}
