//! Finds driver folders and loads their manifests.
//!
//! A broken folder is an [`LoadError`] of its own and harms nothing else. Order is by path, then by folder name,
//! so that every host with the same files finds the same.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::manifest::{self, MANIFEST_FILE, Manifest, Problem};
use super::trust;

/// Larger files are no manifests.
const LONGEST_MANIFEST: u64 = 1 << 20;

/// A driver and the folder it is in.
#[derive(Debug, Clone, PartialEq)]
pub struct DriverFolder {
    /// The folder.
    pub dir: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
}

/// A folder that could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// The folder.
    pub dir: PathBuf,
    /// The driver's name, when it could be read.
    pub name: Option<String>,
    /// Its version, likewise.
    pub version: Option<String>,
    /// Why, by line. Never empty.
    pub problems: Vec<Problem>,
}

/// One folder's result.
pub type LoadOutcome = Result<DriverFolder, LoadError>;

impl LoadError {
    fn of(dir: &Path, message: impl Into<String>) -> Self {
        Self {
            dir: dir.to_owned(),
            name: None,
            version: None,
            problems: vec![Problem::of_folder(message)],
        }
    }

    /// All problems in one line, for a log or a column.
    pub fn reason(&self) -> String {
        let problems: Vec<_> = self.problems.iter().map(ToString::to_string).collect();
        problems.join("; ")
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.dir.display(), self.reason())
    }
}

impl std::error::Error for LoadError {}

/// Loads every driver under `paths`: the folders in each, or the path itself if it is a driver's folder. A path
/// that is not there is no error, since the default names two. Names that begin with `.` or `_` are skipped.
///
/// The second of two folders with the same name and version is an error; the first stays.
pub fn discover(paths: &[PathBuf]) -> Vec<LoadOutcome> {
    let mut outcomes = Vec::new();
    let mut first: HashMap<(String, String), PathBuf> = HashMap::new();
    for path in paths {
        for folder in folders(path) {
            let outcome = folder.and_then(|dir| load(&dir)).and_then(|loaded| {
                let info = &loaded.manifest.info;
                let key = (info.name.clone(), info.version.to_string());
                match first.get(&key) {
                    None => {
                        first.insert(key, loaded.dir.clone());
                        Ok(loaded)
                    }
                    Some(there) => Err(LoadError {
                        name: Some(key.0),
                        version: Some(key.1),
                        ..LoadError::of(
                            &loaded.dir,
                            format!("{info} is already provided by {}", there.display()),
                        )
                    }),
                }
            });
            outcomes.push(outcome);
        }
    }
    outcomes
}

fn folders(path: &Path) -> Vec<Result<PathBuf, LoadError>> {
    if path.join(MANIFEST_FILE).is_file() {
        return vec![Ok(path.to_owned())];
    }
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![Err(LoadError::of(path, format!("cannot be read: {error}")))],
    };
    let mut names = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => names.push(entry.file_name()),
            Err(error) => return vec![Err(LoadError::of(path, format!("cannot be read: {error}")))],
        }
    }
    names.sort();
    names
        .into_iter()
        .filter(|name| !name.to_string_lossy().starts_with(['.', '_']))
        .map(|name| path.join(name))
        .filter(|dir| dir.is_dir())
        .map(Ok)
        .collect()
}

/// Loads the driver in one folder: the manifest, and whether what it names is there.
///
/// # Errors
/// Every problem of the manifest and of the folder at once.
pub fn load(dir: &Path) -> LoadOutcome {
    let file = dir.join(MANIFEST_FILE);
    let text = read_text(&file).map_err(|why| LoadError::of(dir, why))?;
    let reading = manifest::read(&text);
    let mut problems = reading.problems;
    problems.extend(trust::check(dir));
    if let Some((line, program)) = &reading.program
        && let Err(message) = check_program(dir, program)
    {
        problems.push(Problem {
            line: Some(*line),
            message,
        });
        problems.sort_by_key(|problem| problem.line);
    }
    match reading.manifest {
        Some(manifest) if problems.is_empty() => Ok(DriverFolder {
            dir: dir.to_owned(),
            manifest,
        }),
        _ => Err(LoadError {
            dir: dir.to_owned(),
            name: reading.name,
            version: reading.version,
            problems,
        }),
    }
}

