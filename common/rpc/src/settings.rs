//! From the settings to messaging's options.

use super::authentication::Authentication;
use super::options::{Addressing, LoginMethod, OptionsError, RabbitOptions, RpcOptions};
use super::target::Names;
use super::url::TransportUrl;
use super::wire_format::WireFormat;
use magnum_config::Settings;
use magnum_config::{LoginMethod as ConfiguredLogin, RabbitSection, RpcContentType};

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
            format: match settings.conductor.rpc_content_type {
                RpcContentType::Json => WireFormat::Json,
                RpcContentType::MessagePack => WireFormat::MessagePack,
            },
            ping_enabled: settings.default.rpc_ping_enabled,
            heartbeat: Some(settings.conductor.operation_lease / 3),
        }
    }
}

impl TryFrom<&Settings> for RpcOptions {
    type Error = OptionsError;

    fn try_from(settings: &Settings) -> Result<Self, OptionsError> {
        Self::to(settings.default.transport_url.expose(), settings)
    }
}

impl RpcOptions {
    /// Options of a separate broker for notifications, `[oslo_messaging_notifications] transport_url`. `None` if that is
    /// not set, or the same as that of requests.
    ///
    /// # Errors
    /// The URL is malformed, or has options in its query that cannot be used.
    pub fn for_notifications(settings: &Settings) -> Result<Option<Self>, OptionsError> {
        let requests = settings.default.transport_url.expose();
        settings
            .oslo_messaging_notifications
            .transport_url
            .as_ref()
            .map(|url| url.expose())
            .filter(|url| *url != requests)
            .map(|url| Self::to(url, settings))
            .transpose()
    }

    fn to(url: &str, settings: &Settings) -> Result<Self, OptionsError> {
        Self {
            url: TransportUrl::parse(url)?,
            rabbit: RabbitOptions {
                lock_path: settings.oslo_concurrency.lock_path.clone(),
                ..RabbitOptions::try_from(&settings.rabbit)?
            },
            addressing: Addressing::from(settings),
            authentication: Authentication::off(),
        }
        .with_overrides()
    }
}

impl TryFrom<&RabbitSection> for RabbitOptions {
    type Error = OptionsError;

    fn try_from(section: &RabbitSection) -> Result<Self, OptionsError> {
        Ok(Self::of(section, login(section.rabbit_login_method)?))
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
    use magnum_common::secret::Secret;

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
    fn notifications_have_a_broker_of_their_own_only_where_it_differs() {
        let mut settings = Settings::default();
        settings.default.transport_url = Secret::new("rabbit://u:p@h/");
        assert_eq!(RpcOptions::for_notifications(&settings), Ok(None));
        settings.oslo_messaging_notifications.transport_url = Some(Secret::new("rabbit://u:p@h/"));
        assert_eq!(RpcOptions::for_notifications(&settings), Ok(None));
        settings.oslo_messaging_notifications.transport_url = Some(Secret::new("rabbit://u:p@other/?ssl=1"));
        let options = RpcOptions::for_notifications(&settings).unwrap().unwrap();
        assert_eq!(options.hosts()[0].to_string(), "other:5672");
        assert!(options.rabbit.ssl);
    }

    #[test]
    fn the_demonstration_login_is_refused() {
        let mut settings = Settings::default();
        settings.rabbit.rabbit_login_method = ConfiguredLogin::RabbitCrDemo;
        let text = RpcOptions::try_from(&settings).unwrap_err().to_string();
        assert!(text.contains("rabbit_login_method"), "{text}");
    }
}
