//! What a cluster and its parts are called in the management cluster (reference drivers.md 4.1).

use magnum_common::model::{Cluster, NodeGroup};

/// A release's name has at most 53 characters: this many of the cluster's name, a `-`, and twelve random ones. Machines' host names
/// begin with it.
const NAME_IN_RELEASE: usize = 30;

/// What masters are called.
const CONTROL_PLANE: &str = "control-plane";

/// Longest value of a label.
const LABEL_VALUE: usize = 63;

/// A text as part of an object's name: lower case, a `-` for each run of other characters than letters and digits, none of them at
/// either end. Different texts can have the same (`a_b`, `a-b`).
pub fn sanitized(text: &str) -> String {
    let mut name = String::new();
    for c in text.to_lowercase().chars() {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    name.truncate(name.trim_end_matches('-').len());
    name
}

/// The namespace of a project's clusters.
pub fn namespace(prefix: &str, project: &str) -> String {
    let of_project: String = project
        .to_lowercase()
        .chars()
        .filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        .collect();
    format!("{prefix}-{of_project}")
}

/// The release of a new cluster, `random` being twelve letters and digits. It is saved as the cluster's `stack_id` before it is used,
/// and stays, whatever the cluster is called later.
pub fn release(cluster_name: &str, random: &str) -> String {
    let name = sanitized(cluster_name);
    // Sanitised, it has ASCII alone.
    let name = name.get(..NAME_IN_RELEASE).unwrap_or(&name);
    format!("{name}-{random}").to_lowercase()
}

/// Why a node group cannot be told from another one in the management cluster.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadGroupName {
    /// The chart refuses it.
    #[error(
        "The node group {0} would be called {1:?} in the management cluster, where a name has three characters at least and begins \
         with a letter: give it another name."
    )]
    TooLittle(String, String),
    /// Two are called the same.
    #[error(
        "The node groups {0} and {1} would both be called {2:?} in the management cluster: give the new one another name."
    )]
    OfAnother(String, String, String),
    /// The masters are called that.
    #[error(
        "The node group {0} would be called as the masters are in the management cluster: give it another name."
    )]
    OfMasters(String),
}

/// Whether a new group has a name of its own among those of its cluster.
///
/// # Errors
/// Another name is needed.
pub fn check_new_group(group: &NodeGroup, all: &[NodeGroup]) -> Result<(), BadGroupName> {
    let name = sanitized(&group.name);
    if name.len() < 3 || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err(BadGroupName::TooLittle(group.name.clone(), name));
    }
    if name == CONTROL_PLANE {
        return Err(BadGroupName::OfMasters(group.name.clone()));
    }
    let mut others = all.iter().filter(|other| other.uuid != group.uuid);
    match others.find(|other| sanitized(&other.name) == name) {
        Some(other) => Err(BadGroupName::OfAnother(
            other.name.clone(),
            group.name.clone(),
            name,
        )),
        None => Ok(()),
    }
}

/// A cluster with the name by which the management cluster knows it.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// Its row.
    pub cluster: &'a Cluster,
    /// Its release, which is the name of its `Cluster` and its `OpenStackCluster`, too.
    pub release: &'a str,
}

impl<'a> Named<'a> {
    /// `None`: it has no release, so nothing of it was ever made.
    pub fn of(cluster: &'a Cluster) -> Option<Self> {
        let release = cluster.stack_id.as_deref().filter(|id| !id.is_empty())?;
        Some(Self { cluster, release })
    }

    fn part(&self, suffix: &str) -> String {
        sanitized(&format!("{}-{suffix}", self.release))
    }

    /// Its `KubeadmControlPlane`.
    pub fn control_plane(&self) -> String {
        self.part(CONTROL_PLANE)
    }

    /// A group's `MachineDeployment`.
    pub fn machine_deployment(&self, group: &NodeGroup) -> String {
        self.part(&group.name)
    }

    /// The secret with its credential.
    pub fn cloud_credentials(&self) -> String {
        self.part("cloud-credentials")
    }

    /// A secret with a certificate: `ca`, `etcd`, `proxy` or `sa`.
    pub fn secret(&self, suffix: &str) -> String {
        self.part(suffix)
    }

    /// The labels of its secrets.
    pub fn secret_labels(&self) -> [(&'static str, String); 4] {
        let cut = |text: &str| text.chars().take(LABEL_VALUE).collect::<String>();
        let told = |text: &Option<String>| cut(text.as_deref().unwrap_or_default());
        [
            ("magnum.openstack.org/project-id", told(&self.cluster.project_id)),
            ("magnum.openstack.org/user-id", told(&self.cluster.user_id)),
            (
                "magnum.openstack.org/cluster-uuid",
                cut(self.cluster.uuid.as_str()),
            ),
            ("cluster.x-k8s.io/cluster-name", self.release.to_owned()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_names_of_objects() {
        for (text, name) in [
            ("My_Cluster.1", "my-cluster-1"),
            ("--a__b..", "a-b"),
            ("Straße", "stra-e"),
            ("...", ""),
        ] {
            assert_eq!(sanitized(text), name, "{text}");
        }
    }

    #[test]
    fn a_new_group_needs_a_name_of_its_own() {
        use magnum_common::ids::{ClusterUuid, NodeGroupUuid};
        let group = |name: &str| {
            NodeGroup::new(
                NodeGroupUuid::new(name),
                name,
                ClusterUuid::new("c"),
                "p",
                "worker",
            )
        };
        let all = [group("default-worker"), group("a_pool")];
        for good in ["pool", "default-worker", "b-pool"] {
            assert_eq!(check_new_group(&group(good), &all), Ok(()), "{good}");
        }
        for (bad, why) in [
            (
                "A-Pool",
                "The node groups a_pool and A-Pool would both be called \"a-pool\"",
            ),
            ("12", "The node group 12 would be called \"12\""),
            ("1st-pool", "begins with a letter"),
            ("+++", "The node group +++ would be called \"\""),
            ("Control_Plane", "as the masters are"),
        ] {
            let told = check_new_group(&group(bad), &all).unwrap_err().to_string();
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn a_release_has_thirty_characters_of_the_name_at_most() {
        assert_eq!(
            release("My_Cluster.1", "ABCDEFGHIJKL"),
            "my-cluster-1-abcdefghijkl"
        );
        let long = release(&"x".repeat(100), "abcdefghijkl");
        assert_eq!(long, format!("{}-abcdefghijkl", "x".repeat(30)));
    }

    #[test]
    fn a_projects_namespace_has_letters_and_digits_of_its_id() {
        assert_eq!(namespace("magnum", "AB-12_c"), "magnum-ab12c");
    }
}
