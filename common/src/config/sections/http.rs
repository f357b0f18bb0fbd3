//! The sections of libraries before the API: `[oslo_middleware]`, `[oslo_policy]`.

use std::path::PathBuf;

use crate::config::schema::section;

section! {
    /// Request handling before the API.
    OsloMiddlewareSection "oslo_middleware" {
        /// Whether forwarding headers of a proxy decide the scheme and host of links.
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
