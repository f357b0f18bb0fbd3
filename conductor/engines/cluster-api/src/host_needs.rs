//! What a conductor's host has to have: the command helm, and a kubeconfig that can be read.

use std::env;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use magnum_common::error::with_causes;
use magnum_config::Settings;
use magnum_management_cluster::ManagementCluster;
use magnum_management_cluster::access::Source;

use crate::options::CapiHelmSection;

/// What this host lacks, for whoever looks after it; a sentence each. The management cluster is not asked.
pub async fn missing_here(settings: &Settings) -> Vec<String> {
    let mut missing = missing_helm();
    match settings.section::<CapiHelmSection>() {
        Ok(read) => {
            let option = Some(read.section.kubeconfig_file).filter(|file| !file.is_empty());
            if let Err(why) = opened(option.map(PathBuf::from)).await {
                missing.push(why);
            }
        }
        Err(errors) => missing.extend(errors.0.iter().map(ToString::to_string)),
    }
    missing
}

/// Whether the command helm is missing, as a sentence.
pub fn missing_helm() -> Vec<String> {
    if is_on_path("helm") {
        return Vec::new();
    }
    vec!["the command helm is not on PATH: install it where conductors find it".to_owned()]
}

async fn opened(option: Option<PathBuf>) -> Result<(), String> {
    let source = Source::find(option.as_deref(), |name| env::var_os(name));
    let source = source.map_err(|why| why.to_string())?;
    let cluster = ManagementCluster::open(source).await;
    cluster.map(drop).map_err(|why| with_causes(&why))
}

fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| {
        let found = folder.join(program).metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}
