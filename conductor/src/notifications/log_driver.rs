//! The driver `log`: a line in this program's log for each notification, as oslo.messaging's own driver writes it.
//!
//! The logger is `oslo.messaging.notification.<event type>`, the level that of the notification, the text one JSON
//! object. `default_log_levels` can silence it by that name, with its dots.
//!
//! Differs from oslo's: values whose name is that of a secret are masked at any depth (oslo's leaves lists as they
//! are, and with them the cluster's labels); texts are not searched for passwords.

use serde_json::Value;

use super::message::{Notification, Priority};

/// Parts of names whose values are masked in the log.
const SECRET: &[&str] = &[
    "admin_pass",
    "adminpass",
    "credential",
    "new_pass",
    "passphrase",
    "password",
    "passwd",
    "private_key",
    "secret",
    "token",
];

const MASKED: &str = "***";

/// A line at the notification's level. A target is part of the program, so each event has its own place.
macro_rules! write_line {
    ($priority:expr, $text:expr, $target:literal) => {
        match $priority {
            Priority::Info => tracing::info!(target: $target, "{}", $text),
            Priority::Error => tracing::error!(target: $target, "{}", $text),
        }
    };
}

/// Writes the line.
pub fn write(notification: &Notification) {
    let mut record = Value::Object(notification.to_record());
    mask(&mut record);
    match notification.event_type.as_str() {
        "magnum.cluster.create" => write_line!(
            notification.priority,
            record,
            "oslo.messaging.notification.magnum.cluster.create"
        ),
        "magnum.cluster.delete" => write_line!(
            notification.priority,
            record,
            "oslo.messaging.notification.magnum.cluster.delete"
        ),
        "magnum.cluster.metrics.update" => write_line!(
            notification.priority,
            record,
            "oslo.messaging.notification.magnum.cluster.metrics.update"
        ),
        // There are no other levels; the text has the priority in any case.
        _ => write_line!(
            notification.priority,
            record,
            "oslo.messaging.notification.magnum.cluster.update"
        ),
    }
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.to_lowercase();
                if !value.is_object() && SECRET.iter().any(|part| name.contains(part)) {
                    *value = MASKED.into();
                } else {
                    mask(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secret_values_are_masked_at_any_depth() {
        let mut value =
            json!({"a": [{"labels": {"registry_password": "p", "Admin_Token": "t", "kube_tag": "v1"}}]});
        mask(&mut value);
        let expected = json!({"registry_password": "***", "Admin_Token": "***", "kube_tag": "v1"});
        assert_eq!(value["a"][0]["labels"], expected);
    }
}
