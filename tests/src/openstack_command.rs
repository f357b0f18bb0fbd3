//! The command `openstack` of a tenant, as far as it speaks of clusters.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::deployment::Deployment;
use crate::openstack::PASSWORD;
use crate::oslo_peer::OsloPeer;
use crate::rest::Rest;

/// A tenant at a terminal.
#[derive(Debug)]
pub struct OpenstackCommand {
    client: OsloPeer,
    /// What each command has before its own words.
    login: Vec<String>,
    /// Who asks, and in which folder.
    person: Value,
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
            login: Vec::new(),
            person: json!({"user": user, "project": project, "folder": deployment.folder}),
        })
    }

    /// Of whoever asks an API that has no Keystone.
    pub async fn without_keystone(api: &Rest, deployment: &Deployment) -> Result<Self> {
        let login = ["--os-auth-type", "none", "--os-endpoint", api.base()];
        Ok(Self {
            client: OsloPeer::start("openstack_clients.py", &[]).await?,
            login: login.map(str::to_owned).to_vec(),
            person: json!({"folder": deployment.folder}),
        })
    }

    /// Runs `openstack coe LINE`, which must succeed; what it printed.
    pub async fn coe(&mut self, line: &str) -> Result<Value> {
        let login = self.login.iter().map(String::as_str);
        let args: Vec<&str> = login.chain(["coe"]).chain(line.split_whitespace()).collect();
        let mut request = self.person.clone();
        request["do"] = json!("cli");
        request["args"] = json!(args);
        let told = self.client.ask(request).await?.context(line.to_owned())?;
        // Several commands print a failure and exit with 0; what they show as JSON may speak of one.
        let printed = [&told["out"], &told["err"]];
        let tells_failure = |text: &&Value| text.as_str().is_some_and(|text| text.contains("failed"));
        let is_refused = told["status"] != 0 || printed.iter().any(tells_failure);
        ensure!(!is_refused, "{line}: {told}");
        Ok(told["out"].clone())
    }
}
