//! What the program `magnum-policy` does: `sample`, `check` and `list`.
//!
//! In the place of oslo.policy's generator, validator and checker (`oslopolicy-sample-generator --namespace magnum`,
//! `oslopolicy-validator`, `oslopolicy-checker`). It reads files only: neither the API nor Keystone has to run.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use magnum_common::context::{Caller, RequestContext};
use magnum_common::ids::RequestId;
use magnum_config::{ConfigArgs, Settings};
use serde_json::{Map, Value, json};

use crate::policy::{Asks, Rule, RuleSet, Source, Target, sample};

/// Prints, checks and explains policy files.
///
/// Policy files say who may do what with Magnum: `[oslo_policy] policy_file`, policy.yaml by default, and the files in
/// `policy_dirs`. They are looked for beside magnum.conf.
#[derive(Debug, Parser)]
#[command(name = "magnum-policy", version)]
pub struct Arguments {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prints a policy file in which every rule stands with its default, as a comment
    Sample,
    /// Says what is wrong with policy files, by line; ends with exit code 1 when something is
    Check(Files),
    /// Shows which rules a caller passes
    List(ListArguments),
}

#[derive(Debug, clap::Args)]
struct Files {
    /// This file alone, instead of those that the configuration names
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ListArguments {
    #[command(flatten)]
    files: Files,
    /// The caller's roles, separated by commas
    #[arg(long, value_name = "ROLES", value_delimiter = ',')]
    roles: Vec<String>,
    /// The caller's project; none: a caller without a project
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// The caller's user
    #[arg(long, value_name = "ID", default_value = "user")]
    user: String,
    /// The project of the cluster, template or federation; the caller's by default
    #[arg(long, value_name = "ID")]
    target_project: Option<String>,
    /// The user who made the cluster, template or federation; the caller by default
    #[arg(long, value_name = "ID")]
    target_user: Option<String>,
    /// Only this rule; exit code 1 when the caller does not pass it
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Does what the arguments say; results go to `out`, complaints to `err`.
///
/// # Errors
/// When `out` or `err` cannot be written.
pub fn run(arguments: &Arguments, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<ExitCode> {
    let files = match &arguments.command {
        Command::Sample => {
            out.write_all(sample::sample().as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Check(files) => files,
        Command::List(list) => &list.files,
    };
    let source = match Settings::load(&arguments.config) {
        Ok(loaded) => Source::from_settings(&loaded.settings),
        Err(errors) => {
            writeln!(err, "{errors}")?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let source = match &files.file {
        Some(file) if !file.exists() => {
            writeln!(err, "{}: there is no such file", file.display())?;
            return Ok(ExitCode::FAILURE);
        }
        Some(file) => source.only(file),
        None => source,
    };
    let (rules, read, warnings) = match source.read() {
        Ok(read) => read,
        Err(errors) => {
            writeln!(err, "{errors}")?;
            return Ok(ExitCode::FAILURE);
        }
    };
    for warning in warnings {
        writeln!(err, "warning: {warning}")?;
    }
    match &arguments.command {
        Command::List(list) => show(list, &rules, out, err),
        _ => {
            for file in &read {
                writeln!(out, "{}: fine", file.display())?;
            }
            if read.is_empty() {
                writeln!(out, "there is no policy file: the default rules hold")?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn caller(list: &ListArguments, rules: &RuleSet) -> RequestContext {
    let caller = Caller {
        user_id: Some(list.user.clone()),
        project_id: list.project.clone(),
        roles: list.roles.iter().map(|role| role.trim().to_owned()).collect(),
        ..Caller::default()
    };
    let mut context = RequestContext::for_caller(&caller, &RequestId::random());
    rules.judge(&mut context);
    context
}

fn resource(list: &ListArguments) -> Map<String, Value> {
    let project = list.target_project.as_ref().or(list.project.as_ref());
    let user = list.target_user.as_ref().unwrap_or(&list.user);
    [("project_id", json!(project)), ("user_id", json!(user))]
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect()
}

fn show(
    list: &ListArguments,
    rules: &RuleSet,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<ExitCode> {
    let (caller, resource) = (caller(list, rules), resource(list));
    let wanted = |rule: &&Rule| list.rule.as_ref().is_none_or(|name| name == rule.name());
    let shown: Vec<(Rule, bool)> = Rule::ALL
        .iter()
        .filter(wanted)
        .map(|rule| {
            let target = match rule.asks() {
                Asks::Caller => Target::own(&caller),
                Asks::Resource => Target::Values(&resource),
            };
            (*rule, rules.allows(*rule, &caller, &target))
        })
        .collect();
    if shown.is_empty() {
        let name = list.rule.as_deref().unwrap_or_default();
        writeln!(
            err,
            "there is no rule {name:?}; `magnum-policy sample` shows all of them"
        )?;
        return Ok(ExitCode::FAILURE);
    }
    if list.json {
        let answers: Map<String, Value> = shown
            .iter()
            .map(|(rule, allowed)| (rule.name().to_owned(), json!(allowed)))
            .collect();
        writeln!(out, "{:#}", Value::Object(answers))?;
    } else {
        for (rule, allowed) in &shown {
            let word = if *allowed { "allowed" } else { "refused" };
            writeln!(out, "{word}  {}", rule.name())?;
        }
    }
    let refused = list.rule.is_some() && shown.iter().any(|(_, allowed)| !allowed);
    Ok(if refused {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
