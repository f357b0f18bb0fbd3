//! `[python]`: the environment and the entry point of a driver that is a Python package.

use std::path::PathBuf;

use super::reader::{Problems, Section};
use super::time_limits::TimeLimits;
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
            "trusts",
        ],
        problems,
    );
    section.require(
        "interpreter",
        "interpreter = \"/opt/magnum/bin/python\"",
        problems,
    );
    let limits = TimeLimits::of(&section, problems);
    let observe_batch = section.count("observe_batch", ("cluster", "clusters"), problems);
    let memory_mib = section.count("memory_mib", ("MiB", "MiB"), problems);
    let open_files = section.count("open_files", ("file", "files"), problems);
    let trusts = section.flag("trusts", problems);
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
        timeout: limits.timeout,
        observe_timeout: limits.observe_timeout,
        observe_batch: observe_batch.map_or(DEFAULT_OBSERVE_BATCH, |count| {
            usize::try_from(count).unwrap_or(usize::MAX)
        }),
        memory_mib,
        open_files: open_files.unwrap_or(DEFAULT_OPEN_FILES),
        trusts: trusts.unwrap_or(false),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    fn parse(section: &str) -> Result<PythonSpec, Vec<String>> {
        let text = format!(
            "[driver]\nname = 'd'\nversion = '1.0.0'\nengine = 'python'\n\
             [[provides]]\nserver_type = 'vm'\nos = 'ubuntu'\ncoe = 'kubernetes'\n{section}"
        );
        match Manifest::parse(&text) {
            Ok(manifest) => match manifest.engine {
                EngineSpec::Python(spec) => Ok(spec),
                other => panic!("{other:?}"),
            },
            Err(problems) => Err(problems.iter().map(ToString::to_string).collect()),
        }
    }

    #[test]
    fn an_interpreter_is_enough() {
        let spec = parse("[python]\ninterpreter = '/opt/magnum/bin/python'\n").unwrap();
        assert_eq!(spec.interpreter, PathBuf::from("/opt/magnum/bin/python"));
        assert_eq!(spec.entry_point, "d", "the driver's name");
        assert_eq!(
            (spec.timeout.as_secs(), spec.observe_timeout.as_secs()),
            (3600, 60)
        );
        assert_eq!(
            (spec.observe_batch, spec.memory_mib, spec.open_files),
            (50, None, 1024)
        );
    }

    #[test]
    fn every_setting_of_the_section_is_read() {
        let spec = parse(
            "[python]\ninterpreter = '/p'\nentry_point = 'k8s_v1'\ntimeout = 7\nobserve_timeout = 8\n\
             observe_batch = 9\nmemory_mib = 10\nopen_files = 11\ntrusts = true\n",
        )
        .unwrap();
        assert_eq!(spec.entry_point, "k8s_v1");
        assert_eq!((spec.timeout.as_secs(), spec.observe_timeout.as_secs()), (7, 8));
        assert_eq!(
            (spec.observe_batch, spec.memory_mib, spec.open_files),
            (9, Some(10), 11)
        );
        assert!(spec.trusts);
    }

    #[test]
    fn mistakes_are_told_by_their_line() {
        let problems =
            parse("[python]\ninterpreter = 'bin/python'\ninterpretor = '/p'\ntimeout = 0\n").unwrap_err();
        assert_eq!(problems.len(), 3, "{problems:#?}");
        assert!(
            problems[0].starts_with("driver.toml:10: 'bin/python' is not an absolute path"),
            "{problems:#?}"
        );
        assert!(problems[1].contains("interpretor"), "{problems:#?}");
        let missing = parse("").unwrap_err();
        assert!(missing[0].contains("[python] with interpreter"), "{missing:#?}");
    }
}
