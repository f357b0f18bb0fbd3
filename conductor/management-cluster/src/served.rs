//! Which kinds an API server serves, and in which version a driver speaks of them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroupList, APIResourceList};
use kube::Client;

use crate::needs::Group;

/// How it is with a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// All that is needed of it is served in this version.
    Served(String),
    /// It is served in other versions only.
    OtherVersions(Vec<String>),
    /// It is served in this version without some of its kinds.
    Lacks {
        /// The version.
        version: String,
        /// Those kinds.
        resources: Vec<&'static str>,
    },
    /// It is not served at all.
    Missing,
}

impl Standing {
    /// What is missing of this group, and what is to be done; `None`: nothing.
    pub fn remedy(&self, group: &Group) -> Option<String> {
        match self {
            Self::Served(_) => None,
            Self::Lacks { resources, .. } => {
                Some(format!("{}: update {}", resources.join(", "), group.provider))
            }
            Self::OtherVersions(_) => {
                let needed = group.versions.join(" or ");
                Some(format!("{needed}: {} is too old or too new", group.provider))
            }
            Self::Missing => Some(format!("install {}", group.provider)),
        }
    }
}

/// The versions in which a group is served.
fn versions(group: &Group, served: &APIGroupList) -> Option<Vec<String>> {
    let found = served.groups.iter().find(|one| one.name == group.name)?;
    Some(found.versions.iter().map(|one| one.version.clone()).collect())
}

/// The version to speak, of those that are served. Ours decides, not the server's preference: it is what the driver was made for.
fn spoken(group: &Group, served: &[String]) -> Option<&'static str> {
    let mut known = group.versions.iter().copied();
    known.find(|version| served.iter().any(|one| one == version))
}

fn missing_kinds(group: &Group, served: &APIResourceList) -> Vec<&'static str> {
    let is_missing = |resource: &&str| !served.resources.iter().any(|one| one.name == **resource);
    group.resources.iter().copied().filter(is_missing).collect()
}

/// How it is with each group.
///
/// # Errors
/// The API server cannot be asked.
pub(crate) async fn standings(
    client: &Client,
    groups: &'static [Group],
) -> Result<Vec<(&'static Group, Standing)>, kube::Error> {
    let served = client.list_api_groups().await?;
    let mut standings = Vec::new();
    for group in groups {
        let standing = match versions(group, &served) {
            None => Standing::Missing,
            Some(others) => match spoken(group, &others) {
                None => Standing::OtherVersions(others),
                Some(version) => {
                    let kinds = client
                        .list_api_group_resources(&format!("{}/{version}", group.name))
                        .await?;
                    let resources = missing_kinds(group, &kinds);
                    let version = version.to_owned();
                    if resources.is_empty() {
                        Standing::Served(version)
                    } else {
                        Standing::Lacks { version, resources }
                    }
                }
            },
        };
        standings.push((group, standing));
    }
    Ok(standings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: Group = Group {
        name: "cluster.x-k8s.io",
        provider: "Cluster API",
        versions: &["v1beta2", "v1beta1"],
        resources: &["clusters"],
    };

    fn spoken_of(served: &[&str]) -> Option<&'static str> {
        let served: Vec<String> = served.iter().map(|one| (*one).to_owned()).collect();
        spoken(&GROUP, &served)
    }

    #[test]
    fn the_best_version_that_is_served_is_spoken() {
        assert_eq!(spoken_of(&["v1beta1", "v1beta2"]), Some("v1beta2"));
        assert_eq!(spoken_of(&["v1beta1", "v1alpha4"]), Some("v1beta1"));
        assert_eq!(spoken_of(&["v1"]), None);
    }
}
