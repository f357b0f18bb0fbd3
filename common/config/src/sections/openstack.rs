//! `[keystone_auth]`, `[keystone_authtoken]` and the client sections: how other OpenStack services are reached.

use std::path::PathBuf;
use std::time::Duration;

use crate::schema::section;
use crate::value::keywords;
use magnum_common::secret::Secret;

keywords! {
    /// How entries in memcached are protected.
    CacheProtection {
        /// Not at all; what memcache_secret_key allows, where there is one.
        None = "None",
        /// So that nobody can change them.
        Mac = "MAC",
        /// So that nobody can read or change them.
        Encrypt = "ENCRYPT",
    }
}

section! {
    /// The service user, as which the conductor asks other services.
    KeystoneAuthSection "keystone_auth" {
        /// Kind of credentials; `password` is the one that works here.
        auth_type: Option<String> as Opt<Text> = None, was [("keystone_auth", "auth_plugin")];
        /// Keystone, with or without /v3. By default www_authenticate_uri of keystone_authtoken.
        auth_url: Option<String> as Opt<HttpUrl> = None;
        /// Name of the user.
        username: Option<String> as Opt<Text> = None, was [("keystone_auth", "user_name")];
        /// Id of the user, instead of its name.
        user_id: Option<String> as Opt<Text> = None;
        /// Name of the user's domain.
        user_domain_name: Option<String> as Opt<Text> = None;
        /// Id of the user's domain.
        user_domain_id: Option<String> as Opt<Text> = None;
        /// The user's password.
        password: Option<Secret> as Opt<Password> = None;
        /// Name of the project.
        project_name: Option<String> as Opt<Text> = None, was [("keystone_auth", "tenant_name")];
        /// Id of the project, instead of its name.
        project_id: Option<String> as Opt<Text> = None, was [("keystone_auth", "tenant_id")];
        /// Name of the project's domain.
        project_domain_name: Option<String> as Opt<Text> = None;
        /// Id of the project's domain.
        project_domain_id: Option<String> as Opt<Text> = None;
        /// Id of the domain of user and project where none is given.
        default_domain_id: Option<String> as Opt<Text> = None;
        /// Name of the domain of user and project where none is given.
        default_domain_name: Option<String> as Opt<Text> = None;
        /// Section that has these options instead, such as keystone_authtoken.
        auth_section: Option<String> as Opt<Text> = None;
        /// CA bundle for Keystone and the services; by default the system's.
        cafile: Option<PathBuf> as Opt<Path> = None;
        /// Client certificate, in PEM.
        certfile: Option<PathBuf> as Opt<Path> = None;
        /// Its key, in PEM.
        keyfile: Option<PathBuf> as Opt<Path> = None;
        /// Whether certificates of Keystone and the services are not checked.
        insecure: bool as Bool = false;
        /// Seconds that a request to Keystone or a service may take; 60 where nothing is set.
        timeout: Option<Duration> as Opt<Seconds<1000>> = None;
    }
}

