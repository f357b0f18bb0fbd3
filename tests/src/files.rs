//! Files that a test makes for itself.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Copies the folder `from`, with all that is in it and its modes, to `to`, which is made.
pub fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).with_context(|| entry.path().display().to_string())?;
        }
    }
    Ok(())
}
