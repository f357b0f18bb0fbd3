//! A driver as a conductor announces it in a row of `conductor_driver`, and back.

use semver::Version;
use serde_json::Value;

use super::api_route::{ApiRoute, ApiRoutes};
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
    /// JSON: a list of routes; none in rows of older releases.
    pub api_routes: Option<String>,
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
            api_routes: routes_to_json(&info.api),
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
        let api = routes_of_json(row.api_routes.as_deref())
            .map_err(|error| unreadable("api_routes", error.to_string()))?;
        Ok(Self {
            name: row.name.clone(),
            version,
            cluster_types,
            beta: row.beta,
            capabilities,
            master_size,
            api,
        })
    }
}

/// Null where there are none, as in rows of older releases.
fn routes_to_json(routes: &ApiRoutes) -> Option<String> {
    if routes.is_empty() {
        return None;
    }
    serde_json::to_string(routes).ok()
}

/// The routes that we understand. A newer release may announce others, with methods that we do not know: those are not
/// there for us, and the driver builds clusters all the same.
fn routes_of_json(text: Option<&str>) -> Result<ApiRoutes, serde_json::Error> {
    let Some(text) = text else {
        return Ok(ApiRoutes::default());
    };
    let routes: Vec<Value> = serde_json::from_str(text)?;
    let understood = routes
        .into_iter()
        .filter_map(|route| serde_json::from_value::<ApiRoute>(route).ok());
    Ok(ApiRoutes::new(understood.take(ApiRoutes::MOST).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_route::ApiMethod;

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
            api: ApiRoutes::default(),
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
    fn routes_are_announced_and_those_of_a_newer_release_are_left_out() {
        let mut info = sample();
        let route = ApiRoute {
            path: "disk/usage".into(),
            methods: vec![ApiMethod::Get],
            policy: "cluster:get".into(),
            read_only: true,
        };
        info.api = ApiRoutes::new(vec![route]);
        let mut row = Announcement::from(&info);
        let announced = r#"{"path":"disk/usage","methods":["GET"],"policy":"cluster:get","read_only":true}"#;
        assert_eq!(row.api_routes.as_deref(), Some(format!("[{announced}]").as_str()));
        let newer = r#"{"path":"watch","methods":["SUBSCRIBE"],"policy":"cluster:get","read_only":true}"#;
        row.api_routes = Some(format!("[{newer}, {announced}]"));
        assert_eq!(DriverInfo::try_from(&row), Ok(info));
        row.api_routes = None;
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
        assert_eq!(column(|row| row.api_routes = Some("x".into())), "api_routes");
    }
}
