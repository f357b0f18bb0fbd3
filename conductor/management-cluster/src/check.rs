//! Whether a management cluster has what a driver needs.

use crate::access::ManagementCluster;
use crate::needs::{Group, Needs};
use crate::rights::{self, Right};
use crate::served::{self, Standing};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Kubernetes' version, as it says it.
    pub version: String,
    /// Each group that is needed, and how it is with it.
    pub groups: Vec<(&'static Group, Standing)>,
    /// The rights that the account lacks.
    pub denied: Vec<Right>,
}

impl Report {
    /// Whether nothing is missing.
    pub fn is_good(&self) -> bool {
        let served = |(_, standing): &(&Group, Standing)| matches!(standing, Standing::Served(_));
        self.groups.iter().all(served) && self.denied.is_empty()
    }

    /// What is missing, a sentence each.
    pub fn missing(&self) -> Vec<String> {
        let kinds = self.groups.iter().filter_map(|(group, standing)| {
            let remedy = standing.remedy(group)?;
            Some(format!("{} in the management cluster: {remedy}", group.name))
        });
        let rights = self
            .denied
            .iter()
            .map(|right| format!("the account in the management cluster may not {right}"));
        kinds.chain(rights).collect()
    }
}

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// It cannot be reached, or does not let us in, or is none.
    #[error("the management cluster at {address} cannot be asked")]
    NotAsked {
        /// Its address.
        address: String,
        /// Why.
        #[source]
        why: Box<kube::Error>,
    },
    /// The account's manifest in this program cannot be read.
    #[error("the account's manifest cannot be read: {0}")]
    Manifest(String),
}

/// Asks it.
///
/// # Errors
/// See [`CheckError`]. What it lacks is in the report.
pub async fn check(cluster: &ManagementCluster, needs: Needs) -> Result<Report, CheckError> {
    let not_asked = |why| CheckError::NotAsked {
        address: cluster.address.clone(),
        why: Box::new(why),
    };
    let rights = needs.rights().map_err(CheckError::Manifest)?;
    let client = &cluster.client;
    let version = client.apiserver_version().await.map_err(not_asked)?.git_version;
    let groups = served::standings(client, needs.groups())
        .await
        .map_err(not_asked)?;
    let denied = rights::denied(client, rights).await.map_err(not_asked)?;
    Ok(Report {
        version,
        groups,
        denied,
    })
}