section! {
    /// Token validation by the API. Its user is also the service user where keystone_auth names none. Options of Keystone's middleware that are not listed have no effect here.
    KeystoneAuthtokenSection "keystone_authtoken" {
        /// Keystone as clients reach it; also what drivers get as the authentication URL.
        www_authenticate_uri: Option<String> as Opt<HttpUrl> = None, was [("keystone_authtoken", "auth_uri")];
        /// Kind of credentials; `password` is the one that works here.
        auth_type: Option<String> as Opt<Text> = None, was [("keystone_authtoken", "auth_plugin")];
        /// Keystone, with or without /v3.
        auth_url: Option<String> as Opt<HttpUrl> = None;
        /// Name of the user.
        username: Option<String> as Opt<Text> = None, was [("keystone_authtoken", "user_name")];
        /// Id of the user, instead of its name.
        user_id: Option<String> as Opt<Text> = None;
        /// Name of the user's domain.
        user_domain_name: Option<String> as Opt<Text> = None;
        /// Id of the user's domain.
        user_domain_id: Option<String> as Opt<Text> = None;
        /// The user's password.
        password: Option<Secret> as Opt<Password> = None;
        /// Name of the project.
        project_name: Option<String> as Opt<Text> = None, was [("keystone_authtoken", "tenant_name")];
        /// Id of the project, instead of its name.
        project_id: Option<String> as Opt<Text> = None, was [("keystone_authtoken", "tenant_id")];
        /// Name of the project's domain.
        project_domain_name: Option<String> as Opt<Text> = None;
        /// Id of the project's domain.
        project_domain_id: Option<String> as Opt<Text> = None;
        /// Id of the domain of user and project where none is given.
        default_domain_id: Option<String> as Opt<Text> = None;
        /// Name of the domain of user and project where none is given.
        default_domain_name: Option<String> as Opt<Text> = None;
        /// Section that has these options instead, such as keystone_authtoken.
        auth_section: Option<String> as Opt<Text> = None;
        /// CA bundle for Keystone and the services; by default the system's.
        cafile: Option<PathBuf> as Opt<Path> = None;
        /// Client certificate, in PEM.
        certfile: Option<PathBuf> as Opt<Path> = None;
        /// Its key, in PEM.
        keyfile: Option<PathBuf> as Opt<Path> = None;
        /// Whether certificates of Keystone and the services are not checked.
        insecure: bool as Bool = false;
        /// Interface under which Keystone is found in the catalog: public, internal or admin.
        interface: String as Text = "internal".to_owned();
        /// Region of Keystone in the catalog; by default the first one.
        region_name: Option<String> as Opt<Text> = None;
        /// Seconds that a request to Keystone may take; 10 where nothing is set.
        http_connect_timeout: Option<Duration> as Opt<Seconds<100>> = None;
        /// How often a request is repeated when Keystone is away or broken, before clients get a 503.
        http_request_max_retries: u32 as Int<0, 100> = 3;
        /// Seconds for which a token counts as valid without asking Keystone again; revoking one takes as long. 0: until the token ends. Negative: every request asks.
        token_cache_time: i64 as Int = 300;
        /// host:port of memcached servers that keep validated tokens for all API processes; needs memcache_secret_key.
        memcached_servers: Vec<String> as List<Text> = Vec::new(), was [("keystone_authtoken", "memcache_servers")];
        /// Any value works alike: entries are always encrypted and authenticated, with memcache_secret_key.
        memcache_security_strategy: CacheProtection as Choice = CacheProtection::None;
        /// Secret of all API processes, from which the keys of the entries are derived.
        memcache_secret_key: Option<Secret> as Opt<Password> = None;
        /// Not supported: memcached is left alone when this is set.
        memcache_tls_enabled: bool as Bool = false;
        /// Not supported: memcached is left alone when this is set.
        memcache_sasl_enabled: bool as Bool = false;
        /// Seconds for which a memcached that failed is not asked again.
        memcache_pool_dead_retry: Duration as Seconds = Duration::from_secs(300);
        /// Largest number of connections kept to each memcached.
        memcache_pool_maxsize: usize as Int<1, 1000> = 10;
        /// Seconds that an exchange with memcached may take.
        memcache_pool_socket_timeout: Duration as Seconds<10> = Duration::from_secs(3);
        /// Whether tokens are validated together with their service catalog, which look-ups in other services need.
        include_service_catalog: bool as Bool = true;
        /// Not supported: a request without a valid token is always answered with 401.
        delay_auth_decision: bool as Bool = false;
        /// Tokens bound to a kind of log-in: disabled, permissive, strict, required or the kind's name. Bound to Kerberos they are refused unless disabled.
        enforce_token_bind: String as Text = "permissive".to_owned();
        /// Roles of which a service token needs one, so that an expired token of a user is accepted with it.
        service_token_roles: Vec<String> as List<Text> = vec!["service".to_owned()];
        /// Whether a service token without any of these roles is refused.
        service_token_roles_required: bool as Bool = true;
        /// Type of this service in the catalog, such as container-infra; without it application credentials with access rules are refused.
        service_type: Option<String> as Opt<Text> = None;
    }
}

/// A section with the two options by which a service is found in the catalog.
macro_rules! client_section {
    ($section:ident $name:literal $about:literal) => {
        section! {
            #[doc = $about]
            $section $name {
                /// Region of its endpoint; by default the first one.
                region_name: Option<String> as Opt<Text> = None;
                /// Interface of its endpoint: publicURL, internalURL or adminURL.
                endpoint_type: String as Text = "publicURL".to_owned();
            }
        }
    };
}
client_section! { BarbicanClientSection "barbican_client" "How Barbican is found in the service catalog." }
client_section! { GlanceClientSection "glance_client" "How Glance is found in the caller's service catalog." }
client_section! { NovaClientSection "nova_client" "How Nova is found in the caller's service catalog." }
client_section! { NeutronClientSection "neutron_client" "How Neutron is found in the caller's service catalog." }
client_section! { CinderClientSection "cinder_client" "How Cinder is found in the caller's service catalog." }
