//! Addresses and URLs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ipnet::IpNet;

use super::Codec;
use crate::url;
use magnum_common::secret::Secret;

/// An IP address to listen on.
pub struct Ip;

impl Codec<IpAddr> for Ip {
    fn form() -> String {
        "IP address".into()
    }
    fn parse(text: &str) -> Result<IpAddr, String> {
        text.parse().map_err(|_| format!("{text:?} is not an IP address"))
    }
    fn show(value: &IpAddr) -> Option<String> {
        Some(value.to_string())
    }
}

/// An IP network, such as `10.0.0.0/8`; one address is a network of its own.
pub struct Network;

impl Codec<IpNet> for Network {
    fn form() -> String {
        "IP network".into()
    }
    fn parse(text: &str) -> Result<IpNet, String> {
        let network = match text.parse::<IpAddr>() {
            Ok(address) => IpNet::from(address),
            Err(_) => text
                .parse()
                .map_err(|_| format!("{text:?} is not an IP network, such as 10.0.0.0/8"))?,
        };
        if network.trunc() == network {
            Ok(network)
        } else {
            Err(format!(
                "{text} has bits beyond its prefix; write {}",
                network.trunc()
            ))
        }
    }
    fn show(value: &IpNet) -> Option<String> {
        Some(value.to_string())
    }
}

/// Where to listen: `address:port`, `localhost:port`, or `:port` for all addresses.
pub struct Listen;

impl Codec<SocketAddr> for Listen {
    fn form() -> String {
        "address:port".into()
    }
    fn parse(text: &str) -> Result<SocketAddr, String> {
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        let found = text.rsplit_once(':').and_then(|(host, port)| {
            let ip = match host {
                "" | "*" => Ipv4Addr::UNSPECIFIED,
                "localhost" => Ipv4Addr::LOCALHOST,
                _ => return None,
            };
            Some(SocketAddr::from((ip, port.parse::<u16>().ok()?)))
        });
        found.ok_or_else(|| format!("{text:?} is not an address with a port, such as 127.0.0.1:9512"))
    }
    fn show(value: &SocketAddr) -> Option<String> {
        Some(value.to_string())
    }
}

/// A broker's URL; the passwords in it are masked.
pub struct BrokerUrl;

impl Codec<Secret> for BrokerUrl {
    const SECRET: bool = true;
    fn form() -> String {
        "URL".into()
    }
    fn parse(text: &str) -> Result<Secret, String> {
        url::check_broker(text)?;
        Ok(Secret::new(text))
    }
    fn show(value: &Secret) -> Option<String> {
        Some(url::masked(value.expose()))
    }
}

/// A database's URL; the password in it is masked.
pub struct DatabaseUrl;

impl Codec<Secret> for DatabaseUrl {
    const SECRET: bool = true;
    fn form() -> String {
        "URL".into()
    }
    fn parse(text: &str) -> Result<Secret, String> {
        url::check_database(text)?;
        Ok(Secret::new(text))
    }
    fn show(value: &Secret) -> Option<String> {
        Some(url::masked(value.expose()))
    }
}

/// An `http` or `https` URL.
pub struct HttpUrl;

impl Codec<String> for HttpUrl {
    fn form() -> String {
        "URL".into()
    }
    fn parse(text: &str) -> Result<String, String> {
        url::check_http(text)?;
        Ok(text.to_owned())
    }
    fn show(value: &String) -> Option<String> {
        Some(url::masked(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses_take_names_only_of_this_host() {
        assert_eq!(Listen::parse(":9512").unwrap().to_string(), "0.0.0.0:9512");
        assert_eq!(Listen::parse("[::1]:9512").unwrap().to_string(), "[::1]:9512");
        assert_eq!(Listen::parse("localhost:1").unwrap().to_string(), "127.0.0.1:1");
        assert!(Listen::parse("example.org:1").is_err());
    }

    #[test]
    fn a_network_is_one_address_or_has_a_prefix_that_fits() {
        assert_eq!(Network::parse("10.0.0.1").unwrap().to_string(), "10.0.0.1/32");
        assert_eq!(Network::parse("fd00::/8").unwrap().to_string(), "fd00::/8");
        let refused = Network::parse("10.0.0.1/8").unwrap_err();
        assert!(refused.contains("10.0.0.0/8"), "{refused}");
        assert!(Network::parse("ten").is_err());
    }

    #[test]
    fn a_url_shows_without_its_password() {
        let url = BrokerUrl::parse("rabbit://u:hunter2@h/").unwrap();
        assert_eq!(BrokerUrl::show(&url), Some("rabbit://u:***@h/".into()));
    }
}
