//! `adopt`: folders for the drivers of a Python environment.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use magnum_config::Settings;
use magnum_drivers::{DriverFolder, MANIFEST_FILE, Manifest, PythonSpec};
use magnum_engine_python::{Described, inspect};
use magnum_openstack::Credentials;

use super::Outcome;

/// What is adopted.
#[derive(Debug, clap::Args)]
pub(super) struct AdoptArgs {
    /// The environment: its folder, or its python
    #[arg(long, value_name = "VENV")]
    python: PathBuf,
    /// Where to make the folders; unsaid: the last directory of `[drivers] driver_path`
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Only this entry point; may be repeated
    #[arg(long, value_name = "NAME")]
    driver: Vec<String>,
    /// Only say what would be made
    #[arg(long)]
    dry_run: bool,
}

/// What the folders of an environment's drivers have in common.
struct Environment<'a> {
    interpreter: &'a Path,
    /// Whether clusters have a user and a trust in Keystone.
    trusts: bool,
}

/// Makes a folder for each driver of the environment that can be imported.
pub(super) async fn adopt(
    args: &AdoptArgs,
    settings: &Settings,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Outcome> {
    let Some(into) = args.into.as_ref().or_else(|| settings.drivers.driver_path.last()) else {
        writeln!(err, "[drivers] driver_path is empty: say --into DIR")?;
        return Ok(Outcome::Wrong);
    };
    let interpreter = match interpreter(&args.python) {
        Ok(interpreter) => interpreter,
        Err(why) => {
            writeln!(err, "{why}")?;
            return Ok(Outcome::Wrong);
        }
    };
    writeln!(out, "importing the drivers of {} ...", interpreter.display())?;
    out.flush()?;
    let inspected = match inspect(interpreter.clone(), settings.files.clone(), args.driver.clone()).await {
        Ok(inspected) => inspected,
        Err(why) => {
            writeln!(err, "{why}")?;
            return Ok(Outcome::Wrong);
        }
    };
    let mut outcome = Outcome::Fine;
    for name in &args.driver {
        if !inspected.drivers.iter().any(|driver| driver.name == *name) {
            writeln!(
                err,
                "{name}: the environment has no such entry point in magnum.drivers"
            )?;
            outcome = Outcome::Wrong;
        }
    }
    if inspected.drivers.is_empty() && args.driver.is_empty() {
        writeln!(
            err,
            "the environment has no package with an entry point in magnum.drivers"
        )?;
        outcome = Outcome::Wrong;
    }
    let environment = Environment {
        interpreter: &interpreter,
        trusts: inspected.trusts,
    };
    for driver in &inspected.drivers {
        match make(driver, &environment, into, args.dry_run) {
            Ok(folder) => {
                let package = driver.package.as_deref().unwrap_or("?");
                let verb = if args.dry_run { "would make" } else { "made" };
                writeln!(
                    out,
                    "{verb} {} ({package}, Magnum {})",
                    folder.display(),
                    inspected.magnum
                )?;
            }
            Err(why) => {
                writeln!(err, "{}: {why}", driver.name)?;
                outcome = Outcome::Wrong;
            }
        }
    }
    Ok(outcome)
}

/// The environment's python, as an absolute path that names the environment: a virtual environment's is a link.
fn interpreter(given: &Path) -> Result<PathBuf, String> {
    let path = if given.is_dir() {
        given.join("bin/python")
    } else {
        given.to_owned()
    };
    match std::path::absolute(&path) {
        Ok(path) if path.exists() => Ok(path),
        _ => Err(format!(
            "there is no python at {}: name the folder of a virtual environment",
            path.display()
        )),
    }
}

fn make(driver: &Described, of: &Environment<'_>, into: &Path, dry_run: bool) -> Result<PathBuf, String> {
    if let Some(error) = &driver.error {
        return Err(format!("cannot be used: {error}{}", hint(error)));
    }
    let text = manifest(driver, of);
    if let Err(problems) = Manifest::parse(&text) {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        return Err(format!("cannot be described: {}", problems.join("; ")));
    }
    let version = semver(driver.version.as_deref().unwrap_or("0"));
    let folder = into.join(format!("{}-{version}", driver.name));
    if dry_run {
        return Ok(folder);
    }
    let made = fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join(MANIFEST_FILE), text));
    made.map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    Ok(folder)
}

