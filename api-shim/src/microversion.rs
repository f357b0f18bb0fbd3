//! Microversions: which one a request speaks, and what each of them means.
//!
//! Negotiation is by the header `OpenStack-API-Version: <service> <version>` and covers every path under `/v1`.
//! Each answer of a `/v1` controller, error or not, names the lowest, the highest and the effective version.
//!
//! | version | what it changed |
//! |---|---|
//! | 1.1 | the start |
//! | 1.2, 1.11 | nothing that is served here behaves differently |
//! | 1.3 | `?rollback=` on cluster PATCH |
//! | 1.4, 1.5, 1.6 | stats, CA rotation, quotas: never gated, as in Magnum |
//! | 1.7, 1.8, 1.9, 1.12 | resize, upgrade, node groups, credentials |
//! | 1.10 | clusters with no worker node; an unknown template is 404 instead of 400 |
//! | 1.13 | a cluster shows `cluster_id` in place of `stack_id` |
//! | 1.14 | labels and taints of a node group's nodes |
//! | 1.15 | `driver` of a cluster template (ours: Magnum 23 shows it at every version); operations of a cluster (ours) |
//! | 1.16 | nodes of a cluster are built anew and restarted; a driver's own API (ours) |

use std::fmt;
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// The request and response header.
pub const HEADER: HeaderName = HeaderName::from_static("openstack-api-version");
const MINIMUM_HEADER: HeaderName = HeaderName::from_static("openstack-api-minimum-version");
const MAXIMUM_HEADER: HeaderName = HeaderName::from_static("openstack-api-maximum-version");

/// The service word in answers, whichever of the accepted ones was sent.
const SERVICE: &str = "container-infrastructure-management";
const SERVICE_WORDS: [&str; 3] = ["container-infra", "container-infrastructure", SERVICE];

/// A version of the API. The major number is always 1 in a version that is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: i64,
    minor: i64,
}

impl Version {
    /// The lowest version, and the one of a request that names none.
    pub const MIN: Self = Self::minor(1);
    /// The highest version.
    pub const MAX: Self = Self::minor(16);
    /// First version with `?rollback=`.
    pub const ROLLBACK: Self = Self::minor(3);
    /// First version with `actions/resize`.
    pub const RESIZE: Self = Self::minor(7);
    /// First version with `actions/upgrade`.
    pub const UPGRADE: Self = Self::minor(8);
    /// Node groups are there.
    pub const NODE_GROUPS: Self = Self::minor(9);
    /// A node group may have no node.
    pub const ZERO_NODES: Self = Self::minor(10);
    /// The rotation of credentials is there.
    pub const CREDENTIALS: Self = Self::minor(12);
    /// `cluster_id` in place of `stack_id`.
    pub const CLUSTER_ID: Self = Self::minor(13);
    /// Labels and taints of a node group's nodes.
    pub const NODE_LABELS: Self = Self::minor(14);
    /// `driver` of a cluster template.
    pub const TEMPLATE_DRIVER: Self = Self::minor(15);
    /// The operations of a cluster are there.
    pub const OPERATIONS: Self = Self::minor(15);
    /// `actions/rebuild` and `actions/reboot` are there.
    pub const NODE_ACTIONS: Self = Self::minor(16);
    /// Drivers may have an API of their own.
    pub const DRIVER_API: Self = Self::minor(16);

    const fn minor(minor: i64) -> Self {
        Self { major: 1, minor }
    }

    /// Every version that is served, the lowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (Self::MIN.minor..=Self::MAX.minor).map(Self::minor)
    }
}

/// As it is printed: `1.9`. Only versions that are served.
impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text)
            .filter(|version| (Self::MIN..=Self::MAX).contains(version))
            .ok_or_else(|| format!("is none of the versions {} to {}", Self::MIN, Self::MAX))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Why a request's version cannot be served. Every case is a 406.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// The header is not two words, or the service word is unknown.
    Service,
    /// The version is not `N.N`.
    Syntax,
    /// A version that does not exist here.
    OutOfRange(Version),
}

