//! Who we are in Keystone, from the options.

use std::time::Duration;

use magnum_common::secret::Secret;
use magnum_config::Settings;
use serde_json::{Value, json};

use super::{ServiceError, Trust};

/// Longest wait for an answer where no option says otherwise.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// The same for the validation of a token, for which a client waits.
const VALIDATED_WITHIN: Duration = Duration::from_secs(10);

/// A user with a password, and how to reach Keystone.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// Keystone's v3 API, without a slash at its end.
    pub keystone: String,
    pub(super) trust: Trust,
    pub(super) timeout: Duration,
    /// The option that says so.
    pub(super) timeout_option: &'static str,
    /// For people.
    pub(super) who: &'static str,
    user: Value,
    password: Secret,
    scope: Value,
}

macro_rules! from_section {
    ($section:expr, $name:literal, $default_url:expr, $timeout:expr) => {{
        let section = $section;
        let missing = |option: &str| {
            ServiceError::Options(format!(
                "[{}] {option} is not set; the service user's credentials are needed to ask other OpenStack services",
                $name
            ))
        };
        if let Some(kind) = section.auth_type.as_deref().filter(|kind| !matches!(*kind, "password" | "v3password")) {
            return Err(ServiceError::Options(format!(
                "[{}] auth_type: {kind} is not supported; write password",
                $name
            )));
        }
        let url = section.auth_url.clone().or_else(|| $default_url.clone()).ok_or_else(|| missing("auth_url"))?;
        let domain = |id: &Option<String>, name: &Option<String>| match (
            id.as_ref().or(name.is_none().then_some(section.default_domain_id.as_ref()).flatten()),
            name.as_ref().or(section.default_domain_name.as_ref()),
        ) {
            (Some(id), _) => json!({ "id": id }),
            (None, Some(name)) => json!({ "name": name }),
            // As Keystone's own clients.
            (None, None) => json!({ "id": "default" }),
        };
        let user = match (&section.user_id, &section.username) {
            (Some(id), _) => json!({ "id": id }),
            (None, Some(name)) => {
                json!({ "name": name, "domain": domain(&section.user_domain_id, &section.user_domain_name) })
            }
            (None, None) => return Err(missing("username")),
        };
        let scope = match (&section.project_id, &section.project_name) {
            (Some(id), _) => json!({ "project": { "id": id } }),
            (None, Some(name)) => json!({ "project": {
                "name": name, "domain": domain(&section.project_domain_id, &section.project_domain_name)
            } }),
            (None, None) => return Err(missing("project_name")),
        };
        Ok(Credentials {
            keystone: v3(&url),
            trust: Trust {
                section: $name,
                cafile: section.cafile.clone(),
                certfile: section.certfile.clone(),
                keyfile: section.keyfile.clone(),
                insecure: section.insecure,
            },
            timeout: $timeout,
            timeout_option: "[keystone_auth] timeout",
            who: concat!("the service user of [", $name, "]"),
            user,
            password: section.password.clone().ok_or_else(|| missing("password"))?,
            scope,
        })
    }};
}

impl Credentials {
    /// The user of `[keystone_auth]`; of `[keystone_authtoken]` where `auth_section` says so, or where the first
    /// names no user.
    ///
    /// # Errors
    /// [`ServiceError::Options`] names the option that is missing or cannot be used.
    pub fn new(settings: &Settings) -> Result<Self, ServiceError> {
        let own = &settings.keystone_auth;
        let other = &settings.keystone_authtoken;
        let (timeout, public) = (own.timeout.unwrap_or(ANSWER_WITHIN), &other.www_authenticate_uri);
        let is_own = match own.auth_section.as_deref() {
            None => own.username.is_some() || own.user_id.is_some() || other.username.is_none(),
            Some("keystone_auth") => true,
            Some("keystone_authtoken") => false,
            Some(section) => {
                return Err(ServiceError::Options(format!(
                    "[keystone_auth] auth_section: {section} is not supported; write keystone_authtoken, or the options \
                     themselves"
                )));
            }
        };
        if is_own {
            from_section!(own, "keystone_auth", public, timeout)
        } else {
            from_section!(other, "keystone_authtoken", public, timeout)
        }
    }

