//! A log file that can be moved away under the program.
//!
//! Lines are appended whole, so several processes may share a file and `copytruncate` works. With `watch`, the
//! path is looked at before each line, and opened anew when it names another file or none. A line that cannot be
//! written is lost: a full disk must not stop the work.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

/// The file, shared by all threads.
pub(super) struct LogFile {
    path: PathBuf,
    watch: bool,
    file: Mutex<File>,
}

impl LogFile {
    /// Opens the file for appending; makes it if needed, readable by owner and group only.
    pub(super) fn open(path: &Path, watch: bool) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            watch,
            file: Mutex::new(append(path)?),
        })
    }

    fn was_moved(&self, file: &File) -> bool {
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        match (fs::metadata(&self.path), file.metadata()) {
            (Ok(named), Ok(open)) => identity(named) != identity(open),
            _ => true,
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o640)
        .open(path)
}

impl Write for &LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // A thread that panicked while it wrote left at worst half a line.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if self.watch
            && self.was_moved(&file)
            && let Ok(new) = append(&self.path)
        {
            *file = new;
        }
        file.write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = &'a LogFile;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_file_is_followed_only_when_watched() {
        let dir = tempfile::tempdir().unwrap();
        for (watch, after) in [(true, "new\n"), (false, "")] {
            let path = dir.path().join(format!("{watch}.log"));
            let log = LogFile::open(&path, watch).unwrap();
            (&log).write_all(b"old\n").unwrap();
            fs::rename(&path, dir.path().join("moved")).unwrap();
            (&log).write_all(b"new\n").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap_or_default(), after);
        }
    }
}
