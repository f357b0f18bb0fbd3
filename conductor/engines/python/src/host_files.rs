//! The plug-in host's files: part of this program, written to a private folder of each process that runs them.

use std::fs;
use std::io;
use std::path::Path;

macro_rules! host_files {
    ($($path:literal)*) => {
        /// Path and content of each file.
        const FILES: &[(&str, &str)] = &[$(($path, include_str!(concat!("../plugin-host/", $path))),)*];
    };
}

host_files! {
    "__main__.py"
    "magnum_plugin_host/__init__.py"
    "magnum_plugin_host/calls.py"
    "magnum_plugin_host/channel.py"
    "magnum_plugin_host/creations.py"
    "magnum_plugin_host/credentials.py"
    "magnum_plugin_host/deletions.py"
    "magnum_plugin_host/entry_points.py"
    "magnum_plugin_host/errors.py"
    "magnum_plugin_host/guard.py"
    "magnum_plugin_host/helm_releases.py"
    "magnum_plugin_host/left_out.py"
    "magnum_plugin_host/library.py"
    "magnum_plugin_host/log_lines.py"
    "magnum_plugin_host/remote_objects.py"
    "magnum_plugin_host/repairs.py"
    "magnum_plugin_host/worker.py"
    "magnum_plugin_host/zygote.py"
}

/// Writes the files below `folder`, which is there.
///
/// # Errors
/// The folder cannot be written to.
pub fn write(folder: &Path) -> io::Result<()> {
    for (path, content) in FILES {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_of_the_host_is_written() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugin-host");
        let mut found = BTreeSet::from(["__main__.py".to_owned()]);
        for entry in fs::read_dir(source.join("magnum_plugin_host")).unwrap() {
            let name = entry.unwrap().file_name().to_string_lossy().into_owned();
            if name.ends_with(".py") {
                found.insert(format!("magnum_plugin_host/{name}"));
            }
        }
        let written: BTreeSet<String> = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(written, found);
    }
}
