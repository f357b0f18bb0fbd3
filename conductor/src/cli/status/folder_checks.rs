//! Checks of this host's folders: those of drivers, and those that the services write to.
//!
//! Whether a folder can be written is asked for the user who runs the check, which should be that of the services.

use std::path::Path;

use magnum_config::{CertManagerType, Settings};
use magnum_db::DatabaseUrl;
use magnum_drivers::{Registry, discover};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::report::Finding;

/// Driver folders, and which cannot be loaded.
pub(super) fn drivers(settings: &Settings) -> (Registry, Finding) {
    let mut finding = Finding::of("Driver folders");
    let mut registry = Registry::default();
    let paths = &settings.drivers.driver_path;
    let outcomes = discover(paths);
    if outcomes.is_empty() {
        let folders: Vec<String> = paths.iter().map(|path| state_of(path)).collect();
        finding.warn(format!(
            "No driver is in [drivers] driver_path: {}. A conductor of this host builds no cluster. \
             `magnum-driver-manage create NAME` makes a driver, `magnum-driver-manage adopt --python VENV` takes over \
             those of a Python environment.",
            folders.join(", ")
        ));
    }
    for outcome in outcomes {
        match outcome {
            Ok(folder) => {
                registry.insert(folder.manifest.info);
            }
            Err(error) => finding.warn(format!("{}: {}", error.dir.display(), error.reason())),
        }
    }
    (registry, finding)
}

fn state_of(path: &Path) -> String {
    let state = if path.is_dir() { "is empty" } else { "is not there" };
    format!("{} {state}", path.display())
}

/// Folders and files that services with this configuration write to.
pub(super) fn written(settings: &Settings) -> Finding {
    let mut finding = Finding::of("Folders");
    let default = &settings.default;
    let log_folder = match (&default.log_dir, &default.log_file) {
        (Some(folder), _) => Some((folder.as_path(), "[DEFAULT] log_dir")),
        (None, Some(file)) => file.parent().map(|folder| (folder, "[DEFAULT] log_file")),
        (None, None) => None,
    };
    let database = match DatabaseUrl::parse(settings.database.connection.expose()) {
        Ok(DatabaseUrl::Sqlite { path: Some(path), .. }) => Path::new(&path).parent().map(Path::to_owned),
        _ => None,
    };
    let certificates = match settings.certificates.cert_manager_type {
        CertManagerType::Local => Some((
            settings.certificates.storage_path.as_path(),
            "[certificates] storage_path",
        )),
        _ => None,
    };
    let wanted = [
        log_folder,
        database
            .as_deref()
            .map(|folder| (folder, "[database] connection")),
        settings
            .conductor
            .journal_key_file
            .parent()
            .map(|folder| (folder, "[conductor] journal_key_file")),
        certificates,
    ];
    for (folder, option) in wanted.into_iter().flatten() {
        let is_relative_to_here = folder.as_os_str().is_empty();
        if let Some(problem) = (!is_relative_to_here).then(|| problem_of(folder)).flatten() {
            finding.warn(format!(
                "{option}: {} {problem}. Make it, and give it to the user of the services.",
                folder.display()
            ));
        }
    }
    finding
}

/// Why nothing can be written into the folder.
fn problem_of(folder: &Path) -> Option<String> {
    if !folder.is_dir() {
        return Some("is not there".to_owned());
    }
    accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
        .err()
        .map(|error| format!("cannot be written by this user ({error})"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use magnum_common::secret::Secret;

    use super::*;
    use crate::cli::status::report::Code;

    #[test]
    fn missing_and_empty_driver_folders_are_named_with_the_commands_that_fill_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        settings.drivers.driver_path = vec![folder.path().to_owned(), PathBuf::from("/nonexistent/drivers")];
        let (_, finding) = drivers(&settings);
        assert_eq!(finding.code, Code::Warning);
        let told = &finding.details[0];
        for words in [
            "/nonexistent/drivers is not there",
            &format!("{} is empty", folder.path().display()),
            "magnum-driver-manage adopt",
        ] {
            assert!(told.contains(words), "{told}");
        }
    }

    #[test]
    fn folders_that_cannot_be_written_are_named_with_their_option() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        let file = folder.path().join("magnum.sqlite");
        settings.database.connection = Secret::new(format!("sqlite:///{}", file.display()));
        settings.conductor.journal_key_file = folder.path().join("journal.key");
        settings.default.log_dir = Some(folder.path().join("log"));
        let finding = written(&settings);
        assert_eq!(finding.details.len(), 1, "{:?}", finding.details);
        assert!(
            finding.details[0].contains("[DEFAULT] log_dir"),
            "{:?}",
            finding.details
        );

        let log = folder.path().join("log");
        std::fs::create_dir(&log).unwrap();
        assert_eq!(written(&settings).code, Code::Success);
        std::fs::set_permissions(&log, std::fs::Permissions::from_mode(0o500)).unwrap();
        // Root may write anywhere.
        if !rustix::process::geteuid().is_root() {
            let finding = written(&settings);
            assert!(
                finding.details[0].contains("cannot be written"),
                "{:?}",
                finding.details
            );
        }
    }
}
