//! Rules that need more than one option.
//!
//! What one value alone can tell (form, range, URL) its codec has checked already. Files that another host may
//! have are not looked for: the same `magnum.conf` is installed on hosts with different roles.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Settings;
use super::problem::{Place, Problem};
use super::reader::Key;
use super::sections::{CertManagerType, HealthBackend};

/// Checks options against each other; adds errors and warnings.
pub(super) fn together(
    settings: &Settings,
    places: &BTreeMap<Key, Place>,
    errors: &mut Vec<Problem>,
    warnings: &mut Vec<Problem>,
) {
    let problem = |section: &str, name: &str, message: &str| {
        let key = (section.to_owned(), name.to_owned());
        let place = places.get(&key).cloned().unwrap_or(Place::Default);
        Problem {
            place,
            message: format!("[{section}] {name}: {message}"),
        }
    };
    let Settings {
        default,
        api,
        conductor,
        rabbit,
        ..
    } = settings;

    if api.enabled_ssl {
        for (name, file) in [
            ("ssl_cert_file", &api.ssl_cert_file),
            ("ssl_key_file", &api.ssl_key_file),
        ] {
            if file.is_none() {
                errors.push(problem("api", name, "must be set when enabled_ssl is true"));
            }
        }
    }
    let health = &settings.healthcheck;
    if !health.path.starts_with('/') || health.path.trim_end_matches('/').is_empty() {
        let message = "must begin with a slash and name more than that";
        errors.push(problem("healthcheck", "path", message));
    }
    let exclusive = [HealthBackend::DisableByFile, HealthBackend::EnableByFiles];
    if exclusive.iter().all(|backend| health.backends.contains(backend)) {
        let message = "has enable_by_files and disable_by_file, which exclude each other";
        errors.push(problem("healthcheck", "backends", message));
    }
    for pair in &health.disable_by_file_paths {
        let port = pair
            .split_once(':')
            .and_then(|(port, _)| port.trim().parse::<u16>().ok());
        if port.is_none() {
            let message = format!("{pair:?} is not of the form port:path");
            errors.push(problem("healthcheck", "disable_by_file_paths", &message));
        }
    }
    for origin in settings
        .cors
        .allowed_origin
        .iter()
        .filter(|origin| origin.ends_with('/'))
    {
        let message = format!("{origin} ends with a slash, which no browser's origin does");
        warnings.push(problem("cors", "allowed_origin", &message));
    }
    if rabbit.ssl_cert_file.is_some() != rabbit.ssl_key_file.is_some() {
        let name = if rabbit.ssl_cert_file.is_some() {
            "ssl_cert_file"
        } else {
            "ssl_key_file"
        };
        errors.push(problem(
            "oslo_messaging_rabbit",
            name,
            "a client certificate needs both ssl_cert_file and ssl_key_file",
        ));
    }
    if conductor.operation_retry_max_interval < conductor.operation_retry_initial {
        errors.push(problem(
            "conductor",
            "operation_retry_max_interval",
            "must not be less than operation_retry_initial",
        ));
    }
    for (name, timeout) in [
        ("update_timeout", conductor.update_timeout),
        ("delete_timeout", conductor.delete_timeout),
        ("upgrade_timeout", conductor.upgrade_timeout),
        ("rotation_timeout", conductor.rotation_timeout),
    ] {
        if !timeout.is_zero() && timeout < Duration::from_secs(1) {
            errors.push(problem(
                "conductor",
                name,
                "must be 0 (never) or at least one second",
            ));
        }
    }
    if conductor.dead_letter_queue.as_deref() == Some(conductor.topic.as_str()) {
        errors.push(problem(
            "conductor",
            "dead_letter_queue",
            "must differ from topic",
        ));
    }

    for (target, word) in &default.default_log_levels {
        if super::log_level(word).is_none() {
            let message =
                format!("{target}={word}: write DEBUG, INFO, WARNING, ERROR or CRITICAL as the level");
            errors.push(problem("DEFAULT", "default_log_levels", &message));
        }
    }

    if default.service_down_time <= conductor.service_report_interval {
        warnings.push(problem(
            "DEFAULT",
            "service_down_time",
            "is not longer than [conductor] service_report_interval: living conductors will be shown as down",
        ));
    }
    for (name, set) in [
        ("use_syslog", default.use_syslog),
        ("use_journal", default.use_journal),
    ] {
        if set {
            warnings.push(problem(
                "DEFAULT",
                name,
                "is not supported; the log goes to log_file or to standard error",
            ));
        }
    }
    if !rabbit.ssl_enforce_hostname_verification {
        warnings.push(problem(
            "oslo_messaging_rabbit",
            "ssl_enforce_hostname_verification",
            "is not supported: the broker's certificate must be for its host name; set ssl_ca_file for a private CA",
        ));
    }
    if conductor.topic != "magnum-conductor" && places.contains_key(&("conductor".into(), "topic".into())) {
        warnings.push(problem(
            "conductor",
            "topic",
            "is not the default: Python's magnum-api ignores this option and will not reach this conductor",
        ));
    }
    let certificates = &settings.certificates;
    if certificates.seal_private_keys && certificates.cert_manager_type == CertManagerType::Barbican {
        warnings.push(problem(
            "certificates",
            "seal_private_keys",
            "has no effect with cert_manager_type = barbican, which keeps secrets in its own way",
        ));
    }
    if !settings.drivers.driver_path.iter().all(|path| path.is_absolute()) {
        warnings.push(problem(
            "drivers",
            "driver_path",
            "has a relative path, which depends on where programs start",
        ));
    }
}
