//! A driver as a conductor announces it in a row of `conductor_driver`, and back.

use semver::Version;

use super::info::{Capabilities, ClusterType, DriverInfo, MasterSizeRule};

/// The columns that describe one driver. Which conductor announced it, and when, is the row's business.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the columns")]
pub struct Announcement {
    pub name: String,
    pub version: String,
    pub beta: bool,
    /// JSON: a list of `{server_type, os, coe}`.
    pub cluster_types: String,
    /// JSON: capability name to truth value.
    pub capabilities: String,
    /// `odd` or `any`.
    pub master_size_rule: String,
}

/// A row that another release wrote and we cannot read. The driver is left out; others are not affected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the announced driver '{name}' has an unreadable {column}: {why}")]
pub struct UnreadableAnnouncement {
    /// The driver.
    pub name: String,
    /// The column.
    pub column: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl From<&DriverInfo> for Announcement {
    fn from(info: &DriverInfo) -> Self {
        // Neither can fail: both are plain structs of texts and truth values.
        let cluster_types = serde_json::to_string(&info.cluster_types).unwrap_or_else(|_| "[]".to_owned());
        let capabilities = serde_json::to_string(&info.capabilities).unwrap_or_else(|_| "{}".to_owned());
        Self {
            name: info.name.clone(),
            version: info.version.to_string(),
            beta: info.beta,
            cluster_types,
            capabilities,
            master_size_rule: info.master_size.as_str().to_owned(),
        }
    }
}

impl TryFrom<&Announcement> for DriverInfo {
    type Error = UnreadableAnnouncement;

    fn try_from(row: &Announcement) -> Result<Self, UnreadableAnnouncement> {
        let unreadable = |column: &'static str, why: String| UnreadableAnnouncement {
            name: row.name.clone(),
            column,
            why,
        };
        let cluster_types: Vec<ClusterType> = serde_json::from_str(&row.cluster_types)
            .map_err(|error| unreadable("cluster_types", error.to_string()))?;
        let capabilities: Capabilities = serde_json::from_str(&row.capabilities)
            .map_err(|error| unreadable("capabilities", error.to_string()))?;
        let master_size: MasterSizeRule = row.master_size_rule.parse().map_err(|()| {
            let why = format!("'{}' is not a rule this release knows", row.master_size_rule);
            unreadable("master_size_rule", why)
        })?;
        let version =
            Version::parse(&row.version).map_err(|error| unreadable("version", error.to_string()))?;
        Ok(Self {
            name: row.name.clone(),
            version,
            cluster_types,
            beta: row.beta,
            capabilities,
            master_size,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> DriverInfo {
        DriverInfo {
            name: "disk".into(),
            version: Version::new(1, 2, 3),
            cluster_types: vec![ClusterType::new("vm", "ubuntu", "kubernetes")],
            beta: true,
            capabilities: Capabilities {
                upgrade: true,
                ..Capabilities::default()
            },
            master_size: MasterSizeRule::Any,
        }
    }

    #[test]
    fn announcement_reads_back() {
        let row = Announcement::from(&sample());
        assert_eq!(
            row.cluster_types,
            r#"[{"server_type":"vm","os":"ubuntu","coe":"kubernetes"}]"#
        );
        assert_eq!(DriverInfo::try_from(&row), Ok(sample()));
    }

    #[test]
    fn a_newer_release_may_announce_capabilities_we_do_not_know() {
        let mut row = Announcement::from(&sample());
        row.capabilities = r#"{"upgrade": true, "teleport": true}"#.into();
        assert_eq!(DriverInfo::try_from(&row), Ok(sample()));
    }

    #[test]
    fn an_unreadable_column_is_named() {
        let column = |change: fn(&mut Announcement)| {
            let mut row = Announcement::from(&sample());
            change(&mut row);
            DriverInfo::try_from(&row).unwrap_err().column
        };
        assert_eq!(column(|row| row.cluster_types = "x".into()), "cluster_types");
        assert_eq!(column(|row| row.capabilities = "[]x".into()), "capabilities");
        assert_eq!(
            column(|row| row.master_size_rule = "prime".into()),
            "master_size_rule"
        );
        assert_eq!(column(|row| row.version = "one".into()), "version");
    }
}
