//! From the settings to messaging's options.

use std::time::Duration;

use super::options::{Addressing, LoginMethod, OptionsError, RabbitOptions, RpcOptions};
use super::target::Names;
use super::url::TransportUrl;
use crate::config::Settings;
use crate::config::{LoginMethod as ConfiguredLogin, RabbitSection};

impl From<&Settings> for Addressing {
    fn from(settings: &Settings) -> Self {
        Self {
            names: Names {
                exchange: settings.default.control_exchange.clone(),
                topic: settings.conductor.topic.clone(),
            },
            response_timeout: settings.default.rpc_response_timeout,
            publish_timeout: settings.api.publish_timeout,
            dead_letter_queue: settings.conductor.dead_letter_queue.clone(),
        }
    }
}

impl TryFrom<&Settings> for RpcOptions {
    type Error = OptionsError;

    fn try_from(settings: &Settings) -> Result<Self, OptionsError> {
        Self {
            url: TransportUrl::parse(settings.default.transport_url.expose())?,
            rabbit: RabbitOptions::try_from(&settings.rabbit)?,
            addressing: Addressing::from(settings),
        }
        .with_overrides()
    }
}

impl TryFrom<&RabbitSection> for RabbitOptions {
    type Error = OptionsError;

    fn try_from(section: &RabbitSection) -> Result<Self, OptionsError> {
        Ok(Self {
            amqp_durable_queues: section.amqp_durable_queues,
            amqp_auto_delete: section.amqp_auto_delete,
            rabbit_quorum_queue: section.rabbit_quorum_queue,
            rabbit_transient_quorum_queue: section.rabbit_transient_quorum_queue,
            rabbit_quorum_delivery_limit: section.rabbit_quorum_delivery_limit.into(),
            rabbit_quorum_max_memory_length: section.rabbit_quorum_max_memory_length.into(),
            rabbit_quorum_max_memory_bytes: i64::try_from(section.rabbit_quorum_max_memory_bytes)
                .unwrap_or(i64::MAX),
            rabbit_ha_queues: section.rabbit_ha_queues,
            rabbit_transient_queues_ttl: Duration::from_secs(section.rabbit_transient_queues_ttl.into()),
            rabbit_qos_prefetch_count: section.rabbit_qos_prefetch_count,
            enable_cancel_on_failover: section.enable_cancel_on_failover,
            heartbeat_timeout_threshold: Duration::from_secs(section.heartbeat_timeout_threshold.into()),
            rabbit_retry_interval: section.rabbit_retry_interval,
            rabbit_retry_backoff: section.rabbit_retry_backoff,
            rabbit_interval_max: section.rabbit_interval_max,
            kombu_reconnect_delay: section.kombu_reconnect_delay,
            rabbit_login_method: login(section.rabbit_login_method)?,
            ssl: section.ssl,
            ssl_ca_file: section.ssl_ca_file.clone(),
            ssl_cert_file: section.ssl_cert_file.clone(),
            ssl_key_file: section.ssl_key_file.clone(),
        })
    }
}

fn login(configured: ConfiguredLogin) -> Result<LoginMethod, OptionsError> {
    match configured {
        ConfiguredLogin::Amqplain => Ok(LoginMethod::AmqPlain),
        ConfiguredLogin::Plain => Ok(LoginMethod::Plain),
        ConfiguredLogin::External => Ok(LoginMethod::External),
        ConfiguredLogin::RabbitCrDemo => Err(OptionsError::LoginMethod),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn defaults_of_the_settings_are_the_defaults_here() {
        let settings = Settings::default();
        let options = RpcOptions::try_from(&settings).unwrap();
        assert_eq!(options.rabbit, RabbitOptions::default());
        assert_eq!(options.addressing, Addressing::default());
        assert_eq!(options.hosts()[0].to_string(), "localhost:5672");
    }

    #[test]
    fn the_urls_query_wins_over_the_section() {
        let mut settings = Settings::default();
        settings.rabbit.rabbit_quorum_queue = true;
        settings.default.transport_url = Secret::new("rabbit://u:p@h/?rabbit_quorum_queue=false");
        let options = RpcOptions::try_from(&settings).unwrap();
        assert!(!options.rabbit.rabbit_quorum_queue);
    }

    #[test]
    fn the_demonstration_login_is_refused() {
        let mut settings = Settings::default();
        settings.rabbit.rabbit_login_method = ConfiguredLogin::RabbitCrDemo;
        let text = RpcOptions::try_from(&settings).unwrap_err().to_string();
        assert!(text.contains("rabbit_login_method"), "{text}");
    }
}
