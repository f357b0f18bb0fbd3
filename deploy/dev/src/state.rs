//! The folder with everything that `magnum-dev` keeps.
//!
//! ```text
//! magnum.sqlite    the database            drivers/disk/   the example driver, written anew at each start
//! journal.key      seals users' tokens     drivers/…       drivers of yours: they are found, too
//! images.json      the image catalog       disk/           what the example driver builds
//! magnum-dev.log   of `magnum-dev demo`
//! ```
//!
//! The example driver is part of the program, so that it runs from any place; the clone it was built from may be
//! gone.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use magnum_common::secret::Secret;
use magnum_config::{AuthStrategy, CertManagerType, KeyType, Settings};
use serde_json::json;

const DRIVER_PROGRAM: &str = include_str!("../../drivers/disk/driver.py");
const DRIVER_MANIFEST: &str = include_str!("../../drivers/disk/driver.toml");
/// The setting of the shipped manifest that is replaced by a folder of ours.
const SHIPPED_ROOT: &str = "root = \"/var/lib/magnum/disk\"";
const SHIPPED_OBEDIENCE: &str = "obey_labels = false";

/// The image that templates can name at once.
pub(crate) const IMAGE: &str = "ubuntu-24.04";

/// A prepared folder.
#[derive(Debug)]
pub(crate) struct State {
    folder: PathBuf,
}

impl State {
    /// Makes what is missing in `folder`, and writes the example driver.
    pub(crate) fn prepare(folder: &Path) -> anyhow::Result<Self> {
        Self::make(folder).with_context(|| format!("cannot use the folder {}", folder.display()))
    }

    fn make(folder: &Path) -> anyhow::Result<Self> {
        let driver = folder.join("drivers/disk");
        fs::create_dir_all(&driver)?;
        let folder = folder.canonicalize()?;
        // JSON's string is also TOML's.
        let root = json!(folder.join("disk").to_string_lossy());
        // Its users are those who try it out: labels may have it wait and fail.
        let manifest = DRIVER_MANIFEST
            .replace(SHIPPED_ROOT, &format!("root = {root}"))
            .replace(SHIPPED_OBEDIENCE, "obey_labels = true");
        replace(&driver.join("driver.py"), DRIVER_PROGRAM, 0o755)?;
        replace(&driver.join("driver.toml"), &manifest, 0o644)?;
        let images = folder.join("images.json");
        if !images.exists() {
            let catalog = json!([{
                "id": "8cc8e0c2-6f1c-4a0c-9df5-2b2d8d1b6b0a",
                "name": IMAGE,
                "properties": {"magnum_distro": "ubuntu"},
            }]);
            replace(&images, &format!("{catalog:#}\n"), 0o644)?;
        }
        Ok(Self { folder })
    }

    /// The folder, absolute.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a demonstration logs.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("magnum-dev.log")
    }

    /// The settings for both halves.
    pub(crate) fn settings(&self, port: u16) -> Settings {
        let at = |name: &str| self.folder.join(name);
        let mut settings = Settings::default();
        settings.default.state_path = self.folder.clone();
        // The broker lives in this process; the folder in its name keeps two services of one process apart.
        settings.default.transport_url = Secret::new(format!("fake://{}", self.folder.display()));
        // It ends with the process in any case; the warning about queues that end with their broker would be noise.
        settings.rabbit.rabbit_quorum_queue = true;
        settings.database.connection = Secret::new(format!("sqlite:///{}", at("magnum.sqlite").display()));
        settings.api.port = port;
        settings.api.auth_strategy = AuthStrategy::Noauth;
        settings.api.image_catalog_file = Some(at("images.json"));
        settings.conductor.journal_key_file = at("journal.key");
        // People watch.
        settings.conductor.status_poll_interval = Duration::from_secs(1);
        settings.conductor.shutdown_timeout = Duration::from_secs(3);
        settings.drivers.driver_path = vec![at("drivers")];
        settings.certificates.cert_manager_type = CertManagerType::X509KeyPair;
        settings.certificates.key_type = KeyType::EcdsaP256;
        settings
    }
}

/// Writes a file as a whole, so that a conductor that reads it meanwhile never sees half of it.
fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    fs::write(&draft, text)?;
    fs::set_permissions(&draft, fs::Permissions::from_mode(mode))?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use magnum_drivers::load;

    use super::*;

    #[test]
    fn the_embedded_driver_loads_and_builds_inside_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::prepare(&folder.path().join("a \"quoted\" name")).unwrap();
        let driver = load(&state.folder().join("drivers/disk")).unwrap();
        assert_eq!(
            driver.manifest.settings["root"],
            state.folder().join("disk").to_string_lossy().as_ref()
        );
        assert_eq!(driver.manifest.settings["obey_labels"], true);
        // Again over what is there.
        State::prepare(state.folder()).unwrap();
    }
}
