//! Rules that need more than one option.
//!
//! What one value alone can tell (form, range, URL) its codec has checked already. Files that another host may
//! have are not looked for: the same `magnum.conf` is installed on hosts with different roles.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Settings;
use super::option_spec::Key;
use super::problem::{Place, Problem};
use super::sections::{
    ApiSection, CertManagerType, CertificatesSection, ConductorSection, CorsSection, DefaultSection,
    DriversSection, HealthBackend, HealthcheckSection, MessageAuthentication, RabbitSection,
};

/// Checks options against each other; adds errors and warnings.
pub(super) fn together(
    settings: &Settings,
    places: &BTreeMap<Key, Place>,
    errors: &mut Vec<Problem>,
    warnings: &mut Vec<Problem>,
) {
    let mut report = Report {
        places,
        errors,
        warnings,
    };
    check_tls_files(&settings.api, &mut report);
    check_healthcheck(&settings.healthcheck, &mut report);
    check_cors(&settings.cors, &mut report);
    check_conductor(&settings.conductor, &mut report);
    check_broker(&settings.rabbit, &mut report);
    check_log(&settings.default, &mut report);
    check_heartbeat(&settings.default, &settings.conductor, &mut report);
    check_certificates(&settings.certificates, &mut report);
    check_messages(&settings.conductor, &mut report);
    check_driver_path(&settings.drivers, &mut report);
}

/// Collects problems, each with the place where its option was written.
struct Report<'a> {
    places: &'a BTreeMap<Key, Place>,
    errors: &'a mut Vec<Problem>,
    warnings: &'a mut Vec<Problem>,
}

impl Report<'_> {
    fn error(&mut self, section: &str, name: &str, message: &str) {
        let problem = self.problem(section, name, message);
        self.errors.push(problem);
    }

    fn warn(&mut self, section: &str, name: &str, message: &str) {
        let problem = self.problem(section, name, message);
        self.warnings.push(problem);
    }

    fn problem(&self, section: &str, name: &str, message: &str) -> Problem {
        let key = (section.to_owned(), name.to_owned());
        Problem {
            place: self.places.get(&key).cloned().unwrap_or(Place::Default),
            message: format!("[{section}] {name}: {message}"),
        }
    }

    /// Whether the option is set, be it to its default.
    fn is_set(&self, section: &str, name: &str) -> bool {
        self.places.contains_key(&(section.to_owned(), name.to_owned()))
    }
}

fn check_tls_files(api: &ApiSection, report: &mut Report<'_>) {
    let files = [
        ("ssl_cert_file", &api.ssl_cert_file),
        ("ssl_key_file", &api.ssl_key_file),
    ];
    for (name, file) in files {
        if api.enabled_ssl && file.is_none() {
            report.error("api", name, "must be set when enabled_ssl is true");
        }
    }
}

fn check_healthcheck(healthcheck: &HealthcheckSection, report: &mut Report<'_>) {
    let path = &healthcheck.path;
    if !path.starts_with('/') || path.trim_end_matches('/').is_empty() {
        let message = "must begin with a slash and name more than that";
        report.error("healthcheck", "path", message);
    }
    let exclusive = [HealthBackend::DisableByFile, HealthBackend::EnableByFiles];
    if exclusive
        .iter()
        .all(|backend| healthcheck.backends.contains(backend))
    {
        let message = "has enable_by_files and disable_by_file, which exclude each other";
        report.error("healthcheck", "backends", message);
    }
    for pair in &healthcheck.disable_by_file_paths {
        let port = pair.split_once(':').map(|(port, _)| port.trim());
        if port.and_then(|port| port.parse::<u16>().ok()).is_none() {
            let message = format!("{pair:?} is not of the form port:path");
            report.error("healthcheck", "disable_by_file_paths", &message);
        }
    }
}

fn check_cors(cors: &CorsSection, report: &mut Report<'_>) {
    for origin in &cors.allowed_origin {
        if origin.ends_with('/') {
            let message = format!("{origin} ends with a slash, which no browser's origin does");
            report.warn("cors", "allowed_origin", &message);
        }
    }
}

