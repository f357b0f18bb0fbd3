//! The drivers that can be chosen from: by name, in versions.

use std::collections::BTreeMap;

use semver::Version;

use super::info::DriverInfo;

/// A set of drivers. Names in alphabetical order, versions of a name from the highest down.
///
/// Versions compare by semver: 1.10.0 is higher than 1.9.0, and 2.0.0 higher than 2.0.0-rc.1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registry {
    drivers: BTreeMap<String, BTreeMap<Version, DriverInfo>>,
}

impl Registry {
    /// Adds a driver; false when that name and version is there already, and then nothing changes.
    pub fn insert(&mut self, info: DriverInfo) -> bool {
        let versions = self.drivers.entry(info.name.clone()).or_default();
        if versions.contains_key(&info.version) {
            return false;
        }
        versions.insert(info.version.clone(), info);
        true
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.drivers.is_empty()
    }

    /// The names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.drivers.keys().map(String::as_str)
    }

    /// The versions of a name, the highest first; nothing for a name that is not there.
    pub fn versions(&self, name: &str) -> impl Iterator<Item = &DriverInfo> {
        self.drivers
            .get(name)
            .into_iter()
            .flat_map(|versions| versions.values().rev())
    }

    /// The driver of that name in exactly that version.
    pub fn get(&self, name: &str, version: &Version) -> Option<&DriverInfo> {
        self.drivers.get(name)?.get(version)
    }

    /// Every driver: by name, the highest version first.
    pub fn iter(&self) -> impl Iterator<Item = &DriverInfo> {
        self.drivers.values().flat_map(|versions| versions.values().rev())
    }
}

impl FromIterator<DriverInfo> for Registry {
    fn from_iter<I: IntoIterator<Item = DriverInfo>>(drivers: I) -> Self {
        let mut registry = Self::default();
        registry.extend(drivers);
        registry
    }
}

impl Extend<DriverInfo> for Registry {
    fn extend<I: IntoIterator<Item = DriverInfo>>(&mut self, drivers: I) {
        for info in drivers {
            self.insert(info);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capabilities, MasterSizeRule};

    fn driver(name: &str, version: &str) -> DriverInfo {
        DriverInfo {
            name: name.into(),
            version: version.parse().unwrap(),
            cluster_types: Vec::new(),
            beta: false,
            capabilities: Capabilities::default(),
            master_size: MasterSizeRule::Odd,
            api: Default::default(),
        }
    }

    #[test]
    fn names_are_alphabetical_and_versions_go_down_by_semver() {
        let registry: Registry = [
            driver("b", "1.9.0"),
            driver("a", "1.0.0"),
            driver("b", "1.10.0"),
            driver("b", "2.0.0-rc.1"),
            driver("b", "2.0.0"),
        ]
        .into_iter()
        .collect();
        let all: Vec<_> = registry.iter().map(ToString::to_string).collect();
        assert_eq!(all, ["a 1.0.0", "b 2.0.0", "b 2.0.0-rc.1", "b 1.10.0", "b 1.9.0"]);
        assert_eq!(registry.names().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(registry.versions("c").count(), 0);
    }

    #[test]
    fn the_first_of_a_name_and_version_stays() {
        let mut registry = Registry::default();
        assert!(registry.insert(driver("a", "1.0.0")));
        let mut other = driver("a", "1.0.0");
        other.beta = true;
        assert!(!registry.insert(other));
        assert!(!registry.get("a", &Version::new(1, 0, 0)).unwrap().beta);
    }
}