    /// The user that validates tokens: that of `[keystone_authtoken]`, or of `[keystone_auth]` where `auth_section` says
    /// so.
    ///
    /// # Errors
    /// [`ServiceError::Options`] names the option that is missing or cannot be used.
    pub fn of_validation(settings: &Settings) -> Result<Self, ServiceError> {
        let own = &settings.keystone_authtoken;
        let timeout = own.http_connect_timeout.unwrap_or(VALIDATED_WITHIN);
        let public = &own.www_authenticate_uri;
        let credentials: Result<Self, ServiceError> = match own.auth_section.as_deref() {
            None | Some("keystone_authtoken") => from_section!(own, "keystone_authtoken", public, timeout),
            Some("keystone_auth") => {
                from_section!(&settings.keystone_auth, "keystone_auth", public, timeout)
            }
            Some(section) => {
                return Err(ServiceError::Options(format!(
                    "[keystone_authtoken] auth_section: {section} is not supported; write keystone_auth, or the \
                     options themselves"
                )));
            }
        };
        // Certificates and the way to Keystone are those of this section, as with Keystone's middleware.
        credentials.map(|credentials| Self {
            trust: Trust {
                section: "keystone_authtoken",
                cafile: own.cafile.clone(),
                certfile: own.certfile.clone(),
                keyfile: own.keyfile.clone(),
                insecure: own.insecure,
            },
            timeout_option: "[keystone_authtoken] http_connect_timeout",
            ..credentials
        })
    }

    /// The user of `[trust]` who administers the domain of clusters' users.
    ///
    /// # Errors
    /// [`ServiceError::Options`] names the option that is missing or cannot be used.
    pub fn of_trustee_domain_admin(settings: &Settings) -> Result<Self, ServiceError> {
        let section = &settings.trust;
        let missing = |option: &str| {
            ServiceError::Options(format!(
                "[trust] {option} is not set; it is needed to give clusters a user and a trust in Keystone"
            ))
        };
        let named = |id: &Option<String>, name: &Option<String>| match (id, name) {
            (Some(id), _) => Some(json!({ "id": id })),
            (None, Some(name)) => Some(json!({ "name": name })),
            (None, None) => None,
        };
        let domain = named(&section.trustee_domain_id, &section.trustee_domain_name)
            .ok_or_else(|| missing("trustee_domain_name"))?;
        let own = named(
            &section.trustee_domain_admin_domain_id,
            &section.trustee_domain_admin_domain_name,
        );
        let mut user = named(
            &section.trustee_domain_admin_id,
            &section.trustee_domain_admin_name,
        )
        .ok_or_else(|| missing("trustee_domain_admin_name"))?;
        if user.get("name").is_some() {
            user["domain"] = own.unwrap_or_else(|| domain.clone());
        }
        let password = section.trustee_domain_admin_password.clone();
        Ok(Self {
            user,
            who: "the administrator of the domain of [trust]",
            password: password.ok_or_else(|| missing("trustee_domain_admin_password"))?,
            scope: json!({ "domain": domain }),
            ..Self::new(settings)?
        })
    }

    /// A user with a trust, reached like this one.
    #[must_use]
    pub fn of_trustee(&self, user_id: &str, password: Secret, trust_id: &str) -> Self {
        Self {
            user: json!({ "id": user_id }),
            who: "the user of a cluster",
            password,
            scope: json!({ "OS-TRUST:trust": { "id": trust_id } }),
            ..self.clone()
        }
    }

    /// The body of a request for a token.
    pub(super) fn body(&self) -> Value {
        let mut user = self.user.clone();
        user["password"] = Value::String(self.password.expose().to_owned());
        json!({ "auth": {
            "identity": { "methods": ["password"], "password": { "user": user } },
            "scope": self.scope,
        } })
    }
}

