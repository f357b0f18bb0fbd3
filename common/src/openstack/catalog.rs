//! Where services are: Keystone's catalog, as it stands in a token.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::ServiceError;
use super::credentials::v3;

/// How a service is found in the catalog.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// What people call the service.
    pub service: &'static str,
    /// Its type in the catalog.
    pub kind: &'static str,
    /// The section of `magnum.conf` with the two options below.
    pub section: &'static str,
    /// `public`, `internal` or `admin`.
    pub interface: String,
    /// Its region; any when none is given.
    pub region: Option<String>,
}

impl Endpoint {
    /// From `endpoint_type` and `region_name`: `publicURL` and `public` are the same.
    pub fn new(
        service: &'static str,
        kind: &'static str,
        section: &'static str,
        endpoint_type: &str,
        region: Option<String>,
    ) -> Self {
        Self {
            service,
            kind,
            section,
            interface: endpoint_type.trim_end_matches("URL").to_owned(),
            region,
        }
    }
}

/// A service's address in a catalog, without a slash at its end. Keystone's is that of its v3 API, whichever of its
/// forms the catalog has.
pub(super) fn base(catalog: &Value, endpoint: &Endpoint) -> Result<String, ServiceError> {
    let endpoints = catalog
        .as_array()
        .into_iter()
        .flatten()
        .filter(|service| service["type"] == endpoint.kind)
        .filter_map(|service| service["endpoints"].as_array())
        .flatten();
    endpoints
        .filter(|found| found["interface"] == *endpoint.interface)
        .find(|found| {
            endpoint
                .region
                .as_deref()
                .is_none_or(|region| found["region_id"] == *region || found["region"] == *region)
        })
        .and_then(|found| found["url"].as_str())
        .map(|url| match endpoint.kind {
            "identity" => v3(url),
            _ => url.trim_end_matches('/').to_owned(),
        })
        .ok_or_else(|| {
            let region = endpoint
                .region
                .as_deref()
                .map_or_else(String::new, |region| format!(" in region {region}"));
            ServiceError::Options(format!(
                "Keystone's catalog has no {} endpoint of type {}{region}; check [{}] region_name and {}",
                endpoint.interface,
                endpoint.kind,
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
                "key-manager",
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
    fn keystone_is_asked_at_its_v3_api_whatever_the_catalog_says() {
        let endpoint = Endpoint::new("Keystone", "identity", "keystone_authtoken", "internal", None);
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
    fn a_query_is_encoded() {
        assert_eq!(encoded(&[]), "");
        assert_eq!(
            encoded(&[("name", "a (b)/ü"), ("limit", "1")]),
            "?name=a%20%28b%29%2F%C3%BC&limit=1"
        );
    }
}
