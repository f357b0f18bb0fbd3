//! Options of Magnum and its libraries that files have, and that change nothing here.

use super::option_spec::Key;

/// Options of other clients, of this and of older releases: TLS is configured in `[keystone_auth]`.
const CLIENT: &[&str] = &[
    "api_version",
    "ca_file",
    "cert_file",
    "key_file",
    "insecure",
    "endpoint_override",
];

/// Without a word: the file may be shared with Python processes, and nobody misses them here.
pub(super) const WITHOUT_EFFECT: &[(&str, &[&str])] = &[
    // The labels of these names are read. The package declares options for them, too, and never reads their values.
    (
        "capi_helm_cluster_labels",
        &["capi_helm_chart_version", "etcd_volume_size", "etcd_volume_type"],
    ),
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
            "executor_thread_pool_size",
            "rpc_thread_pool_size",
            "syslog_log_facility",
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
            "asyncio_connection",
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
            "rpc_conn_pool_size",
            "conn_pool_min_size",
            "conn_pool_ttl",
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
    (
        "keystone_auth",
        &[
            "collect_timing",
            "split_loggers",
            "service_type",
            "service_name",
            "interface",
            "valid_interfaces",
            "region_name",
            "endpoint_override",
            "version",
            "min_version",
            "max_version",
            "connect_retries",
            "connect_retry_delay",
            "status_code_retries",
            "status_code_retry_delay",
            "retriable_status_codes",
        ],
    ),
    (
        "keystone_authtoken",
        &[
            "auth_version",
            "cache",
            "timeout",
            "collect_timing",
            "split_loggers",
            "memcache_use_advanced_pool",
            "memcache_pool_unused_timeout",
            "memcache_pool_conn_get_timeout",
            "memcache_tls_cafile",
            "memcache_tls_certfile",
            "memcache_tls_keyfile",
            "memcache_tls_allowed_ciphers",
            "memcache_sasl_username",
            "memcache_sasl_password",
            "memcache_username",
            "memcache_password",
            "check_revocations_for_cached",
            "hash_algorithms",
            "revocation_cache_time",
            "signing_dir",
            "signing_dirname",
            "service_token_expiration",
        ],
    ),
    ("barbican_client", CLIENT),
    ("glance_client", CLIENT),
    ("nova_client", CLIENT),
    ("neutron_client", CLIENT),
    ("cinder_client", CLIENT),
];

/// With a warning that says why: who sets them relies on them.
pub(super) const MISSED: &[(&str, &str, &str)] = &[
    (
        "DEFAULT",
        "log_config_append",
        "the log is configured by the options of [DEFAULT]",
    ),
    (
        "DEFAULT",
        "log_config",
        "the log is configured by the options of [DEFAULT]",
    ),
    (
        "database",
        "slave_connection",
        "everything is read from [database] connection",
    ),
    (
        "database",
        "asyncio_slave_connection",
        "everything is read from [database] connection",
    ),
    (
        "oslo_messaging_rabbit",
        "ssl_version",
        "TLS 1.2 and 1.3 are spoken",
    ),
    (
        "oslo_messaging_rabbit",
        "kombu_ssl_version",
        "TLS 1.2 and 1.3 are spoken",
    ),
    (
        "oslo_messaging_rabbit",
        "ssl_enforce_fips_mode",
        "there is no FIPS mode",
    ),
    ("oslo_messaging_rabbit", "fips_mode", "there is no FIPS mode"),
    (
        "capi_helm",
        "api_resources",
        "objects of Cluster API are read as v1beta1, as the package reads them where it is not told otherwise",
    ),
];

/// Whether nobody needs to hear of it.
pub(super) fn is_silent((section, name): &Key) -> bool {
    WITHOUT_EFFECT
        .iter()
        .any(|(known, names)| known == section && names.contains(&name.as_str()))
}

/// Why an option that somebody may rely on has no effect.
pub(super) fn missed((section, name): &Key) -> Option<&'static str> {
    let mut missed = MISSED.iter();
    let found = missed.find(|(known, option, _)| known == section && option == name);
    found.map(|(.., why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_is_both_read_and_listed_as_without_effect() {
        let silent = WITHOUT_EFFECT
            .iter()
            .flat_map(|(section, names)| names.iter().map(move |name| (*section, *name)));
        let missed = MISSED.iter().map(|(section, name, _)| (*section, *name));
        for (section, name) in silent.chain(missed) {
            let specs = crate::specs();
            let is = |was: &(&str, &str)| *was == (section, name);
            assert!(
                !specs.contains_key(&(section.to_owned(), name.to_owned())),
                "[{section}] {name}"
            );
            assert!(
                !specs.values().any(|spec| spec.was.iter().any(is)),
                "[{section}] {name}"
            );
        }
    }
}
