//! `[api]`: the HTTP side.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::config::schema::section;
use crate::config::value::{keywords, processors};

keywords! {
    /// Who says who a client is.
    AuthStrategy {
        /// Keystone tokens.
        Keystone = "keystone",
        /// The client's own headers: only for trusted networks and development.
        Noauth = "noauth",
    }
}

section! {
    /// The HTTP API.
    ApiSection "api" {
        /// Address to listen on.
        host: IpAddr as Ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
        /// Port to listen on.
        port: u16 as Int<1, 65535> = 9511;
        /// Largest number of items in one page of a list.
        max_limit: u32 as Int<1, 1_000_000> = 1000;
        /// Threads that serve requests. One process serves them all.
        workers: usize as Threads = processors(), machine "number of processors";
        /// Serve HTTPS.
        enabled_ssl: bool as Bool = false;
        /// Certificate chain in PEM, when enabled_ssl.
        ssl_cert_file: Option<PathBuf> as Opt<Path> = None;
        /// Private key in PEM, when enabled_ssl.
        ssl_key_file: Option<PathBuf> as Opt<Path> = None;
        /// How clients are identified. With `noauth` the identity headers of the request are believed.
        auth_strategy: AuthStrategy as Choice = AuthStrategy::Keystone, ours true;
        /// JSON file with image properties, for deployments without Glance.
        image_catalog_file: Option<PathBuf> as Opt<Path> = None, ours true;
        /// Seconds that all look-ups of one request in Glance, Nova, Neutron, Cinder and Keystone may take together;
        /// after that it is answered with 503.
        lookup_timeout: Duration as Seconds<100> = Duration::from_secs(30), ours true;
        /// Longest wait, in seconds, until a conductor has accepted a request, so that a new cluster can be
        /// read as soon as it was answered. 0 answers at once.
        accept_wait: Duration as Seconds = Duration::from_secs(5), ours true;
        /// Seconds after which a request that the broker has not confirmed is answered with 503.
        publish_timeout: Duration as Seconds<100> = Duration::from_secs(10), ours true;
        /// address:port for /metrics and health checks apart from the API; empty: none.
        admin_listen: Option<SocketAddr> as Opt<Listen> = None, ours true;
    }
}
