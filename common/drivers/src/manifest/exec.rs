//! `[exec]`: the program of a driver that is one.

use super::reader::{At, Problems, Section};
use super::time_limits::TimeLimits;
use super::{EngineSpec, ExecSpec, HealthSource};
use crate::info::Capabilities;

/// The settings; and the program with its place, for what only a look into the folder can tell.
pub(super) fn spec(
    root: &Section<'_>,
    capabilities: &Capabilities,
    problems: &mut Problems<'_>,
) -> (Option<EngineSpec>, Option<At<String>>) {
    root.require("exec", "[exec] with program = \"driver.py\"", problems);
    let Some(section) = root.table("exec", problems) else {
        return (None, None);
    };
    section.only(
        &[
            "program",
            "timeout",
            "observe_timeout",
            "observe_batch",
            "env",
            "ca_files",
            "run_as",
            "health",
        ],
        problems,
    );
    section.require("program", "program = \"driver.py\"", problems);
    let limits = TimeLimits::of(&section, problems);
    let observe_batch = section.count("observe_batch", ("cluster", "clusters"), problems);
    let ca_files = section.flag("ca_files", problems);
    let run_as = section.text("run_as", problems);
    let health = health_source(&section, capabilities, problems);
    let mut env = Vec::new();
    for at in section.texts("env", problems).unwrap_or_default() {
        if at.value.is_empty() || at.value.contains(['=', '\0']) {
            problems.add(
                at.offset,
                format!("'{}' is not the name of an environment variable", at.value),
            );
        }
        env.push(at.value);
    }
    let Some(program) = section.text("program", problems) else {
        return (None, None);
    };
    let spec = ExecSpec {
        program: program.value.clone(),
        timeout: limits.timeout,
        observe_timeout: limits.observe_timeout,
        observe_batch: observe_batch.map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
        env,
        ca_files: ca_files.unwrap_or(false),
        run_as: run_as.map(|at| at.value),
        health,
    };
    (Some(EngineSpec::Exec(spec)), Some(program))
}

fn health_source(
    section: &Section<'_>,
    capabilities: &Capabilities,
    problems: &mut Problems<'_>,
) -> HealthSource {
    let Some(at) = section.text("health", problems) else {
        return HealthSource::default();
    };
    let Some((_, source)) = HealthSource::ALL.iter().find(|(word, _)| *word == at.value) else {
        let words: Vec<_> = HealthSource::ALL.iter().map(|(word, _)| *word).collect();
        problems.add(
            at.offset,
            format!(
                "'{}' is not a value of 'health': use {}",
                at.value,
                words.join(" or ")
            ),
        );
        return HealthSource::default();
    };
    if !capabilities.health {
        problems.add(
            at.offset,
            "'health' has no meaning for a driver without health = true in [capabilities]",
        );
    }
    *source
}
