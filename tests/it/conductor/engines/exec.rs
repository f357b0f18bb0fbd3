//! The engine `exec` with the drivers that are shipped.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use magnum_common::ids::ClusterUuid;
use magnum_conductor::drivers::Loaded;
use magnum_config::Settings;
use magnum_driver_api::{
    Clock, Cloud, Driver, EngineOptions, EngineServices, GuardProgram, NoCertificates, NoTrusts,
    RandomSource, Shared,
};
use magnum_tests::files::copy_folder;
use magnum_tests::oslo_peer::tool;
use magnum_tests::process::built;
use magnum_tests::run_dir::run_dir;

use super::scene::Scene;
use super::subject::{Fault, LEASE, Subject};

/// A driver of `deploy/drivers` in a folder of its own, which builds in a folder beside it.
pub struct Shipped {
    name: &'static str,
    folder: PathBuf,
    /// The folder of each cluster, below `built`.
    clusters: &'static str,
    /// How the world is made slow, and how it misbehaves.
    trick: Trick,
}

enum Trick {
    /// The driver obeys labels.
    Labels,
    /// The driver runs a command, which can be another one.
    Command { real: PathBuf },
}

impl Shipped {
    /// `deploy/drivers/disk`.
    pub fn disk() -> Result<Self> {
        Self::new("disk", "clusters", Trick::Labels)
    }

    /// `deploy/drivers/ansible`.
    pub fn ansible() -> Result<Self> {
        let real = tool("ansible-playbook")?;
        let subject = Self::new("ansible", "", Trick::Command { real })?;
        subject.command("exec \"$REAL\" \"$@\"")?;
        Ok(subject)
    }

    fn new(name: &'static str, clusters: &'static str, trick: Trick) -> Result<Self> {
        let folder = run_dir()?.folder(name)?;
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../deploy/drivers")
            .join(name);
        copy_folder(&shipped, &folder.join("drivers").join(name))?;
        let subject = Self {
            name,
            folder,
            clusters,
            trick,
        };
        fs::create_dir(subject.built())?;
        let manifest = subject.folder.join("drivers").join(name).join("driver.toml");
        let text = fs::read_to_string(&manifest)?;
        let mut lines: Vec<String> = Vec::new();
        for line in text.lines() {
            lines.push(match line.split_once(" = ") {
                Some((key @ ("root" | "state_directory"), _)) => {
                    format!("{key} = {:?}", subject.built().display().to_string())
                }
                Some((key @ "obey_labels", _)) => format!("{key} = true"),
                Some((key @ "command", _)) => format!("{key} = {:?}", subject.script().display().to_string()),
                _ => line.to_owned(),
            });
        }
        fs::write(&manifest, lines.join("\n"))?;
        Ok(subject)
    }

    fn built(&self) -> PathBuf {
        self.folder.join("built")
    }

    fn script(&self) -> PathBuf {
        self.folder.join("command")
    }

    /// Replaces the command that the driver runs by a shell script; `$REAL` is the real one.
    fn command(&self, body: &str) -> Result<()> {
        if let Trick::Command { real } = &self.trick {
            let text = format!("#!/bin/sh\nREAL={:?}\n{body}\n", real.display().to_string());
            let draft = self.script().with_extension("new");
            fs::write(&draft, text)?;
            fs::set_permissions(&draft, fs::Permissions::from_mode(0o755))?;
            fs::rename(draft, self.script())?;
        }
        Ok(())
    }

    fn of(&self, cluster: &ClusterUuid) -> PathBuf {
        self.built().join(self.clusters).join(cluster.as_str())
    }
}

/// Every file below `folder` with its content, by its path.
fn read_all(folder: &Path, found: &mut BTreeMap<String, String>, name: &str) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let entry = entry?;
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            read_all(&entry.path(), found, &name)?;
        } else {
            found.insert(name, fs::read_to_string(entry.path())?);
        }
    }
    Ok(())
}

#[async_trait]
impl Subject for Shipped {
    fn driver(&self) -> Result<Arc<dyn Driver>> {
        let settings = Settings::default();
        let services = EngineServices {
            guard: GuardProgram {
                program: built("magnum-conductor")?,
                arguments: Vec::new(),
            },
            lease: LEASE,
            options: EngineOptions::new(&settings),
            cloud: Cloud::new(&settings),
            certificates: Arc::new(NoCertificates),
            trusts: Arc::new(NoTrusts),
            clock: Clock::default(),
            random: RandomSource::default(),
            shared: Shared::default(),
        };
        let loaded = Loaded::from_folders(&[self.folder.join("drivers")], &services);
        ensure!(loaded.failed().is_empty(), "{:?}", loaded.failed());
        loaded.get(self.name, "1.0.0").context("the driver is loaded")
    }

    async fn effects(&self, cluster: &ClusterUuid) -> Result<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        read_all(&self.of(cluster), &mut found, "")?;
        Ok(found)
    }

    async fn nodes(&self, cluster: &ClusterUuid) -> Result<usize> {
        let effects = self.effects(cluster).await?;
        Ok(match self.trick {
            Trick::Labels => effects.keys().filter(|name| name.ends_with("/node.json")).count(),
            Trick::Command { .. } => effects.get("/nodes.ini").map_or(0, |inventory| {
                let lines = inventory.lines();
                lines
                    .filter(|line| !line.is_empty() && !line.starts_with(['[', '#']))
                    .count()
            }),
        })
    }

    fn slow_down(&self, scene: &mut Scene) -> Result<()> {
        scene.cluster.labels.insert("disk_delay_ms".into(), "700".into());
        // The first task is told before it is done.
        self.command("echo 'TASK [about to begin] ***'; sleep 1; exec \"$REAL\" \"$@\"")
    }

    fn break_down(&self, scene: &mut Scene, fault: Fault) -> Result<()> {
        // The file for the result lies beside that of the variables, which is given as the argument `@…`.
        let find = "for one in \"$@\"; do case $one in @*) folder=$(dirname \"${one#@}\");; esac; done";
        let result = match fault {
            Fault::Garbage => {
                scene.cluster.labels.insert("disk_fail".into(), "garbage".into());
                "no JSON".to_owned()
            }
            Fault::OverLimit => {
                // The disk driver repeats it as the cluster's version.
                scene.cluster.labels.insert("kube_tag".into(), "v".repeat(256));
                format!("{{\"cluster\": {{\"stack_id\": \"{}\"}}}}", "s".repeat(256))
            }
        };
        self.command(&format!("{find}\necho '{result}' > \"$folder/result.json\""))
    }

    fn mend(&self, scene: &mut Scene) -> Result<()> {
        for label in ["disk_delay_ms", "disk_fail", "kube_tag"] {
            scene.cluster.labels.shift_remove(label);
        }
        self.command("exec \"$REAL\" \"$@\"")
    }
}