fn check_conductor(conductor: &ConductorSection, report: &mut Report<'_>) {
    if conductor.operation_retry_max_interval < conductor.operation_retry_initial {
        let message = "must not be less than operation_retry_initial";
        report.error("conductor", "operation_retry_max_interval", message);
    }
    let timeouts = [
        ("update_timeout", conductor.update_timeout),
        ("delete_timeout", conductor.delete_timeout),
        ("upgrade_timeout", conductor.upgrade_timeout),
        ("rotation_timeout", conductor.rotation_timeout),
    ];
    for (name, timeout) in timeouts {
        if !timeout.is_zero() && timeout < Duration::from_secs(1) {
            report.error("conductor", name, "must be 0 (never) or at least one second");
        }
    }
    if conductor.dead_letter_queue.as_deref() == Some(conductor.topic.as_str()) {
        report.error("conductor", "dead_letter_queue", "must differ from topic");
    }
    if conductor.topic != "magnum-conductor" && report.is_set("conductor", "topic") {
        let message =
            "is not the default: Python's magnum-api ignores this option and will not reach this conductor";
        report.warn("conductor", "topic", message);
    }
}

fn check_broker(rabbit: &RabbitSection, report: &mut Report<'_>) {
    let section = "oslo_messaging_rabbit";
    let lone_file = match (&rabbit.ssl_cert_file, &rabbit.ssl_key_file) {
        (Some(_), None) => Some("ssl_cert_file"),
        (None, Some(_)) => Some("ssl_key_file"),
        (Some(_), Some(_)) | (None, None) => None,
    };
    if let Some(name) = lone_file {
        let message = "a client certificate needs both ssl_cert_file and ssl_key_file";
        report.error(section, name, message);
    }
    if !rabbit.ssl_enforce_hostname_verification {
        let message = "is not supported: the broker's certificate must be for its host name; set ssl_ca_file for a \
                       private CA";
        report.warn(section, "ssl_enforce_hostname_verification", message);
    }
}

fn check_log(default: &DefaultSection, report: &mut Report<'_>) {
    for (target, level) in &default.default_log_levels {
        if super::log_level(level).is_none() {
            let message =
                format!("{target}={level}: write DEBUG, INFO, WARNING, ERROR or CRITICAL as the level");
            report.error("DEFAULT", "default_log_levels", &message);
        }
    }
    let destinations = [
        ("use_syslog", default.use_syslog),
        ("use_journal", default.use_journal),
    ];
    for (name, is_chosen) in destinations {
        if is_chosen {
            let message = "is not supported; the log goes to log_file or to standard error";
            report.warn("DEFAULT", name, message);
        }
    }
}

fn check_heartbeat(default: &DefaultSection, conductor: &ConductorSection, report: &mut Report<'_>) {
    if default.service_down_time <= conductor.service_report_interval {
        let message =
            "is not longer than [conductor] service_report_interval: living conductors will be shown as down";
        report.warn("DEFAULT", "service_down_time", message);
    }
}

fn check_certificates(certificates: &CertificatesSection, report: &mut Report<'_>) {
    if certificates.seal_private_keys && certificates.cert_manager_type == CertManagerType::Barbican {
        let message = "has no effect with cert_manager_type = barbican, which keeps secrets in its own way";
        report.warn("certificates", "seal_private_keys", message);
    }
}

fn check_messages(conductor: &ConductorSection, report: &mut Report<'_>) {
    if conductor.message_authentication != MessageAuthentication::Off && conductor.message_key_file.is_none()
    {
        report.error("conductor", "message_authentication", "needs message_key_file");
    }
}

fn check_driver_path(drivers: &DriversSection, report: &mut Report<'_>) {
    if drivers.driver_path.iter().any(|path| path.is_relative()) {
        let message = "has a relative path, which depends on where programs start";
        report.warn("drivers", "driver_path", message);
    }
}
