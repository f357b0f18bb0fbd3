//! Names that are not read, and what to say about them.
//!
//! An existing file must never be refused for what it holds besides our options. Sections that other services
//! or libraries own are none of our business. In our own sections, an option that the table does not have is
//! either one of Magnum's that has no effect here (silent: the file may be shared with Python processes), or a
//! mistake (warned). Sections that only old releases read are warned about once each.

use std::collections::BTreeMap;

use super::option_spec::{Key, OptionSpec};

/// Options of Python Magnum and its libraries in sections that we read, without effect here.
const WITHOUT_EFFECT: &[(&str, &[&str])] = &[
    (
        "oslo_policy",
        &[
            "remote_content_type",
            "remote_ssl_verify_server_crt",
            "remote_ssl_ca_crt_file",
            "remote_ssl_client_crt_file",
            "remote_ssl_client_key_file",
            "remote_timeout",
        ],
    ),
    (
        "DEFAULT",
        &[
            "bindir",
            "periodic_interval_max",
            "tempdir",
            "password_symbols",
            "rootwrap_config",
            "max_manifest_size",
            "log_config_append",
            "executor_thread_pool_size",
            "rpc_thread_pool_size",
            "syslog_log_facility",
            "log_config",
            "log_date_format",
            "logging_context_format_string",
            "logging_default_format_string",
            "logging_debug_format_suffix",
            "logging_exception_prefix",
            "logging_user_identity_format",
            "log_color",
            "log_rotation_type",
            "log_rotate_interval",
            "log_rotate_interval_type",
            "max_logfile_count",
            "max_logfile_size_mb",
            "rate_limit_interval",
            "rate_limit_burst",
            "rate_limit_except_level",
            "publish_errors",
            "instance_format",
            "instance_uuid_format",
            "fatal_deprecations",
            "rpc_conn_pool_size",
            "conn_pool_min_size",
            "conn_pool_ttl",
            "run_external_periodic_tasks",
            "backdoor_port",
            "backdoor_socket",
            "log_options",
            "graceful_shutdown_timeout",
            "api_paste_config",
            "wsgi_default_pool_size",
            "wsgi_keep_alive",
            "wsgi_log_format",
            "max_header_line",
            "tcp_keepidle",
            "client_socket_timeout",
            "config_file",
            "config_dir",
            "config_source",
        ],
    ),
    ("api", &["api_paste_config"]),
    (
        "database",
        &[
            "backend",
            "db_max_retries",
            "db_retry_interval",
            "db_inc_retry_interval",
            "db_max_retry_interval",
            "use_db_reconnect",
            "slave_connection",
            "asyncio_connection",
            "asyncio_slave_connection",
            "synchronous_reader",
            "connection_debug",
            "connection_trace",
            "connection_parameters",
            "mysql_engine",
            "mysql_enable_ndb",
            "min_pool_size",
            "use_tpool",
        ],
    ),
    (
        "cluster",
        &[
            "nodes_affinity_policy",
            "etcd_discovery_service_endpoint_format",
            "enabled_definitions",
        ],
    ),
    ("kubernetes", &["post_install_manifest_url"]),
    (
        "oslo_messaging_rabbit",
        &[
            "heartbeat_in_pthread",
            "heartbeat_rate",
            "ssl_version",
            "kombu_ssl_version",
            "rpc_conn_pool_size",
            "conn_pool_min_size",
            "conn_pool_ttl",
            "ssl_enforce_fips_mode",
            "fips_mode",
        ],
    ),
    ("oslo_messaging_notifications", &["routing_config"]),
    ("oslo_concurrency", &["disable_process_locking"]),
    (
        "cors",
        &[
            "latent_allow_methods",
            "latent_allow_headers",
            "latent_expose_headers",
        ],
    ),
    (
        "oslo_middleware",
        &["http_basic_auth_user_file", "secure_proxy_ssl_header"],
    ),
];

/// Sections that a library reads in its own right: only the options that we read ourselves are in the table.
const SHARED: &[&str] = &[
    "keystone_auth",
    "keystone_authtoken",
    "barbican_client",
    "glance_client",
    "nova_client",
    "neutron_client",
    "cinder_client",
];

/// Sections and options of old releases, and what became of them.
const OLD_SECTIONS: &[(&str, &str)] = &[("bay", "its options are in [cluster]")];
const OLD_OPTIONS: &[(&str, &str, &str)] = &[(
    "DEFAULT",
    "enabled_drivers",
    "every driver that is found is enabled; see [drivers] disabled_drivers",
)];

/// Sections that Magnum's libraries once read, by how they begin.
const OLD_BEGINNINGS: &[(&str, &str)] = &[(
    "cors.",
    "list the origins in [cors] allowed_origin, whose options are for all of them",
)];

/// What to say about a name found in a file, if anything.
pub(super) fn remark(key: &Key, specs: &BTreeMap<Key, OptionSpec>) -> Option<String> {
    let (section, name) = key;
    let is = |(a, b): &(&str, &str)| a == section && b == name;
    if specs.contains_key(key) || specs.values().any(|spec| spec.was.iter().any(is)) {
        return None;
    }
    if let Some((_, instead)) = OLD_SECTIONS.iter().find(|(old, _)| old == section) {
        return Some(format!(
            "section [{section}] belongs to an older release and is ignored: {instead}"
        ));
    }
    if let Some((_, instead)) = OLD_BEGINNINGS.iter().find(|(old, _)| section.starts_with(old)) {
        return Some(format!("section [{section}] has no effect: {instead}"));
    }
    if let Some((.., instead)) = OLD_OPTIONS.iter().find(|(a, b, _)| is(&(a, b))) {
        return Some(format!(
            "[{section}] {name} belongs to an older release and is ignored: {instead}"
        ));
    }
    let ours = specs.keys().any(|(known, _)| known == section) && !SHARED.contains(&section.as_str());
    let silent = WITHOUT_EFFECT
        .iter()
        .any(|(known, names)| known == section && names.contains(&name.as_str()));
    (ours && !silent)
        .then(|| format!("[{section}] {name} is not an option of this release; check its spelling"))
}

/// What a remark is about: the whole section for old ones, so that it is made once.
pub(super) fn subject(key: Key) -> Key {
    let of_an_old_section = OLD_SECTIONS.iter().any(|(old, _)| *old == key.0)
        || OLD_BEGINNINGS.iter().any(|(old, _)| key.0.starts_with(old));
    if of_an_old_section {
        (key.0, String::new())
    } else {
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_is_both_read_and_listed_as_without_effect() {
        for (section, names) in WITHOUT_EFFECT {
            for name in *names {
                let key = ((*section).to_owned(), (*name).to_owned());
                assert!(!crate::specs().contains_key(&key), "[{section}] {name}");
            }
        }
    }
}
