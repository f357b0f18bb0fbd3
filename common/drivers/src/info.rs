//! What is known of a driver without running it.

use std::fmt;
use std::str::FromStr;

use semver::Version;
use serde::{Deserialize, Serialize};

use magnum_common::error::{Exception, Fault};

use super::api_route::ApiRoutes;

/// What a cluster is made of: the key by which Magnum finds a driver.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are Magnum's")]
pub struct ClusterType {
    /// `vm` or `bm`.
    pub server_type: String,
    pub os: String,
    pub coe: String,
}

impl ClusterType {
    /// The type of these three.
    pub fn new(server_type: &str, os: &str, coe: &str) -> Self {
        Self {
            server_type: server_type.to_owned(),
            os: os.to_owned(),
            coe: coe.to_owned(),
        }
    }
}

impl fmt::Display for ClusterType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {})", self.server_type, self.os, self.coe)
    }
}

macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a driver can do besides create, update, resize workers, delete and observe. Asked before any
        /// state changes. Names that a newer release announces and we do not know are ignored.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Capabilities {
            $($(#[$doc])* pub $name: bool,)*
        }

        impl Capabilities {
            /// The names, as in manifests.
            pub const NAMES: &[&str] = &[$(stringify!($name),)*];

            /// Sets one by name; false for a name there is not.
            pub fn set(&mut self, name: &str, value: bool) -> bool {
                match name {
                    $(stringify!($name) => self.$name = value,)*
                    _ => return false,
                }
                true
            }

            /// The names of those that are there.
            pub fn present(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$name {
                    names.push(stringify!($name));
                })*
                names
            }
        }
    };
}

capabilities! {
    /// Change the number of masters.
    resize_masters,
    /// Remove the very nodes that a request names.
    remove_named_nodes,
    /// Go to another template.
    upgrade,
    /// Replace the certificate authority.
    rotate_ca,
    /// Replace the credential a cluster uses towards the cloud.
    rotate_credential,
    /// Build a node anew.
    rebuild,
    /// Restart a node's operating system.
    soft_reboot,
    /// Switch a node off and on.
    hard_reboot,
    /// Tell the health of its clusters.
    health,
    /// Choose the nodes that go when a group shrinks and the request names none.
    scale,
    /// Name its nodes, so that a resize is refused which names others.
    node_names,
    /// Tell how much of their processors and memory its clusters use.
    monitor,
}

/// Which numbers of masters a driver builds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MasterSizeRule {
    /// 1, 3, 5, …: what a quorum of etcd members needs.
    #[default]
    Odd,
    /// 1 or more.
    Any,
}

impl MasterSizeRule {
    /// Every rule, by its text.
    pub const ALL: &[Self] = &[Self::Odd, Self::Any];

    /// The text in manifests and rows.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Odd => "odd",
            Self::Any => "any",
        }
    }

    /// Whether a control plane of `masters` nodes can be built.
    ///
    /// # Errors
    /// `MasterNGSizeInvalid` in Magnum's words; for a number below 1 in words that are true of it.
    pub fn check(self, masters: i32) -> Result<(), Fault> {
        let why = match self {
            _ if masters < 1 => "size must be at least 1",
            Self::Odd if masters % 2 == 0 => "size cannot be an even number",
            Self::Odd | Self::Any => return Ok(()),
        };
        Err(Fault::new(
            Exception::MasterNGSizeInvalid,
            format!("master nodegroup size of {masters} is invalid, {why}."),
        ))
    }
}

impl FromStr for MasterSizeRule {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL
            .iter()
            .copied()
            .find(|rule| rule.as_str() == text)
            .ok_or(())
    }
}

/// A driver in one version. What runs it is not here: the API does not need it, and an announcement does not
/// carry it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverInfo {
    /// The name in templates and options.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// What it builds.
    pub cluster_types: Vec<ClusterType>,
    /// Not for everybody yet: needs `[drivers] enabled_beta_drivers`.
    pub beta: bool,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Which numbers of masters it builds.
    pub master_size: MasterSizeRule,
    /// The routes of its own API.
    pub api: ApiRoutes,
}

impl DriverInfo {
    /// Whether it builds clusters of that type.
    pub fn provides(&self, cluster_type: &ClusterType) -> bool {
        self.cluster_types.contains(cluster_type)
    }

    /// Name, version and what it builds, for people.
    pub fn shown(&self) -> String {
        let types: Vec<String> = self.cluster_types.iter().map(ToString::to_string).collect();
        format!("{self} for {}", types.join(", "))
    }
}

impl fmt::Display for DriverInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_odd_rule_refuses_even_and_the_any_rule_only_none() {
        let refused = |rule: MasterSizeRule| -> Vec<i32> {
            (-1..6).filter(|masters| rule.check(*masters).is_err()).collect()
        };
        assert_eq!(refused(MasterSizeRule::Odd), [-1, 0, 2, 4]);
        assert_eq!(refused(MasterSizeRule::Any), [-1, 0]);
        assert_eq!(
            MasterSizeRule::Odd.check(2).unwrap_err().message,
            "master nodegroup size of 2 is invalid, size cannot be an even number."
        );
    }

    #[test]
    fn every_capability_can_be_set_by_its_name() {
        let mut all = Capabilities::default();
        assert!(all.present().is_empty());
        for name in Capabilities::NAMES {
            assert!(all.set(name, true));
        }
        assert_eq!(all.present(), Capabilities::NAMES);
        assert!(!all.set("fly", true));
    }
}
