//! Asking Keystone what a token is worth, as `[keystone_authtoken]` says.
//!
//! Guarantees: [`Keystone::validate`] ends within twice the limit of one exchange, retries and waiting for a turn
//! included; no more than [`AT_ONCE`] questions are under way; a token that
//! Keystone does not know, has revoked or let expire is an answer (`None`), not an error; every error means that nothing
//! is known about the token. Tokens are neither in errors nor in the log.

use std::time::Duration;

use tokio::sync::Semaphore;

use magnum_common::retry::RetryPolicy;
use magnum_common::secret::Secret;
use magnum_config::{CacheProtection, Settings};

use super::{Credentials, Endpoint, Root, ServiceError, ServiceRequest, Session};

const PATH: &str = "/auth/tokens";
/// Questions to Keystone at once; more wait for their turn.
const AT_ONCE: usize = 64;

/// What `[keystone_authtoken]` asks for, checked.
#[derive(Debug, Clone)]
pub struct ValidationOptions {
    credentials: Credentials,
    keystone: Endpoint,
    retries: u32,
    with_catalog: bool,
    /// Where clients are sent for a token.
    pub www_authenticate_uri: String,
    /// What an operator should know about these options, a sentence each.
    pub remarks: Vec<String>,
}

impl ValidationOptions {
    /// Reads the section.
    ///
    /// # Errors
    /// [`ServiceError::Options`] names the option that is missing or cannot be used.
    pub fn new(settings: &Settings) -> Result<Self, ServiceError> {
        let section = &settings.keystone_authtoken;
        let credentials = Credentials::of_validation(settings)?;
        if !section.memcached_servers.is_empty()
            && section.memcache_security_strategy != CacheProtection::None
            && section.memcache_secret_key.is_none()
        {
            return Err(ServiceError::Options(
                "[keystone_authtoken] memcache_secret_key is not set, but memcache_security_strategy is"
                    .to_owned(),
            ));
        }
        Ok(Self {
            keystone: Endpoint::new(
                "Keystone",
                &["identity"],
                "keystone_authtoken",
                &section.interface,
                section.region_name.clone(),
            )
            .at(Root::Version("v3")),
            retries: section.http_request_max_retries,
            with_catalog: section.include_service_catalog,
            www_authenticate_uri: section
                .www_authenticate_uri
                .clone()
                .unwrap_or_else(|| credentials.keystone.clone()),
            remarks: remarks(settings),
            credentials,
        })
    }
}

/// What would surprise somebody who knows these options from Keystone's middleware.
fn remarks(settings: &Settings) -> Vec<String> {
    let section = &settings.keystone_authtoken;
    let has_memcached = !section.memcached_servers.is_empty();
    [
        (
            section.www_authenticate_uri.is_none(),
            "www_authenticate_uri is not set: clients are sent to auth_url for a token, which they may not reach",
        ),
        (
            section.delay_auth_decision,
            "delay_auth_decision is not supported: a request without a valid token is always answered with 401",
        ),
        (
            !section.service_token_roles_required,
            "service_token_roles_required = false: any valid token is taken for a service token",
        ),
        (
            section.token_cache_time == 0,
            "token_cache_time = 0: a revoked token is accepted until it ends; write the seconds for which a token may \
             be remembered",
        ),
        (
            has_memcached && section.memcache_secret_key.is_none(),
            "memcached_servers is not used without memcache_secret_key, since whoever reaches memcached could make \
             himself an administrator: each process remembers tokens for itself",
        ),
        (
            has_memcached && (section.memcache_tls_enabled || section.memcache_sasl_enabled),
            "memcached_servers is not used, because memcache_tls_enabled and memcache_sasl_enabled are not supported: \
             each process remembers tokens for itself",
        ),
        (
            !section.include_service_catalog,
            "include_service_catalog = false: drivers and look-ups in other services do not find them",
        ),
    ]
    .into_iter()
    .filter(|(applies, _)| *applies)
    .map(|(_, text)| format!("[keystone_authtoken] {text}"))
    .collect()
}

/// Keystone, asked about tokens by the service user of `[keystone_authtoken]`.
pub struct Keystone {
    session: Session,
    endpoint: Endpoint,
    retries: u32,
    with_catalog: bool,
    within: Duration,
    turns: Semaphore,
}

