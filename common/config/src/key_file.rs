//! Files of secret keys, shared by the hosts of a deployment: text, one base64 key of 32 bytes on a line, `#` begins a comment.
//! The first key is used for what is new, all of them for what is there.
//!
//! Whoever can read such a file has the keys, so it must belong to one user and be readable by nobody else; that is checked
//! whenever it is read.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Bytes of a key.
pub const KEY_LENGTH: usize = 32;

/// Why a key file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("{path}: {}", describe(*.kind, .reason))]
    Io {
        /// The file.
        path: PathBuf,
        /// The kind of error.
        kind: io::ErrorKind,
        /// What the system said.
        reason: String,
    },
    /// Others can read it.
    #[error("{path} is open to other users (mode {mode:03o}); run `chmod 600 {path}`")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A line is not a key.
    #[error(
        "{path}, line {line}: expected 32 bytes as base64 (44 characters); make a key with \
         `head -c 32 /dev/urandom | base64`"
    )]
    BadKey {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
    /// No line is a key.
    #[error("{path} holds no key; make one with `head -c 32 /dev/urandom | base64`")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

fn describe(kind: io::ErrorKind, reason: &str) -> String {
    match kind {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => reason.to_owned(),
    }
}

/// The keys of a file, in its order: at least one.
///
/// # Errors
/// The file cannot be read, others than its owner may read it, or it has a line that is no key, or no key.
pub fn read(path: &Path) -> Result<Vec<[u8; KEY_LENGTH]>, KeyFileError> {
    let failed = |error: io::Error| KeyFileError::Io {
        path: path.to_owned(),
        kind: error.kind(),
        reason: error.to_string(),
    };
    let mode = fs::metadata(path).map_err(failed)?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    parse(&fs::read_to_string(path).map_err(failed)?, path)
}

/// The keys of a file's text. `path` is for errors.
///
/// # Errors
/// A line is no key, or there is none.
pub fn parse(text: &str, path: &Path) -> Result<Vec<[u8; KEY_LENGTH]>, KeyFileError> {
    let mut keys = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let key = STANDARD
            .decode(line)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| KeyFileError::BadKey {
                path: path.to_owned(),
                line: index + 1,
            })?;
        keys.push(key);
    }
    if keys.is_empty() {
        return Err(KeyFileError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn keys_come_in_order_and_a_bad_line_is_named() {
        let (one, two) = (STANDARD.encode([1; 32]), STANDARD.encode([2; 32]));
        let path = Path::new("/k");
        assert_eq!(
            parse(&format!("# keys\n{one}\n\n{two} # old\n"), path),
            Ok(vec![[1; 32], [2; 32]])
        );
        let error = parse(&format!("# keys\n{one}\nnot-a-key"), path)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("/k, line 3"), "{error}");
        assert!(matches!(parse("# none\n", path), Err(KeyFileError::Empty { .. })));
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_with_the_command_to_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert!(read(&path).unwrap_err().to_string().contains("no such file"));
        fs::write(&path, STANDARD.encode([1; 32])).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(
            error.contains("mode 640") && error.contains("chmod 600"),
            "{error}"
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&path), Ok(vec![[1; 32]]));
    }
}
