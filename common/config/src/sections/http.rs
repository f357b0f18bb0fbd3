//! The sections of HTTP middleware: `[oslo_middleware]`, `[oslo_policy]`, `[cors]` and `[healthcheck]`.

use std::path::PathBuf;

use ipnet::IpNet;

use crate::schema::section;
use crate::value::keywords;

keywords! {
    /// A check behind `/healthcheck`.
    HealthBackend {
        /// Fails if one file exists.
        DisableByFile = "disable_by_file",
        /// Fails if the file for the port exists.
        DisableByFilesPorts = "disable_by_files_ports",
        /// Fails unless all listed files exist.
        EnableByFiles = "enable_by_files",
        /// Fails if the database is unreachable.
        Database = "database",
        /// Fails if the message broker is unreachable.
        Messaging = "messaging",
    }
}

section! {
    /// Proxy headers and the size of requests.
    OsloMiddlewareSection "oslo_middleware" {
        /// Take the scheme, host and prefix of links and the client address from a proxy's headers (Forwarded, or
        /// X-Forwarded-Proto, -Host and -For; X-Forwarded-Prefix). Enable it only behind a proxy that sets or removes
        /// all of them.
        enable_proxy_headers_parsing: bool as Bool = false;
        /// Maximum size of a request body, in bytes.
        max_request_body_size: usize as Int<1, 1_073_741_824> = 114_688,
            was [("DEFAULT", "max_request_body_size"), ("DEFAULT", "osapi_max_request_body_size")];
    }
}

section! {
    /// Policy: the rules that authorize requests.
    OsloPolicySection "oslo_policy" {
        /// Policy file, YAML or JSON. A relative path is searched for beside the configuration files, then in
        /// ~/.magnum, ~, /etc/magnum and /etc. If there is no file of this name, the default rules apply; one of
        /// another name has to be there.
        policy_file: PathBuf as Path = PathBuf::from("policy.yaml");
        /// Directory of policy files that are read after policy_file, sorted by name; may be repeated. Searched for
        /// like policy_file.
        policy_dirs: Vec<PathBuf> as Multi<Path> = vec![PathBuf::from("policy.d")];
        /// Rule to apply in place of a referenced rule that does not exist.
        policy_default_rule: String as Text = "default".to_owned();
        /// Apply only the current default rules. If false, the deprecated defaults of releases before 2023.2 are
        /// accepted as well.
        enforce_new_defaults: bool as Bool = true;
        /// Refuse tokens whose scope (project, domain, system) is not among those of the rule.
        enforce_scope: bool as Bool = true;
    }
}

section! {
    /// Cross-origin resource sharing: access to the API by websites in a browser.
    CorsSection "cors" {
        /// Allowed origins, such as `https://horizon.example.com`, without a trailing slash; `*` allows any. Empty:
        /// CORS is disabled and the rest of this section has no effect.
        allowed_origin: Vec<String> as List<Text> = Vec::new();
        /// Allow requests with credentials.
        allow_credentials: bool as Bool = true;
        /// Response headers that scripts may read.
        expose_headers: Vec<String> as List<Text> = texts(&[
            "X-Auth-Token", "X-Subject-Token", "X-Service-Token", "X-OpenStack-Request-ID", "X-Server-Management-Url",
        ]);
        /// Time that a browser may cache a preflight response, in seconds. 0: the header is not sent.
        max_age: i64 as Int = 3600;
        /// Allowed request methods.
        allow_methods: Vec<String> as List<Text> = texts(&["GET", "PUT", "POST", "DELETE", "PATCH"]);
        /// Allowed request headers, besides those that are always allowed.
        allow_headers: Vec<String> as List<Text> = texts(&[
            "X-Auth-Token", "X-Identity-Status", "X-Roles", "X-Service-Catalog", "X-User-Id", "X-Tenant-Id",
            "X-OpenStack-Request-ID", "X-Server-Management-Url",
        ]);
    }
}

section! {
    /// The health check for load balancers.
    HealthcheckSection "healthcheck" {
        /// Path of the health check. Paths below it respond as well.
        path: String as Text = "/healthcheck".to_owned();
        /// Checks that must all pass for a 200. With `database` or `messaging`, an outage of that server takes every
        /// API instance out of rotation at once.
        backends: Vec<HealthBackend> as List<Choice> = vec![HealthBackend::DisableByFile];
        /// File whose existence makes the health check return 503 (backend disable_by_file).
        disable_by_file_path: Option<PathBuf> as Opt<Path> =
            Some(PathBuf::from("/etc/magnum/healthcheck_disable"));
        /// Files whose existence makes the health check on one port return 503, as `port:path` (backend
        /// disable_by_files_ports).
        disable_by_file_paths: Vec<String> as List<Text> = Vec::new();
        /// Files that must all exist for a 200 (backend enable_by_files).
        enable_by_file_paths: Vec<PathBuf> as List<Path> = Vec::new();
        /// Include the result of each check, the host name and the version in the response. Do not enable it on a
        /// public port.
        detailed: bool as Bool = false;
        /// Client networks that may use the health check; others get 404. Empty: all.
        allowed_source_ranges: Vec<IpNet> as List<Network> = Vec::new();
        /// Return 404 to requests that came through a proxy (X-Forwarded… headers).
        ignore_proxied_requests: bool as Bool = false;
    }
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}
