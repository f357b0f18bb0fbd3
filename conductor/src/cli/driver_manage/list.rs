//! `list-drivers`: the drivers in `driver_path`, those that cannot be loaded, and those that conductors announce.

use std::io::{self, Write};
use std::path::PathBuf;

use magnum_config::Settings;
use magnum_drivers::{DriverFolder, LoadError, ResolutionRules, discover};
use serde_json::{Value, json};

use super::announced::{Announced, Announcements};
use super::{ListArgs, check, table};

/// The driver folders of this host.
pub(super) struct LocalDrivers {
    path: Vec<PathBuf>,
    rules: ResolutionRules,
    loaded: Vec<DriverFolder>,
    failed: Vec<LoadError>,
}

/// Loads all driver folders in the directories of `driver_path`.
pub(super) fn discover_local(settings: &Settings) -> LocalDrivers {
    let path = settings.drivers.driver_path.clone();
    let mut found = LocalDrivers {
        rules: ResolutionRules::from(&settings.drivers),
        loaded: Vec::new(),
        failed: Vec::new(),
        path,
    };
    for outcome in discover(&found.path) {
        match outcome {
            Ok(folder) => found.loaded.push(folder),
            Err(error) => found.failed.push(error),
        }
    }
    found.loaded.sort_by(|a, b| {
        let (a, b) = (&a.manifest.info, &b.manifest.info);
        a.name.cmp(&b.name).then_with(|| b.version.cmp(&a.version))
    });
    found
}

impl LocalDrivers {
    /// Whether new clusters may use the driver, for people.
    fn state(&self, folder: &DriverFolder) -> &'static str {
        let info = &folder.manifest.info;
        match (self.rules.is_disabled(&info.name), info.beta) {
            (true, _) => "disabled",
            (false, true) if self.rules.may_use(info) => "beta, enabled",
            (false, true) => "beta, not enabled",
            (false, false) => "enabled",
        }
    }
}

pub(super) fn print_table(
    found: &LocalDrivers,
    announced: Option<&Announced>,
    args: &ListArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<()> {
    let mut heads = vec!["Name", "Version", "Engine", "State"];
    if args.details {
        heads.extend(["Server_Type", "OS", "COE", "Masters", "Capabilities"]);
    }
    if args.paths {
        heads.push("Path");
    }
    let mut rows = Vec::new();
    for folder in &found.loaded {
        let info = &folder.manifest.info;
        let mut row = vec![
            info.name.clone(),
            info.version.to_string(),
            folder.manifest.engine.name().to_owned(),
            found.state(folder).to_owned(),
        ];
        let path = args.paths.then(|| folder.dir.display().to_string());
        if !args.details {
            row.extend(path);
            rows.push(row);
            continue;
        }
        let capabilities = info.capabilities.present().join(", ");
        for provided in &info.cluster_types {
            let mut row = row.clone();
            row.extend([&provided.server_type, &provided.os, &provided.coe].map(Clone::clone));
            row.extend([info.master_size.as_str().to_owned(), capabilities.clone()]);
            row.extend(path.clone());
            rows.push(row);
        }
    }
    table::print(&heads, &rows, out)?;
    if found.loaded.is_empty() && found.failed.is_empty() {
        let path: Vec<_> = found.path.iter().map(|dir| dir.display().to_string()).collect();
        writeln!(
            err,
            "No driver is in the directories of [drivers] driver_path: {}",
            path.join(", ")
        )?;
    }
    if !found.failed.is_empty() {
        writeln!(out, "\nNot loaded:")?;
        for error in &found.failed {
            check::print_problems(error, out)?;
        }
    }
    match announced {
        None => Ok(()),
        Some(Ok(announcements)) => print_announced(announcements, out),
        Some(Err(why)) => writeln!(err, "\nWhat conductors have loaded is not known: {why}"),
    }
}

fn print_announced(announcements: &Announcements, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nOn running conductors:")?;
    let rows: Vec<_> = announcements
        .drivers
        .iter()
        .map(|announced| {
            vec![
                announced.announcement.name.clone(),
                announced.announcement.version.clone(),
                announced.host.clone(),
                announced.conductor.clone(),
                format!("{} s ago", announcements.age(announced)),
                if announced.error.is_none() {
                    "loaded"
                } else {
                    "failed"
                }
                .to_owned(),
            ]
        })
        .collect();
    table::print(
        &["Name", "Version", "Host", "Conductor", "Announced", "State"],
        &rows,
        out,
    )?;
    for announced in &announcements.drivers {
        if let Some(error) = &announced.error {
            writeln!(out, "{}: {error}", announced.host)?;
        }
    }
    Ok(())
}

pub(super) fn print_json(
    found: &LocalDrivers,
    announced: Option<&Announced>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let drivers: Vec<Value> = found
        .loaded
        .iter()
        .map(|folder| {
            let info = &folder.manifest.info;
            json!({
                "name": info.name,
                "version": info.version.to_string(),
                "description": folder.manifest.description,
                "engine": folder.manifest.engine.name(),
                "state": found.state(folder),
                "beta": info.beta,
                "cluster_types": info.cluster_types,
                "capabilities": info.capabilities,
                "masters": info.master_size.as_str(),
                "path": folder.dir,
            })
        })
        .collect();
    let failed: Vec<Value> = found
        .failed
        .iter()
        .map(|error| {
            let problems: Vec<Value> = error
                .problems
                .iter()
                .map(|problem| json!({"line": problem.line, "message": problem.message}))
                .collect();
            json!({
                "path": error.dir,
                "name": error.name,
                "version": error.version,
                "problems": problems,
            })
        })
        .collect();
    let mut document = json!({"drivers": drivers, "failed": failed});
    match announced {
        None => {}
        Some(Err(why)) => document["conductors_error"] = json!(why),
        Some(Ok(announcements)) => {
            let conductors = announcements.drivers.iter().map(|announced| {
                json!({
                    "conductor": announced.conductor,
                    "host": announced.host,
                    "name": announced.announcement.name,
                    "version": announced.announcement.version,
                    "seconds_ago": announcements.age(announced),
                    "error": announced.error,
                })
            });
            document["conductors"] = conductors.collect();
        }
    }
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}
