//! By which names an admin interface may be asked.
//!
//! It has no authentication, and often listens on loopback, which a browser on the same machine reaches as well. A page of a
//! stranger can have its own name lead there (DNS rebinding) and would then read what operators see; but its requests carry
//! that name. So a name counts that cannot be a stranger's: an address, `localhost`, the host's own, or one that an option
//! lists. A request without a `Host` header comes from no browser.

use std::net::IpAddr;

/// The names, besides addresses and `localhost`.
#[derive(Debug, Clone, Default)]
pub struct AdminHosts(Vec<String>);

impl AdminHosts {
    /// `host` is this service's own, `others` are those that the option lists.
    pub fn new(host: &str, others: &[String]) -> Self {
        let names = std::iter::once(host).chain(others.iter().map(String::as_str));
        Self(names.map(bare).collect())
    }

    /// Whether a request with this `Host` header is answered.
    pub fn allow(&self, header: Option<&str>) -> bool {
        let Some(header) = header else {
            return true;
        };
        let name = name_of(header);
        let is_address = name
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>()
            .is_ok();
        let name = bare(name);
        is_address || name == "localhost" || name.ends_with(".localhost") || self.0.contains(&name)
    }
}

/// Without the port.
fn name_of(header: &str) -> &str {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    match header.rsplit_once(':') {
        Some((name, port)) if is_port(port) && (!name.contains(':') || name.ends_with(']')) => name,
        _ => header,
    }
}

/// Names are compared without case, and without the dot that ends a full one.
fn bare(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_may_be_a_strangers_is_not_answered() {
        let hosts = AdminHosts::new("ctl1", &["metrics.example".to_owned()]);
        for header in [
            "127.0.0.1:9512",
            "10.0.0.1",
            "[::1]:9512",
            "::1",
            "localhost:9512",
            "LOCALHOST",
            "a.localhost",
            "ctl1:9512",
            "CTL1",
            "metrics.example.:80",
        ] {
            assert!(hosts.allow(Some(header)), "{header}");
        }
        assert!(hosts.allow(None));
        for header in [
            "evil.example:9512",
            "localhost.evil.example",
            "ctl1.evil.example",
            "127.0.0.1.evil.example",
            "",
        ] {
            assert!(!hosts.allow(Some(header)), "{header}");
        }
    }
}
