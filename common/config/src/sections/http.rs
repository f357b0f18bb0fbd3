//! The sections of libraries before the API: `[oslo_middleware]`, `[oslo_policy]`, `[cors]` and `[healthcheck]`.

use std::path::PathBuf;

use ipnet::IpNet;

use crate::schema::section;
use crate::value::keywords;

keywords! {
    /// What a health check asks.
    HealthBackend {
        /// Whether one file is there.
        DisableByFile = "disable_by_file",
        /// Whether the file of the port is there.
        DisableByFilesPorts = "disable_by_files_ports",
        /// Whether all of some files are there.
        EnableByFiles = "enable_by_files",
        /// The database.
        Database = "database",
        /// The message broker.
        Messaging = "messaging",
    }
}

section! {
    /// Request handling before the API.
    OsloMiddlewareSection "oslo_middleware" {
        /// Whether the forwarding headers of a proxy (Forwarded, or X-Forwarded-Proto, -Host, -For; X-Forwarded-Prefix)
        /// decide the scheme, host and prefix of links and the client's address. Only behind a proxy that sets or
        /// removes them all.
        enable_proxy_headers_parsing: bool as Bool = false;
        /// Largest request body, in bytes.
        max_request_body_size: usize as Int<1, 1_073_741_824> = 114_688,
            was [("DEFAULT", "max_request_body_size"), ("DEFAULT", "osapi_max_request_body_size")];
    }
}

section! {
    /// Who may do what: the library for policy rules.
    OsloPolicySection "oslo_policy" {
        /// File with rules, YAML or JSON. A relative path is looked for beside the configuration files, then in
        /// ~/.magnum, ~, /etc/magnum and /etc; without the file the defaults hold.
        policy_file: PathBuf as Path = PathBuf::from("policy.yaml");
        /// Directory whose files are read after policy_file, sorted by name; may be repeated. Looked for as
        /// policy_file is.
        policy_dirs: Vec<PathBuf> as Multi<Path> = vec![PathBuf::from("policy.d")];
        /// Rule that holds in place of one that another rule refers to and that does not exist.
        policy_default_rule: String as Text = "default".to_owned();
        /// Whether only the rules' present defaults hold. Without it, what was allowed before 2023.2 is still.
        enforce_new_defaults: bool as Bool = true;
        /// Whether the scope of a token (project, domain, system) has to be one that the rule is for.
        enforce_scope: bool as Bool = true;
    }
}

section! {
    /// Which websites may use the API from a browser.
    CorsSection "cors" {
        /// Origins, such as `https://horizon.example.com`, without a slash at the end; `*` for any. Empty: none, and
        /// nothing else of this section has an effect.
        allowed_origin: Vec<String> as List<Text> = Vec::new();
        /// Whether requests may carry credentials.
        allow_credentials: bool as Bool = true;
        /// Headers of answers that scripts may read.
        expose_headers: Vec<String> as List<Text> = texts(&[
            "X-Auth-Token", "X-Subject-Token", "X-Service-Token", "X-OpenStack-Request-ID", "X-Server-Management-Url",
        ]);
        /// Seconds that a browser may keep the answer to a preflight. 0 does not say.
        max_age: i64 as Int = 3600;
        /// Methods that requests may use.
        allow_methods: Vec<String> as List<Text> = texts(&["GET", "PUT", "POST", "DELETE", "PATCH"]);
        /// Headers that requests may carry, besides those that any request may.
        allow_headers: Vec<String> as List<Text> = texts(&[
            "X-Auth-Token", "X-Identity-Status", "X-Roles", "X-Service-Catalog", "X-User-Id", "X-Tenant-Id",
            "X-OpenStack-Request-ID", "X-Server-Management-Url",
        ]);
    }
}

section! {
    /// What load balancers are told of the API's health.
    HealthcheckSection "healthcheck" {
        /// Where health is asked for; paths below it are answered, too.
        path: String as Text = "/healthcheck".to_owned();
        /// What is asked. All must be well for a 200. With `database` or `messaging` their outage takes every API out
        /// of rotation at once.
        backends: Vec<HealthBackend> as List<Choice> = vec![HealthBackend::DisableByFile];
        /// File whose presence answers 503 (backend disable_by_file).
        disable_by_file_path: Option<PathBuf> as Opt<Path> =
            Some(PathBuf::from("/etc/magnum/healthcheck_disable"));
        /// The same by port, `port:path` (backend disable_by_files_ports).
        disable_by_file_paths: Vec<String> as List<Text> = Vec::new();
        /// Files that must all be there (backend enable_by_files).
        enable_by_file_paths: Vec<PathBuf> as List<Path> = Vec::new();
        /// Whether answers say more: which backend said what, host and version. Not for a port that strangers reach.
        detailed: bool as Bool = false;
        /// Networks that may ask; others get 404. Empty: everybody.
        allowed_source_ranges: Vec<IpNet> as List<Network> = Vec::new();
        /// Whether requests that came through a proxy (X-Forwarded…) get 404.
        ignore_proxied_requests: bool as Bool = false;
    }
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}
