//! The command `openstack` of a tenant, as far as it speaks of clusters.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::deployment::Deployment;
use crate::openstack::PASSWORD;
use crate::oslo_peer::OsloPeer;

/// A tenant at a terminal.
#[derive(Debug)]
pub struct OpenstackCommand {
    client: OsloPeer,
    user: String,
    project: String,
    folder: PathBuf,
}

impl OpenstackCommand {
    /// Of a user of the Keystone at `url`, in a folder of the deployment.
    pub async fn start(
        url: &str,
        region: &str,
        user: &str,
        project: &str,
        deployment: &Deployment,
    ) -> Result<Self> {
        Ok(Self {
            client: OsloPeer::start("openstack_clients.py", &[url, region, PASSWORD]).await?,
            user: user.to_owned(),
            project: project.to_owned(),
            folder: deployment.folder.clone(),
        })
    }

    /// Runs `openstack coe LINE`, which must succeed; what it printed.
    pub async fn coe(&mut self, line: &str) -> Result<Value> {
        let args: Vec<&str> = ["coe"].into_iter().chain(line.split_whitespace()).collect();
        let request = json!({
            "do": "cli", "user": self.user, "project": self.project, "args": args, "folder": self.folder});
        let told = self.client.ask(request).await?.context(line.to_owned())?;
        // Several commands print a failure and exit with 0; what they show as JSON may speak of one.
        let printed = [&told["out"], &told["err"]];
        let tells_failure = |text: &&Value| text.as_str().is_some_and(|text| text.contains("failed"));
        let is_refused = told["status"] != 0 || printed.iter().any(tells_failure);
        ensure!(!is_refused, "{line}: {told}");
        Ok(told["out"].clone())
    }
}
