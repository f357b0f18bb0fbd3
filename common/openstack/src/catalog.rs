//! Where services are: Keystone's catalog, as it stands in a token.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::ServiceError;

/// How a service is found in the catalog.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// What people call the service.
    pub service: &'static str,
    /// Its types in the catalog, the usual one first: deployments use old names, too.
    pub kinds: &'static [&'static str],
    /// Where its API begins.
    pub root: Root,
    /// The section of `magnum.conf` with the two options below.
    pub section: &'static str,
    /// `public`, `internal` or `admin`.
    pub interface: String,
    /// Its region; any when none is given.
    pub region: Option<String>,
    /// Where its API begins, if that is known without the catalog; without a slash at its end.
    pub address: Option<String>,
}

impl Endpoint {
    /// From `endpoint_type` and `region_name`: `publicURL` and `public` are the same.
    pub fn new(
        service: &'static str,
        kinds: &'static [&'static str],
        section: &'static str,
        endpoint_type: &str,
        region: Option<String>,
    ) -> Self {
        Self {
            service,
            kinds,
            root: Root::AsListed,
            section,
            interface: endpoint_type.trim_end_matches("URL").to_owned(),
            region,
            address: None,
        }
    }

    /// One that is not looked up.
    pub fn at_address(service: &'static str, address: String) -> Self {
        Self {
            address: Some(address),
            ..Self::new(service, &[], "", "public", None)
        }
    }

    /// The same with another beginning of its API.
    #[must_use]
    pub fn at(self, root: Root) -> Self {
        Self { root, ..self }
    }

    /// Whether a catalog has the service, in whatever region.
    pub fn is_listed(&self, catalog: &Value) -> bool {
        let services = catalog.as_array().into_iter().flatten();
        let mut kinds = services.filter_map(|service| service["type"].as_str());
        kinds.any(|kind| self.kinds.contains(&kind))
    }
}

