//! `create`: a new driver that works, to start from.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use magnum_drivers::{MANIFEST_FILE, Manifest};

use super::Outcome;

const PROGRAM: &str = "driver.py";

/// The files, with `@NAME@` where the driver's name belongs.
const FILES: &[(&str, &str)] = &[
    (MANIFEST_FILE, include_str!("scaffold/driver.toml")),
    (PROGRAM, include_str!("scaffold/driver.py")),
    ("README.md", include_str!("scaffold/README.md")),
];

/// Makes the folder `name` in `parent`. An existing one is left alone.
pub(super) fn create(
    name: &str,
    parent: &Path,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Outcome> {
    match make(name, parent) {
        Ok(dir) => {
            writeln!(out, "made {}", dir.display())?;
            writeln!(out, "check it:   magnum-driver-manage check {}", dir.display())?;
            writeln!(
                out,
                "install it: move it into a directory of [drivers] driver_path, and send the conductors SIGHUP"
            )?;
            Ok(Outcome::Fine)
        }
        Err(why) => {
            writeln!(err, "{why}")?;
            Ok(Outcome::Wrong)
        }
    }
}

fn make(name: &str, parent: &Path) -> Result<PathBuf, String> {
    if !Manifest::is_name(name) {
        return Err(format!(
            "'{name}' is not a driver name: use a-z, 0-9, '_' and '-'"
        ));
    }
    let dir = parent.join(name);
    fs::create_dir(&dir).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => format!("{} is there already: choose another name", dir.display()),
        io::ErrorKind::NotFound => format!("the directory {} does not exist", parent.display()),
        _ => format!("{} cannot be made: {error}", dir.display()),
    })?;
    for (file, text) in FILES {
        let path = dir.join(file);
        fs::write(&path, text.replace("@NAME@", name))
            .and_then(|()| {
                if *file == PROGRAM {
                    make_executable(&path)
                } else {
                    Ok(())
                }
            })
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    }
    Ok(dir)
}

#[cfg(unix)]
fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use magnum_drivers::load;

    use super::*;

    fn run(name: &str, parent: &Path) -> (Outcome, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let outcome = create(name, parent, &mut out, &mut err).unwrap();
        (outcome, String::from_utf8(err).unwrap())
    }

    #[test]
    fn a_new_driver_loads_without_a_change() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(run("my-driver", root.path()), (Outcome::Fine, String::new()));
        let loaded = load(&root.path().join("my-driver")).unwrap();
        assert_eq!(loaded.manifest.info.to_string(), "my-driver 0.1.0");
        assert_eq!(loaded.manifest.engine.name(), "exec");
        for (file, _) in FILES {
            let text = fs::read_to_string(loaded.dir.join(file)).unwrap();
            assert!(!text.contains("@NAME@"), "{file}");
        }
    }

    #[test]
    fn existing_files_are_not_overwritten() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("mine")).unwrap();
        let (outcome, err) = run("mine", root.path());
        assert_eq!(outcome, Outcome::Wrong);
        assert!(err.contains("is there already"), "{err}");
        assert_eq!(fs::read_dir(root.path().join("mine")).unwrap().count(), 0);
    }

    #[test]
    fn a_name_cannot_lead_elsewhere() {
        let root = tempfile::tempdir().unwrap();
        for name in ["", "..", "a/b", "A", "/etc"] {
            assert_eq!(run(name, root.path()).0, Outcome::Wrong, "{name}");
        }
        assert_eq!(run("a", &root.path().join("nowhere")).1.lines().count(), 1);
    }
}