impl Keystone {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// A file of certificates cannot be read.
    pub fn new(options: &ValidationOptions) -> Result<Self, ServiceError> {
        Ok(Self {
            session: Session::new(options.credentials.clone())?,
            endpoint: options.keystone.clone(),
            retries: options.retries,
            with_catalog: options.with_catalog,
            within: options.credentials.timeout * 2,
            turns: Semaphore::new(AT_ONCE),
        })
    }

    /// Within which time [`Keystone::validate`] ends.
    pub const fn within(&self) -> Duration {
        self.within
    }

    /// Logs the service user in where that was not done yet, and says as whom and where.
    ///
    /// # Errors
    /// Keystone is away, broken, or does not let the service user in.
    pub async fn identity(&self) -> Result<String, ServiceError> {
        self.session.identity().await
    }

    /// Asks Keystone now, and says the same as [`Keystone::identity`].
    ///
    /// # Errors
    /// Keystone is away, broken, or does not let the service user in.
    pub async fn reach(&self) -> Result<String, ServiceError> {
        self.session.reach().await
    }

    /// The token's document as Keystone's text, `{"token": …}`; `None` when the token is not valid. With
    /// `expired_too` one that was valid until it expired is, too, for as long as Keystone remembers it.
    ///
    /// # Errors
    /// Keystone is away, broken, or does not let the service user ask.
    pub async fn validate(&self, token: &Secret, expired_too: bool) -> Result<Option<String>, ServiceError> {
        let repeated = async {
            // Nobody closes it.
            let _turn = self.turns.acquire().await;
            let mut failures = 0;
            loop {
                match self.ask(token, expired_too).await {
                    Err(ServiceError::Unavailable { .. }) if failures < self.retries => {
                        failures += 1;
                        tokio::time::sleep(RETRY.delay_after(failures)).await;
                    }
                    answer => return answer,
                }
            }
        };
        tokio::time::timeout(self.within, repeated)
            .await
            .unwrap_or_else(|_| {
                Err(ServiceError::Unavailable {
                    service: "Keystone",
                    reason: format!("no answer within {:?}, retries included", self.within),
                })
            })
    }

    async fn ask(&self, token: &Secret, expired_too: bool) -> Result<Option<String>, ServiceError> {
        let mut query = Vec::new();
        if !self.with_catalog {
            query.push(("nocatalog", ""));
        }
        if expired_too {
            query.push(("allow_expired", "1"));
        }
        let headers = [
            ("X-Subject-Token", token.expose()),
            // Without it Keystone refuses application credentials with access rules; who says it must check them.
            ("OpenStack-Identity-Access-Rules", "1"),
        ];
        let request = ServiceRequest {
            headers: &headers,
            has_secret: true,
            ..ServiceRequest::get(&self.endpoint, PATH, &query)
        };
        match self.session.request(&request).await {
            Ok(reply) => reply.text().map(Some),
            Err(ServiceError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

const RETRY: RetryPolicy = RetryPolicy {
    initial: Duration::from_millis(200),
    max_interval: Duration::from_secs(2),
    multiplier: 2.0,
    jitter: 0.3,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let mut settings = Settings::default();
        let section = &mut settings.keystone_authtoken;
        section.auth_url = Some("http://k:5000".into());
        section.www_authenticate_uri = Some("http://public:5000".into());
        section.username = Some("magnum".into());
        section.password = Some(Secret::new("p"));
        section.project_name = Some("service".into());
        settings
    }

    #[test]
    fn ordinary_options_need_no_remark() {
        let options = ValidationOptions::new(&settings()).unwrap();
        assert_eq!(options.www_authenticate_uri, "http://public:5000");
        assert_eq!(options.remarks, Vec::<String>::new());
    }

    #[test]
    fn unsupported_options_are_warned_about() {
        let mut settings = settings();
        let section = &mut settings.keystone_authtoken;
        section.www_authenticate_uri = None;
        section.delay_auth_decision = true;
        section.service_token_roles_required = false;
        section.token_cache_time = 0;
        section.memcached_servers = vec!["m:11211".into()];
        section.memcache_tls_enabled = true;
        section.include_service_catalog = false;
        let options = ValidationOptions::new(&settings).unwrap();
        assert_eq!(options.www_authenticate_uri, "http://k:5000/v3");
        assert_eq!(options.remarks.len(), 7, "{:#?}", options.remarks);
        settings.keystone_authtoken.memcache_security_strategy = CacheProtection::Encrypt;
        let told = ValidationOptions::new(&settings).unwrap_err().to_string();
        assert!(told.contains("memcache_secret_key"), "{told}");
    }
}