/// Where a service's API begins, seen from the address that the catalog has. Deployments list it with and without a
/// version, and with the project behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// At that address.
    AsListed,
    /// At this version, whichever the catalog names.
    Version(&'static str),
    /// At the version that the catalog names, with whatever is behind it; at this one where it names none.
    VersionUnlessListed(&'static str),
}

impl Root {
    fn of(self, address: &str) -> String {
        let address = address.trim_end_matches('/');
        let listed = version_at(address);
        match (self, listed) {
            (Self::AsListed, _) | (Self::VersionUnlessListed(_), Some(_)) => address.to_owned(),
            (Self::Version(version), Some(at)) => format!("{}/{version}", &address[..at]),
            (Self::Version(version) | Self::VersionUnlessListed(version), None) => {
                format!("{address}/{version}")
            }
        }
    }
}

/// Where the slash before a version stands in an address.
fn version_at(address: &str) -> Option<usize> {
    let path = address.find("://").map_or(0, |at| at + 3);
    let is_version = |part: &str| {
        part.strip_prefix('v').is_some_and(|number| {
            number.starts_with(|first: char| first.is_ascii_digit())
                && number.chars().all(|one| one.is_ascii_digit() || one == '.')
        })
    };
    address
        .match_indices('/')
        .filter(|(at, _)| *at >= path)
        .find(|(at, _)| is_version(address[at + 1..].split('/').next().unwrap_or_default()))
        .map(|(at, _)| at)
}

/// Where a service's API begins by a catalog, without a slash at its end.
pub(super) fn base(catalog: &Value, endpoint: &Endpoint) -> Result<String, ServiceError> {
    if let Some(address) = &endpoint.address {
        return Ok(address.clone());
    }
    let is_wanted = |found: &&Value| {
        let in_region = |region: &str| found["region_id"] == *region || found["region"] == *region;
        found["interface"] == *endpoint.interface && endpoint.region.as_deref().is_none_or(in_region)
    };
    let of_kind = |kind: &&str| {
        let services = catalog.as_array().into_iter().flatten();
        let endpoints = services
            .filter(|service| service["type"] == **kind)
            .filter_map(|service| service["endpoints"].as_array());
        endpoints.flatten().find(is_wanted)
    };
    let found = endpoint.kinds.iter().find_map(of_kind);
    found
        .and_then(|found| found["url"].as_str())
        .map(|url| endpoint.root.of(url))
        .ok_or_else(|| {
            let region = endpoint
                .region
                .as_deref()
                .map_or_else(String::new, |region| format!(" in region {region}"));
            ServiceError::Options(format!(
                "Keystone's catalog has no {} endpoint of type {}{region}; check [{}] region_name and {}",
                endpoint.interface,
                endpoint.kinds.join(", "),
                endpoint.section,
                if endpoint.section == "keystone_authtoken" {
                    "interface"
                } else {
                    "endpoint_type"
                },
            ))
        })
}

/// A query's text, with its question mark.
pub(super) fn encoded(query: &[(&str, &str)]) -> String {
    let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    query
        .iter()
        .enumerate()
        .map(|(index, (name, value))| {
            let sign = if index == 0 { '?' } else { '&' };
            format!("{sign}{}={}", encode(name), encode(value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find(endpoint_type: &str, region: Option<&str>) -> Result<String, ServiceError> {
        let catalog = json!([
            {"type": "identity", "endpoints": [{"interface": "public", "url": "http://k"}]},
            {"type": "key-manager", "endpoints": [
                {"interface": "public", "region_id": "one", "url": "http://b1/"},
                {"interface": "internal", "region_id": "one", "url": "http://i1"},
                {"interface": "public", "region": "two", "url": "http://b2"},
            ]},
        ]);
        base(
            &catalog,
            &Endpoint::new(
                "Barbican",
                &["key-manager"],
                "barbican_client",
                endpoint_type,
                region.map(str::to_owned),
            ),
        )
    }

    #[test]
    fn the_catalog_is_searched_by_interface_and_region() {
        assert_eq!(find("publicURL", None).unwrap(), "http://b1");
        assert_eq!(find("public", Some("two")).unwrap(), "http://b2");
        assert_eq!(find("internalURL", Some("one")).unwrap(), "http://i1");
        let told = find("adminURL", Some("one")).unwrap_err().to_string();
        assert!(told.contains("admin") && told.contains("region one"), "{told}");
    }

    #[test]
    fn keystone_is_asked_at_its_v3_api_with_any_catalog() {
        let endpoint = Endpoint::new("Keystone", &["identity"], "keystone_authtoken", "internal", None)
            .at(Root::Version("v3"));
        for url in [
            "http://k/identity",
            "http://k/identity/",
            "http://k/identity/v3",
            "http://k/identity/v2.0/",
        ] {
            let catalog = json!([{"type": "identity", "endpoints": [{"interface": "internal", "url": url}]}]);
            assert_eq!(
                base(&catalog, &endpoint).unwrap(),
                "http://k/identity/v3",
                "{url}"
            );
        }
        let told = base(&json!([]), &endpoint).unwrap_err().to_string();
        assert!(
            told.contains("[keystone_authtoken] region_name and interface"),
            "{told}"
        );
    }

    #[test]
    fn an_old_type_is_taken_where_the_usual_one_is_not_listed() {
        let catalog = json!([
            {"type": "volumev3", "endpoints": [{"interface": "public", "url": "http://old"}]},
            {"type": "block-storage", "endpoints": [{"interface": "public", "region": "one", "url": "http://new"}]},
        ]);
        let cinder = |region: Option<&str>| {
            let region = region.map(str::to_owned);
            let kinds = &["block-storage", "volumev3"];
            Endpoint::new("Cinder", kinds, "cinder_client", "publicURL", region)
        };
        assert_eq!(base(&catalog, &cinder(None)).unwrap(), "http://new");
        assert_eq!(base(&catalog, &cinder(Some("one"))).unwrap(), "http://new");
        assert!(base(&catalog, &cinder(Some("two"))).is_err());
        assert!(cinder(Some("two")).is_listed(&catalog));
        assert!(!cinder(None).is_listed(&json!([])) && !cinder(None).is_listed(&Value::Null));
    }

    #[test]
    fn an_api_begins_behind_its_version_however_the_catalog_writes_it() {
        let image = Root::Version("v2");
        for listed in [
            "http://g:9292",
            "http://g:9292/",
            "http://g:9292/v2",
            "http://g:9292/v2.15/",
        ] {
            assert_eq!(image.of(listed), "http://g:9292/v2", "{listed}");
        }
        assert_eq!(image.of("http://v2.example/image"), "http://v2.example/image/v2");
        let compute = Root::VersionUnlessListed("v2.1");
        for (listed, root) in [
            ("http://n/compute", "http://n/compute/v2.1"),
            ("http://n/v2.1/", "http://n/v2.1"),
            ("http://n/v2.1/5f", "http://n/v2.1/5f"),
            ("http://n/v2/5f", "http://n/v2/5f"),
            ("http://n/vault", "http://n/vault/v2.1"),
        ] {
            assert_eq!(compute.of(listed), root);
        }
        assert_eq!(Root::AsListed.of("http://b:9311/"), "http://b:9311");
    }

    #[test]
    fn a_query_is_encoded() {
        assert_eq!(encoded(&[]), "");
        assert_eq!(
            encoded(&[("name", "a (b)/ü"), ("limit", "1")]),
            "?name=a%20%28b%29%2F%C3%BC&limit=1"
        );
    }
}
