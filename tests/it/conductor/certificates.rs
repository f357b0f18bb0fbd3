//! Certificates, judged by others: OpenSSL reads and verifies what we make and makes what we sign; the real Magnum
//! reads and signs with what we keep, and we with what it keeps.

mod barbican;
mod generated;
mod key_pool;
mod lost;
mod questions;
mod removal;
mod requests;
mod stores;
mod tls;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use magnum_common::context::RequestContext;
use magnum_common::model::Cluster;
use magnum_conductor::certificates::Certificates;
use magnum_conductor::seal::JournalKey;
use magnum_config::{CertManagerType, KeyType, Settings};
use magnum_db::Database;
use magnum_tests::run_dir::run_dir;

/// A folder in which `openssl` works.
struct Bench {
    folder: PathBuf,
}

impl Bench {
    fn new() -> Result<Self> {
        let run = run_dir()?;
        let folder = run.folder("certificates")?.join(run.unique("bench"));
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        Ok(fs::write(self.path(name), text)?)
    }

    fn read(&self, name: &str) -> Result<String> {
        Ok(fs::read_to_string(self.path(name))?)
    }

    /// Runs `openssl` with these words and returns what it prints.
    fn openssl(&self, words: &str) -> Result<String> {
        let (output, error, success) = self.try_openssl(words)?;
        ensure!(success, "openssl {words}: {output}{error}");
        Ok(output)
    }

    fn try_openssl(&self, words: &str) -> Result<(String, String, bool)> {
        let output = Command::new("openssl")
            .args(words.split_whitespace())
            .current_dir(Path::new(&self.folder))
            .output()
            .context("openssl cannot be run; tests/run installs it")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((
            text(&output.stdout),
            text(&output.stderr),
            output.status.success(),
        ))
    }
}

/// Settings for a store, with keys that are made quickly.
fn settings(kind: CertManagerType) -> Settings {
    let mut settings = Settings::default();
    settings.certificates.cert_manager_type = kind;
    settings.certificates.key_type = KeyType::EcdsaP256;
    settings
}

/// As a conductor has them; all of a fleet have the same key.
fn certificates(settings: &Settings, db: &Database) -> Result<Certificates> {
    let key = JournalKey::load_or_create(&run_dir()?.path().join("certificates.key"))?;
    Ok(Certificates::new(settings, db.clone(), key))
}

fn cluster(name: &str) -> Cluster {
    let mut cluster = Cluster::new(magnum_common::ids::ClusterUuid::random(), "t".into());
    cluster.name = Some(name.to_owned());
    cluster.project_id = Some("owner-project".to_owned());
    cluster.user_id = Some("owner-user".to_owned());
    cluster
}

/// An administrator of another project.
fn admin() -> RequestContext {
    let mut context = RequestContext::default();
    context.set("project_id", "admin-project".into());
    context.set("user_id", "admin-user".into());
    context.set("is_admin", true.into());
    context
}
