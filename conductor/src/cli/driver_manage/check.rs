//! `check`: the mistakes in driver folders.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use magnum_drivers::{DriverFolder, LoadError, LoadOutcome, MANIFEST_FILE, discover, load};

use super::Outcome;

/// Checks every folder, and each folder in a directory of folders. Returns those that a conductor would load.
pub(super) fn check(
    dirs: &[PathBuf],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<(Outcome, Vec<DriverFolder>)> {
    let (mut outcome, mut good) = (Outcome::Fine, Vec::new());
    for checked in dirs.iter().flat_map(|dir| checks(dir)) {
        match checked {
            Ok(folder) => {
                print_good(&folder, out)?;
                good.push(folder);
            }
            Err(error) => {
                outcome = Outcome::Wrong;
                print_problems(&error, err)?;
            }
        }
    }
    Ok((outcome, good))
}

fn checks(dir: &Path) -> Vec<LoadOutcome> {
    if dir.is_dir() && !dir.join(MANIFEST_FILE).exists() {
        let inside = discover(&[dir.to_owned()]);
        if !inside.is_empty() {
            return inside;
        }
    }
    vec![load(dir)]
}

fn print_good(folder: &DriverFolder, out: &mut dyn Write) -> io::Result<()> {
    let info = &folder.manifest.info;
    let types: Vec<_> = info.cluster_types.iter().map(ToString::to_string).collect();
    writeln!(
        out,
        "{}: {info} is fine: engine {}, provides {}",
        folder.dir.display(),
        folder.manifest.engine.name(),
        types.join(", ")
    )?;
    for route in info.api.iter() {
        let methods: Vec<&str> = route.methods.iter().map(|method| method.as_str()).collect();
        let effect = if route.read_only {
            "only reads"
        } else {
            "may change something"
        };
        writeln!(
            out,
            "  own API: {} {}, rule {}, {effect}",
            methods.join(" "),
            route.path,
            route.policy
        )?;
    }
    Ok(())
}

/// One line per problem, in the form that editors jump to.
pub(super) fn print_problems(error: &LoadError, err: &mut dyn Write) -> io::Result<()> {
    for problem in &error.problems {
        match problem.line {
            Some(line) => {
                let file = error.dir.join(MANIFEST_FILE);
                writeln!(err, "{}:{line}: {}", file.display(), problem.message)?;
            }
            None => writeln!(err, "{}: {}", error.dir.display(), problem.message)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(dir: &Path) -> (Outcome, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let (outcome, _) = check(&[dir.to_owned()], &mut out, &mut err).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (outcome, text(out), text(err))
    }

    #[test]
    fn each_problem_is_a_line_with_its_place_and_the_outcome_is_wrong() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path();
        std::fs::write(
            dir.join(MANIFEST_FILE),
            "[driver]\nname = \"X\"\nversion = \"1\"\n",
        )
        .unwrap();
        let (outcome, out, err) = run(dir);
        assert_eq!((outcome, out.as_str()), (Outcome::Wrong, ""));
        let file = dir.join(MANIFEST_FILE).display().to_string();
        let lines: Vec<_> = err.lines().collect();
        assert_eq!(lines.len(), 4, "{err}");
        assert!(
            lines[2].starts_with(&format!("{file}:2: 'X' is not a driver name")),
            "{err}"
        );
        assert!(
            lines[3].starts_with(&format!("{file}:3: '1' is not a version")),
            "{err}"
        );
    }

    #[test]
    fn folder_without_a_driver_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let (outcome, _, err) = run(root.path());
        assert_eq!(outcome, Outcome::Wrong);
        assert!(err.ends_with("there is no driver.toml in it\n"), "{err}");
        let (outcome, _, err) = run(&root.path().join("nowhere"));
        assert_eq!(outcome, Outcome::Wrong);
        assert!(err.contains("driver.toml"), "{err}");
    }
}