/// Keystone's v3 API behind any of the forms that people and catalogs write.
pub(super) fn v3(url: &str) -> String {
    let url = url.trim_end_matches('/');
    let root = url
        .strip_suffix("/v3")
        .or_else(|| url.strip_suffix("/v2.0"))
        .unwrap_or(url);
    format!("{}/v3", root.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let mut settings = Settings::default();
        let auth = &mut settings.keystone_auth;
        auth.auth_url = Some("http://k:5000".into());
        auth.username = Some("magnum".into());
        auth.password = Some(Secret::new("hunter2"));
        auth.project_name = Some("service".into());
        auth.user_domain_name = Some("Default".into());
        settings
    }

    #[test]
    fn the_service_user_is_put_together_and_its_password_does_not_print() {
        let credentials = Credentials::new(&settings()).unwrap();
        assert_eq!(credentials.keystone, "http://k:5000/v3");
        assert_eq!(
            credentials.body()["auth"]["identity"]["password"]["user"],
            json!({"name": "magnum", "domain": {"name": "Default"}, "password": "hunter2"})
        );
        assert_eq!(
            credentials.body()["auth"]["scope"],
            json!({"project": {"name": "service", "domain": {"id": "default"}}})
        );
        assert!(!format!("{credentials:?}").contains("hunter2"));
    }

    #[test]
    fn the_other_section_serves_when_it_is_named_or_the_first_names_nobody() {
        let mut other = Settings::default();
        other.keystone_authtoken.www_authenticate_uri = Some("http://k:5000/v3/".into());
        other.keystone_authtoken.username = Some("m".into());
        other.keystone_authtoken.password = Some(Secret::new("p"));
        other.keystone_authtoken.project_id = Some("id".into());
        assert_eq!(Credentials::new(&other).unwrap().keystone, "http://k:5000/v3");
        other.keystone_auth = settings().keystone_auth;
        other.keystone_auth.auth_section = Some("keystone_authtoken".into());
        let scope = Credentials::new(&other).unwrap().body();
        assert_eq!(scope["auth"]["scope"], json!({"project": {"id": "id"}}));
    }

    #[test]
    fn tokens_are_validated_by_the_user_of_their_own_section_unless_it_names_the_other() {
        let mut both = settings();
        let told = Credentials::of_validation(&both).unwrap_err().to_string();
        assert!(told.contains("[keystone_authtoken] auth_url"), "{told}");
        both.keystone_authtoken.auth_section = Some("keystone_auth".into());
        let other = Credentials::of_validation(&both).unwrap();
        assert_eq!(
            other.body()["auth"]["identity"]["password"]["user"]["name"],
            "magnum"
        );
        both.keystone_authtoken.auth_section = None;
        both.keystone_authtoken.auth_url = Some("http://k:5000/v2.0".into());
        both.keystone_authtoken.user_id = Some("u".into());
        both.keystone_authtoken.password = Some(Secret::new("p"));
        both.keystone_authtoken.project_name = Some("service".into());
        let own = Credentials::of_validation(&both).unwrap();
        assert_eq!(own.keystone, "http://k:5000/v3");
        assert_eq!(own.body()["auth"]["identity"]["password"]["user"]["id"], "u");
        assert_eq!(own.timeout, Duration::from_secs(10));
    }

    #[test]
    fn missing_option_is_named() {
        let told = |change: fn(&mut Settings)| {
            let mut settings = settings();
            change(&mut settings);
            Credentials::new(&settings).unwrap_err().to_string()
        };
        assert!(told(|s| s.keystone_auth.auth_url = None).contains("[keystone_auth] auth_url"));
        assert!(told(|s| s.keystone_auth.username = None).contains("[keystone_auth] username"));
        assert!(told(|s| s.keystone_auth.password = None).contains("password"));
        assert!(told(|s| s.keystone_auth.auth_type = Some("v3oidc".into())).contains("v3oidc"));
        assert!(told(|s| s.keystone_auth.auth_section = Some("x".into())).contains("auth_section"));
    }
}
