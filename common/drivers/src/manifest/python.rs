//! `[python]`: the environment and the entry point of a driver that is a Python package.

use std::path::PathBuf;
use std::time::Duration;

use super::fields::{DEFAULT_OBSERVE_TIMEOUT, DEFAULT_TIMEOUT, SECONDS};
use super::reader::{Problems, Section};
use super::{EngineSpec, PythonSpec};

const DEFAULT_OBSERVE_BATCH: usize = 50;
const DEFAULT_OPEN_FILES: u64 = 1024;

/// The settings; `driver` is the driver's name.
pub(super) fn spec(
    root: &Section<'_>,
    driver: Option<&str>,
    problems: &mut Problems<'_>,
) -> Option<EngineSpec> {
    root.require(
        "python",
        "[python] with interpreter = \"/opt/magnum/bin/python\"",
        problems,
    );
    let section = root.table("python", problems)?;
    section.only(
        &[
            "interpreter",
            "entry_point",
            "timeout",
            "observe_timeout",
            "observe_batch",
            "memory_mib",
            "open_files",
        ],
        problems,
    );
    section.require(
        "interpreter",
        "interpreter = \"/opt/magnum/bin/python\"",
        problems,
    );
    let timeout = section.count("timeout", SECONDS, problems);
    let observe_timeout = section.count("observe_timeout", SECONDS, problems);
    let observe_batch = section.count("observe_batch", ("cluster", "clusters"), problems);
    let memory_mib = section.count("memory_mib", ("MiB", "MiB"), problems);
    let open_files = section.count("open_files", ("file", "files"), problems);
    let entry_point = section.text("entry_point", problems);
    let interpreter = section.text("interpreter", problems)?;
    let path = PathBuf::from(&interpreter.value);
    if !path.is_absolute() {
        problems.add(
            interpreter.offset,
            format!(
                "'{}' is not an absolute path: name the python of the environment, such as /opt/magnum/bin/python",
                interpreter.value
            ),
        );
    }
    Some(EngineSpec::Python(PythonSpec {
        interpreter: path,
        entry_point: entry_point
            .map(|at| at.value)
            .or_else(|| driver.map(str::to_owned))?,
        timeout: timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
        observe_timeout: observe_timeout.map_or(DEFAULT_OBSERVE_TIMEOUT, Duration::from_secs),
        observe_batch: observe_batch.map_or(DEFAULT_OBSERVE_BATCH, |count| {
            usize::try_from(count).unwrap_or(usize::MAX)
        }),
        memory_mib,
        open_files: open_files.unwrap_or(DEFAULT_OPEN_FILES),
    }))
}