fn read_text(file: &Path) -> Result<String, String> {
    let found = fs::metadata(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no {MANIFEST_FILE} in it"),
        _ => format!("{MANIFEST_FILE} cannot be read: {error}"),
    })?;
    if !found.is_file() {
        return Err(format!("{MANIFEST_FILE} is not a file"));
    }
    if found.len() > LONGEST_MANIFEST {
        return Err(format!("{MANIFEST_FILE} is larger than {LONGEST_MANIFEST} bytes"));
    }
    let bytes = fs::read(file).map_err(|error| format!("{MANIFEST_FILE} cannot be read: {error}"))?;
    String::from_utf8(bytes).map_err(|_| format!("{MANIFEST_FILE} is not UTF-8"))
}

/// A program has to be a file in the folder, which may be replaced or removed as a whole.
fn check_program(dir: &Path, program: &str) -> Result<(), String> {
    let relative = Path::new(program);
    let inside = !program.is_empty()
        && relative
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !inside {
        return Err(format!(
            "the program '{program}' must be a path inside the folder, without '..' and not absolute"
        ));
    }
    let missing = |error: &io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("the program '{program}' is not in the folder"),
        _ => format!("the program '{program}' cannot be read: {error}"),
    };
    let path = dir
        .join(relative)
        .canonicalize()
        .map_err(|error| missing(&error))?;
    let root = dir.canonicalize().map_err(|error| missing(&error))?;
    if !path.starts_with(&root) {
        return Err(format!(
            "the program '{program}' is a link to {} outside the folder",
            path.display()
        ));
    }
    let found = fs::metadata(&path).map_err(|error| missing(&error))?;
    if !found.is_file() {
        return Err(format!("the program '{program}' is not a file"));
    }
    if !is_executable(&found) {
        return Err(format!("the program '{program}' is not executable: chmod +x it"));
    }
    Ok(())
}

