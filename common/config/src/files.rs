//! Which files are read.
//!
//! Given files are read in the order given, then the `*.conf` files of the given directories, sorted by name. If
//! no file is given, `magnum.conf` and `<program>.conf` are each taken from the first of `~/.magnum`, `~`,
//! `/etc/magnum`, `/etc` that has them; if no directory is given, the same goes for `magnum.conf.d` and
//! `<program>.conf.d`. A given file that cannot be read is an error; a default one that does not exist is not.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use super::ConfigArgs;
use super::ini::{self, Entry};
use super::problem::{Place, Problem};

/// The default places, in the order of their precedence.
pub(super) fn search_directories() -> Vec<PathBuf> {
    let home = env::var_os("HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from);
    let of_user = home.iter().flat_map(|home| [home.join(".magnum"), home.clone()]);
    of_user.chain(["/etc/magnum".into(), "/etc".into()]).collect()
}

/// The name this program was started by.
pub(super) fn program_name() -> Option<String> {
    let program = env::args_os().next()?;
    Path::new(&program)
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
}

/// An environment variable that could set an option; ours are all text.
pub(super) fn text_variable((name, value): (OsString, OsString)) -> Option<(String, String)> {
    let name = name
        .into_string()
        .ok()
        .filter(|name| name.starts_with("OS_") && name.contains("__"))?;
    Some((name, value.into_string().ok()?))
}

/// Every file to read, in order, and what is wrong with the arguments.
pub(super) fn find(
    args: &ConfigArgs,
    search: &[PathBuf],
    program: Option<&str>,
) -> (Vec<PathBuf>, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut dirs = args.dirs.clone();
    let mut files = args.files.clone();
    let names = || {
        ["magnum"]
            .into_iter()
            .chain(program.filter(|name| *name != "magnum"))
    };
    let first = |name: String| {
        search
            .iter()
            .map(|dir| dir.join(&name))
            .find(|path| path.exists())
    };
    if files.is_empty() {
        files.extend(names().filter_map(|name| first(format!("{name}.conf"))));
    }
    if dirs.is_empty() {
        dirs.extend(names().filter_map(|name| first(format!("{name}.conf.d"))));
    }
    for dir in dirs {
        match conf_files(&dir) {
            Ok(found) => files.extend(found),
            Err(error) => problems.push(Problem {
                place: Place::File(Arc::new(dir)),
                message: format!("cannot be listed: {error}"),
            }),
        }
    }
    (files, problems)
}

/// Where other files of the service are looked for: the given directories, the folders of the configuration files
/// (the last one first), and the default places.
pub(super) fn beside(args: &ConfigArgs, files: &[PathBuf]) -> Vec<PathBuf> {
    let of_files = files.iter().rev().filter_map(|file| {
        let folder = file.parent()?;
        // A file without a folder lies where the program was started.
        Some(if folder.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            folder.to_owned()
        })
    });
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in args
        .dirs
        .iter()
        .cloned()
        .chain(of_files)
        .chain(search_directories())
    {
        if !found.contains(&folder) {
            found.push(folder);
        }
    }
    found
}

fn conf_files(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        // Like a shell's *.conf: hidden files are not meant.
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !hidden && path.extension().is_some_and(|extension| extension == "conf") && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Reads one file; its number decides precedence.
pub(super) fn read(path: &Path, number: usize) -> (Vec<Entry>, Vec<Problem>) {
    let shared = Arc::new(path.to_owned());
    let wrong = |message| {
        (
            Vec::new(),
            vec![Problem {
                place: Place::File(Arc::clone(&shared)),
                message,
            }],
        )
    };
    match fs::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => ini::parse(&text, &shared, number),
            Err(error) => {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
                wrong(format!("line {line} is not UTF-8 text"))
            }
        },
        Err(error) => wrong(format!("cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[PathBuf]) -> Vec<String> {
        paths
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn other_files_lie_beside_the_configuration_or_in_the_default_places() {
        let given = ConfigArgs {
            dirs: vec!["/d".into()],
            ..ConfigArgs::default()
        };
        let files = ["/a/magnum.conf", "/d/x.conf", "b.conf"].map(PathBuf::from);
        let found = beside(&given, &files);
        assert_eq!(found[..3], ["/d", ".", "/a"].map(PathBuf::from));
        assert_eq!(
            found[found.len() - 2..],
            ["/etc/magnum", "/etc"].map(PathBuf::from)
        );
    }

    #[test]
    fn default_files_come_from_the_first_place_that_has_them() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(a.path().join("magnum-conductor.conf"), "").unwrap();
        fs::write(b.path().join("magnum.conf"), "").unwrap();
        fs::create_dir(b.path().join("magnum.conf.d")).unwrap();
        for name in ["20.conf", "10.conf", ".hidden.conf", "note.txt"] {
            fs::write(b.path().join("magnum.conf.d").join(name), "").unwrap();
        }
        let search = [a.path().to_owned(), b.path().to_owned()];
        let (files, problems) = find(&ConfigArgs::default(), &search, Some("magnum-conductor"));
        assert_eq!(
            names(&files),
            ["magnum.conf", "magnum-conductor.conf", "10.conf", "20.conf"]
        );
        assert!(problems.is_empty());

        let given = ConfigArgs {
            files: vec![PathBuf::from("given.conf")],
            dirs: Vec::new(),
        };
        assert_eq!(
            names(&find(&given, &search, None).0),
            ["given.conf", "10.conf", "20.conf"]
        );
    }

    #[test]
    fn given_files_and_directories_must_exist() {
        let args = ConfigArgs {
            files: Vec::new(),
            dirs: vec![PathBuf::from("/nonexistent/conf.d")],
        };
        let (_, problems) = find(&args, &[], None);
        assert!(
            problems[0]
                .to_string()
                .starts_with("/nonexistent/conf.d: cannot be listed")
        );
        let (_, problems) = read(Path::new("/nonexistent/x.conf"), 0);
        assert!(
            problems[0]
                .to_string()
                .starts_with("/nonexistent/x.conf: cannot be read")
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_reported_with_their_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.conf");
        fs::write(&path, b"[api]\n# \xff\n").unwrap();
        assert!(read(&path, 0).1[0].message.contains("line 2 is not UTF-8"));
    }
}
