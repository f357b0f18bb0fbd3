//! `[api]`: the HTTP side.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::schema::section;
use crate::value::{keywords, processors};

keywords! {
    /// How clients are authenticated.
    AuthStrategy {
        /// By a Keystone token.
        Keystone = "keystone",
        /// Not at all: identity headers are trusted as sent. Only for trusted networks and development.
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
        /// Maximum page size of a list, in items.
        max_limit: u32 as Int<1, 1_000_000> = 1000;
        /// Worker threads that serve requests; 0: one per processor. There is a single process.
        workers: usize as Threads = processors(), machine "number of processors";
        /// Serve HTTPS (TLS 1.2 and 1.3) instead of HTTP.
        enabled_ssl: bool as Bool = false;
        /// TLS certificate chain in PEM, server certificate first; required with enabled_ssl. Reloaded on SIGHUP.
        ssl_cert_file: Option<PathBuf> as Opt<Path> = None;
        /// TLS private key in PEM; required with enabled_ssl. Reloaded on SIGHUP.
        ssl_key_file: Option<PathBuf> as Opt<Path> = None;
        /// How clients are authenticated. With `noauth`, the identity headers of a request are trusted as sent.
        auth_strategy: AuthStrategy as Choice = AuthStrategy::Keystone, ours true;
        /// Serve with auth_strategy `noauth` on an address that other machines reach. Every client is an administrator.
        allow_noauth_on_network: bool as Bool = false, ours true;
        /// JSON file with image properties, used instead of Glance in deployments without it.
        image_catalog_file: Option<PathBuf> as Opt<Path> = None, ours true;
        /// Time limit, in seconds, for all look-ups of one request in Glance, Nova, Neutron, Cinder and Keystone
        /// together. A request that exceeds it gets 503.
        lookup_timeout: Duration as SecondsMinMillis<100> = Duration::from_secs(30), ours true;
        /// Maximum time, in seconds, that a response waits for a conductor to accept the request. A new cluster is
        /// readable then, and a change shows as `*_IN_PROGRESS`. A change that no conductor has accepted by then is
        /// shown all the same. 0: respond without waiting, as Magnum does; until a conductor has accepted a change,
        /// the old status is shown.
        accept_wait: Duration as Seconds = Duration::from_secs(5), ours true;
        /// Time limit, in seconds, for the broker to confirm a published request. After it the client gets 503.
        publish_timeout: Duration as SecondsMinMillis<100> = Duration::from_secs(10), ours true;
        /// Maximum number of concurrent connections. Further connections wait until one closes.
        max_connections: usize as Int<1, 1_000_000> = 4096, ours true;
        /// Time limit, in seconds, for a connection to send the complete head of its first or next request.
        keep_alive_timeout: Duration as SecondsMinMillis<100> = Duration::from_secs(75), ours true;
        /// Time limit, in seconds, for a client to send a request body or to read a response. A response gets one
        /// more second per 16 KiB.
        client_timeout: Duration as SecondsMinMillis<100> = Duration::from_secs(60), ours true;
        /// Maximum size of a request head (request line and headers, tokens included), in bytes.
        max_header_size: usize as Int<8192, 1_048_576> = 65_536, ours true;
        /// Rate limit per project, in requests per second. Requests beyond it get 429. 0: no limit.
        rate_limit_per_project: u32 as Int<0, 1_000_000> = 0, ours true;
        /// Rate limit per client address, in requests per second, applied before authentication. Requests beyond it get
        /// 429. 0: no limit.
        rate_limit_per_address: u32 as Int<0, 1_000_000> = 0, ours true;
        /// Burst size of both rate limits, in requests.
        rate_limit_burst: u32 as Int<1, 1_000_000> = 50, ours true;
        /// Time, in seconds, that the API keeps serving after a shutdown signal while /healthcheck returns 503. Set it
        /// longer than a load balancer needs to take this instance out of rotation; 0 behind a systemd socket or
        /// without a load balancer.
        shutdown_delay: Duration as Seconds = Duration::ZERO, ours true;
        /// Time limit, in seconds, for requests in progress to complete at shutdown, counted from the end of
        /// shutdown_delay.
        shutdown_timeout: Duration as Seconds = Duration::from_secs(30), ours true;
        /// address:port of the admin interface (/ui, /metrics, health checks), which has no authentication. Empty:
        /// disabled.
        admin_listen: Option<SocketAddr> as Opt<Listen> = None, ours true;
        /// Names under which the admin interface answers, besides addresses, localhost and `[DEFAULT] host`: a page of a
        /// stranger in an operator's browser must not reach it under a name of its own.
        admin_hosts: Vec<String> as List<Name> = Vec::new(), ours true;
    }
}