/// The version that a request with these headers speaks.
///
/// # Errors
/// [`Rejection::Service`], [`Rejection::Syntax`] or [`Rejection::OutOfRange`]; each is a 406.
pub fn negotiate(headers: &HeaderMap) -> Result<Version, Rejection> {
    let Some(value) = headers.get(HEADER) else {
        return Ok(Version::MIN);
    };
    let words: Vec<&str> = value
        .to_str()
        .map_err(|_| Rejection::Service)?
        .split_whitespace()
        .collect();
    let &[service, version] = words.as_slice() else {
        return Err(Rejection::Service);
    };
    // Magnum does not look at the service word beside `latest`; clients rely on neither, so neither do we check.
    if version.eq_ignore_ascii_case("latest") {
        return Ok(Version::MAX);
    }
    if !SERVICE_WORDS.contains(&service) {
        return Err(Rejection::Service);
    }
    let version = parse(version).ok_or(Rejection::Syntax)?;
    if (Version::MIN..=Version::MAX).contains(&version) {
        Ok(version)
    } else {
        Err(Rejection::OutOfRange(version))
    }
}

fn parse(text: &str) -> Option<Version> {
    let (major, minor) = text.split_once('.')?;
    Some(Version {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

/// The sentence of the 406 for a version that does not exist. The missing blank is Magnum's.
pub fn out_of_range_text(version: Version) -> String {
    let range = format!("[{SERVICE} {}, {SERVICE} {}].", Version::MIN, Version::MAX);
    if version.major == Version::MAX.major {
        format!(
            "Version {version} was requested but the minor version is not supported by this service. \
             The supported version range is: {range}"
        )
    } else {
        format!(
            "Mutually exclusive versions requested. Version {version} requested but not supported by this \
             service.The supported version range is: {range}"
        )
    }
}

/// Puts the four headers on an answer that speaks (or refuses) `version`.
pub fn announce(headers: &mut HeaderMap, version: Version) {
    let value = |version: Version| HeaderValue::from_str(&format!("{SERVICE} {version}"));
    for (name, version) in [
        (MINIMUM_HEADER, Version::MIN),
        (MAXIMUM_HEADER, Version::MAX),
        (HEADER, version),
    ] {
        // A version prints as digits, dots and signs, so this cannot fail; an answer without the header is
        // still better than none.
        if let Ok(value) = value(version) {
            headers.insert(name, value);
        }
    }
    headers.append(header::VARY, HeaderValue::from_static("OpenStack-API-Version"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> Result<Version, Rejection> {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_str(value).unwrap());
        negotiate(&headers)
    }

    fn minor(minor: i64) -> Version {
        Version::minor(minor)
    }

    #[test]
    fn no_header_means_the_lowest_version() {
        assert_eq!(negotiate(&HeaderMap::new()), Ok(minor(1)));
    }

    #[test]
    fn every_minor_version_and_service_word_is_accepted() {
        for service in SERVICE_WORDS {
            for n in 1..=15 {
                assert_eq!(of(&format!("{service} 1.{n}")), Ok(minor(n)));
            }
        }
        assert_eq!(of("container-infra  01.05"), Ok(minor(5)));
    }

    #[test]
    fn latest_is_the_highest_in_any_case_and_for_any_service() {
        assert_eq!(of("container-infra LATEST"), Ok(Version::MAX));
        assert_eq!(of("compute latest"), Ok(Version::MAX));
    }

    #[test]
    fn malformed_version_error_names_the_wrong_part() {
        assert_eq!(of("1.5"), Err(Rejection::Service));
        assert_eq!(of("container-infra 1.2, compute 2.3"), Err(Rejection::Service));
        assert_eq!(of("compute 1.2"), Err(Rejection::Service));
        assert_eq!(of("Container-Infra 1.2"), Err(Rejection::Service));
        assert_eq!(of("container-infra 1"), Err(Rejection::Syntax));
        assert_eq!(of("container-infra a.b"), Err(Rejection::Syntax));
        assert_eq!(
            of("container-infra 1.99999999999999999999"),
            Err(Rejection::Syntax)
        );
    }

    #[test]
    fn out_of_range_version_error_names_the_range() {
        for text in ["1.0", "1.17", "0.9", "2.0", "1.-1"] {
            let Err(Rejection::OutOfRange(version)) = of(&format!("container-infra {text}")) else {
                panic!("{text} must be refused");
            };
            assert_eq!(version.to_string(), text);
            let told = out_of_range_text(version);
            assert!(told.contains(&format!("Version {text} ")), "{told}");
            assert!(
                told.ends_with("1.1, container-infrastructure-management 1.16]."),
                "{told}"
            );
        }
    }
}
