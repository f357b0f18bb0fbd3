//! `[api]`: the HTTP side.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::schema::section;
use crate::value::{keywords, processors};

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
        /// Serve HTTPS (TLS 1.2 and 1.3) instead of HTTP.
        enabled_ssl: bool as Bool = false;
        /// Certificate chain in PEM, when enabled_ssl; the server's own certificate first. Read again on SIGHUP.
        ssl_cert_file: Option<PathBuf> as Opt<Path> = None;
        /// Private key in PEM, when enabled_ssl. Read again on SIGHUP.
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
        /// Most connections at a time; others wait until one ends.
        max_connections: usize as Int<1, 1_000_000> = 4096, ours true;
        /// Seconds until a connection must have sent the whole head of its first, or next, request.
        keep_alive_timeout: Duration as Seconds<100> = Duration::from_secs(75), ours true;
        /// Seconds that a client may take to send a request's body, or to take an answer; for an answer one more
        /// second for each 16 KiB.
        client_timeout: Duration as Seconds<100> = Duration::from_secs(60), ours true;
        /// Largest head of a request, in bytes: request line and headers. Tokens are in there.
        max_header_size: usize as Int<8192, 1_048_576> = 65_536, ours true;
        /// Requests per second of one project; more get 429. 0: no limit.
        rate_limit_per_project: u32 as Int<0, 1_000_000> = 0, ours true;
        /// Requests per second of one client address, counted before the client is known; more get 429. 0: no limit.
        rate_limit_per_address: u32 as Int<0, 1_000_000> = 0, ours true;
        /// Requests that may come at once before a rate limit counts.
        rate_limit_burst: u32 as Int<1, 1_000_000> = 50, ours true;
        /// Seconds that the API goes on to serve after it was told to stop, while /healthcheck answers 503: longer than
        /// a load balancer takes to notice. 0 with a socket of systemd, or without a balancer.
        shutdown_delay: Duration as Seconds = Duration::ZERO, ours true;
        /// Seconds that running requests get to end when the API stops, after shutdown_delay.
        shutdown_timeout: Duration as Seconds = Duration::from_secs(30), ours true;
        /// address:port for operators, without authentication: /ui, /metrics and health checks; empty: none.
        admin_listen: Option<SocketAddr> as Opt<Listen> = None, ours true;
    }
}