/// Says what keeps a driver of an environment from working here. `false`: something does.
pub(super) async fn check(
    folder: &DriverFolder,
    spec: &PythonSpec,
    settings: &Settings,
    err: &mut dyn Write,
) -> io::Result<bool> {
    let wanted = vec![spec.entry_point.clone()];
    let inspected = match inspect(spec.interpreter.clone(), settings.files.clone(), wanted).await {
        Ok(inspected) => inspected,
        Err(why) => {
            writeln!(err, "{}: {why}", folder.dir.display())?;
            return Ok(false);
        }
    };
    let mut problems = Vec::new();
    if inspected.trusts != spec.trusts {
        let (magnum, trusts) = (&inspected.magnum, inspected.trusts);
        problems.push(format!(
            "the environment has Magnum {magnum}: say trusts = {trusts} in [python]"
        ));
    }
    if spec.trusts
        && let Err(missing) = Credentials::of_trustee_domain_admin(settings)
    {
        problems.push(missing.to_string());
    }
    match inspected.drivers.into_iter().next() {
        None => problems.push(format!(
            "the environment of {} has no entry point {} in magnum.drivers",
            spec.interpreter.display(),
            spec.entry_point
        )),
        Some(driver) => {
            if let Some(error) = &driver.error {
                problems.push(format!("cannot be used: {error}{}", hint(error)));
            }
            let described = semver(driver.version.as_deref().unwrap_or("0"));
            let version = folder.manifest.info.version.to_string();
            if described != version {
                problems.push(format!(
                    "describes version {version}, and the environment has {described}: adopt it anew"
                ));
            }
            let package = driver.package.as_deref().unwrap_or_default();
            for (_, program) in PROGRAMS.iter().filter(|(of, _)| *of == package) {
                if !is_on_path(program) {
                    problems.push(format!("{package} runs {program}, which is not on PATH"));
                }
            }
        }
    }
    for problem in &problems {
        writeln!(err, "{}: {problem}", folder.dir.display())?;
    }
    Ok(problems.is_empty())
}

/// Programs that known packages run.
const PROGRAMS: &[(&str, &str)] = &[("magnum-capi-helm", "helm"), ("magnum-cluster-api", "helm")];

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// What to do about a common error.
fn hint(error: &str) -> &'static str {
    if error.starts_with("ModuleNotFoundError") {
        " (a package is imported and not declared: install it into the environment)"
    } else if error.to_lowercase().contains("kube") {
        " (its constructor reads a kubeconfig: set KUBECONFIG, for the conductor too)"
    } else {
        ""
    }
}

fn manifest(driver: &Described, of: &Environment<'_>) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let package = driver.package.as_deref().unwrap_or("?");
    let version = driver.version.as_deref().unwrap_or("0");
    let mut text = String::new();
    // A string takes whatever is written to it.
    let _ = writeln!(
        text,
        "# Made by magnum-driver-manage adopt. Make it anew after an upgrade of the package.\n\
         [driver]\nname = {}\nversion = {}\nengine = \"python\"\nbeta = {}\ndescription = {}\n",
        quoted(&driver.name),
        quoted(&semver(version)),
        driver.beta,
        quoted(&format!("{package} {version}")),
    );
    for provided in &driver.provides {
        let _ = writeln!(
            text,
            "[[provides]]\nserver_type = {}\nos = {}\ncoe = {}\n",
            quoted(&provided.server_type),
            quoted(&provided.os),
            quoted(&provided.coe),
        );
    }
    text.push_str("[capabilities]\n");
    for capability in driver.capabilities().present() {
        let _ = writeln!(text, "{capability} = true");
    }
    let _ = writeln!(
        text,
        "\n[masters]\nsizes = {}\n\n[python]\ninterpreter = {}",
        quoted(driver.master_size().as_str()),
        quoted(&of.interpreter.display().to_string()),
    );
    if of.trusts {
        text.push_str("trusts = true\n");
    }
    text
}

/// A version of a Python package (PEP 440) as one of semver: three numbers, then what makes it a pre-release.
fn semver(version: &str) -> String {
    let end = version
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(version.len());
    let (release, raw) = version.split_at(end);
    let mut numbers: Vec<u64> = release
        .split('.')
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().unwrap_or(0))
        .collect();
    numbers.resize(3, 0);
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    let rest: String = raw
        .trim_start_matches(['.', '-', '+'])
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '.' })
        .collect();
    let numbers = numbers.join(".");
    // What comes after a release, or beside it, is no pre-release.
    let is_release = raw.starts_with('+') || rest.starts_with("post");
    match (rest.is_empty(), is_release) {
        (true, _) => numbers,
        (false, true) => format!("{numbers}+{rest}"),
        (false, false) => format!("{numbers}-{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_packages_become_versions_of_drivers() {
        for (python, driver) in [
            ("1.4.0", "1.4.0"),
            ("22.0", "22.0.0"),
            ("0.38.2", "0.38.2"),
            ("2.0.0rc1", "2.0.0-rc1"),
            ("1.4.0.dev12", "1.4.0-dev12"),
            ("1.2.post3", "1.2.0+post3"),
            ("1.0.0+local.1", "1.0.0+local.1"),
            ("1.2.3.4", "1.2.3"),
        ] {
            assert_eq!(semver(python), driver, "{python}");
        }
    }
}