#[cfg(unix)]
fn is_executable(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    found.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_found: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn text(name: &str, version: &str, program: &str) -> String {
        format!(
            "[driver]\nname = \"{name}\"\nversion = \"{version}\"\nengine = \"exec\"\n\n[[provides]]\n\
             server_type = \"vm\"\nos = \"ubuntu\"\ncoe = \"kubernetes\"\n\n[exec]\nprogram = \"{program}\"\n"
        )
    }

    fn make(root: &Path, folder: &str, text: &str) -> PathBuf {
        let dir = root.join(folder);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(MANIFEST_FILE), text).unwrap();
        fs::write(dir.join("run"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(dir.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        dir
    }

    fn told(dir: &Path) -> String {
        load(dir).unwrap_err().reason()
    }

    #[test]
    fn a_broken_folder_harms_only_itself() {
        let root = tempfile::tempdir().unwrap();
        make(root.path(), "a", &text("a", "1.0.0", "run"));
        make(root.path(), "b", "nonsense");
        fs::create_dir(root.path().join("c")).unwrap();
        make(root.path(), "d", &text("d", "1.0.0", "run"));
        make(root.path(), ".hidden", "nonsense");
        fs::write(root.path().join("README"), "not a folder").unwrap();

        let outcomes = discover(&[root.path().to_owned()]);
        let summary: Vec<_> = outcomes
            .iter()
            .map(|outcome| match outcome {
                Ok(loaded) => loaded.manifest.info.to_string(),
                Err(error) => error.dir.file_name().unwrap().to_string_lossy().into_owned(),
            })
            .collect();
        assert_eq!(summary, ["a 1.0.0", "b", "c", "d 1.0.0"]);
        let why = outcomes[2].as_ref().unwrap_err().reason();
        assert_eq!(why, "there is no driver.toml in it");
    }

    #[test]
    fn several_versions_of_a_name_are_fine_and_the_same_version_twice_is_not() {
        let one = tempfile::tempdir().unwrap();
        let two = tempfile::tempdir().unwrap();
        let first = make(one.path(), "x-1", &text("x", "1.0.0", "run"));
        make(one.path(), "x-2", &text("x", "2.0.0", "run"));
        make(two.path(), "x-1", &text("x", "1.0.0", "run"));
        let outcomes = discover(&[one.path().to_owned(), two.path().to_owned()]);
        assert!(outcomes[0].is_ok() && outcomes[1].is_ok());
        let error = outcomes[2].as_ref().unwrap_err();
        assert_eq!(
            error.reason(),
            format!("x 1.0.0 is already provided by {}", first.display())
        );
        assert_eq!(
            (error.name.as_deref(), error.version.as_deref()),
            (Some("x"), Some("1.0.0"))
        );
    }

    #[test]
    fn a_path_may_be_a_driver_itself_and_may_be_absent() {
        let root = tempfile::tempdir().unwrap();
        let dir = make(root.path(), "x", &text("x", "1.0.0", "run"));
        assert_eq!(discover(&[dir]).len(), 1);
        assert!(discover(&[root.path().join("nowhere")]).is_empty());
    }

    #[test]
    fn the_program_has_to_be_an_executable_file_inside() {
        let root = tempfile::tempdir().unwrap();
        let inside = "must be a path inside the folder, without '..' and not absolute";
        for (program, why) in [
            ("nope", "the program 'nope' is not in the folder".to_owned()),
            ("../x/run", format!("the program '../x/run' {inside}")),
            ("/bin/sh", format!("the program '/bin/sh' {inside}")),
            ("", format!("the program '' {inside}")),
            ("sub", "the program 'sub' is not a file".to_owned()),
            (
                "plain",
                "the program 'plain' is not executable: chmod +x it".to_owned(),
            ),
        ] {
            let dir = make(root.path(), "x", &text("x", "1.0.0", program));
            fs::create_dir_all(dir.join("sub")).unwrap();
            fs::write(dir.join("plain"), "").unwrap();
            assert_eq!(told(&dir), format!("driver.toml:12: {why}"));
        }
        let dir = make(root.path(), "x", &text("x", "1.0.0", "link"));
        symlink("/bin/sh", dir.join("link")).unwrap();
        assert!(told(&dir).contains("outside the folder"), "{}", told(&dir));
    }

    #[test]
    fn problems_of_the_file_and_of_the_folder_come_together() {
        let root = tempfile::tempdir().unwrap();
        let dir = make(root.path(), "x", &text("X", "1.0.0", "nope"));
        let error = load(&dir).unwrap_err();
        let lines: Vec<_> = error.problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [Some(2), Some(12)]);
        assert_eq!(error.version.as_deref(), Some("1.0.0"));
    }

    #[test]
    fn what_others_may_write_is_not_run() {
        let root = tempfile::tempdir().unwrap();
        let shared = root.path().join("shared");
        let dir = make(&shared, "x", &text("x", "1.0.0", "bin/run"));
        fs::create_dir(dir.join("bin")).unwrap();
        fs::rename(dir.join("run"), dir.join("bin/run")).unwrap();
        let link = root.path().join("link");
        symlink(&dir, &link).unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let in_folder = format!("chmod -R go-w {}", dir.display());
        for (path, usual, open, reason, advice) in [
            (
                dir.clone(),
                0o755,
                0o777,
                "others may write to the folder",
                in_folder.clone(),
            ),
            (
                dir.join("bin"),
                0o755,
                0o757,
                "others may write to bin",
                in_folder.clone(),
            ),
            (
                dir.join("bin/run"),
                0o755,
                0o777,
                "others may write to bin/run",
                in_folder.clone(),
            ),
            (
                dir.join(MANIFEST_FILE),
                0o644,
                0o646,
                "others may write to driver.toml",
                in_folder,
            ),
            (
                shared.clone(),
                0o755,
                0o777,
                "others may put another folder in its place",
                format!("chmod go-w {}", shared.canonicalize().unwrap().display()),
            ),
        ] {
            set(&path, usual);
            assert!(load(&dir).is_ok(), "{}", told(&dir));
            set(&path, open);
            let why = told(&dir);
            assert_eq!(why, format!("{reason}: {advice}"));
            assert!(load(&link).is_err());
            set(&path, usual);
        }
        // As in /tmp: what is in it belongs to who made it.
        set(&shared, 0o1777);
        assert!(load(&dir).is_ok());
        // A group that is nobody else: of this process.
        set(&dir, 0o775);
        assert!(load(&dir).is_ok());
    }

    #[test]
    fn of_much_that_others_may_write_the_first_is_named() {
        let root = tempfile::tempdir().unwrap();
        let dir = make(root.path(), "x", &text("x", "1.0.0", "run"));
        for name in ["a", "b", "c", "d", "e"] {
            fs::write(dir.join(name), "").unwrap();
            fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o666)).unwrap();
        }
        let advice = format!("chmod -R go-w {}", dir.display());
        assert_eq!(
            told(&dir),
            format!("others may write to a, b, c and 2 more: {advice}")
        );
    }

    #[test]
    fn unreadable_manifests_are_reported() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("x");
        fs::create_dir_all(dir.join(MANIFEST_FILE)).unwrap();
        assert_eq!(told(&dir), "driver.toml is not a file");
        fs::remove_dir(dir.join(MANIFEST_FILE)).unwrap();
        fs::write(dir.join(MANIFEST_FILE), [0xff, 0xfe]).unwrap();
        assert_eq!(told(&dir), "driver.toml is not UTF-8");
    }
}
