//! `[keystone_auth]`, `[keystone_authtoken]` and the client sections: access to other OpenStack services.

use std::path::PathBuf;
use std::time::Duration;

use crate::schema::section;
use crate::value::keywords;
use magnum_common::secret::Secret;

keywords! {
    /// Protection of entries in memcached.
    CacheProtection {
        /// None asked for; entries are encrypted all the same.
        None = "None",
        /// Authentication.
        Mac = "MAC",
        /// Encryption and authentication.
        Encrypt = "ENCRYPT",
    }
}

section! {
    /// Credentials of the service user, with which the conductor accesses other services.
    KeystoneAuthSection "keystone_auth" {
        /// Authentication method; only `password` is supported.
        auth_type: Option<String> as Opt<Text> = None, was [("keystone_auth", "auth_plugin")];
        /// Keystone's URL, with or without /v3. Default: `[keystone_authtoken] www_authenticate_uri`.
        auth_url: Option<String> as Opt<HttpUrl> = None;
        /// User name.
        username: Option<String> as Opt<Text> = None, was [("keystone_auth", "user_name")];
        /// User id, instead of the name.
        user_id: Option<String> as Opt<Text> = None;
        /// Domain name of the user.
        user_domain_name: Option<String> as Opt<Text> = None;
        /// Domain id of the user.
        user_domain_id: Option<String> as Opt<Text> = None;
        /// Password.
        password: Option<Secret> as Opt<Password> = None;
        /// Project name.
        project_name: Option<String> as Opt<Text> = None, was [("keystone_auth", "tenant_name")];
        /// Project id, instead of the name.
        project_id: Option<String> as Opt<Text> = None, was [("keystone_auth", "tenant_id")];
        /// Domain name of the project.
        project_domain_name: Option<String> as Opt<Text> = None;
        /// Domain id of the project.
        project_domain_id: Option<String> as Opt<Text> = None;
        /// Domain id of user and project if they have none of their own.
        default_domain_id: Option<String> as Opt<Text> = None;
        /// Domain name of user and project if they have none of their own.
        default_domain_name: Option<String> as Opt<Text> = None;
        /// Section to read these options from instead, such as keystone_authtoken.
        auth_section: Option<String> as Opt<Text> = None;
        /// CA bundle in PEM to verify Keystone and the services with. Default: the system's.
        cafile: Option<PathBuf> as Opt<Path> = None;
        /// Client certificate in PEM.
        certfile: Option<PathBuf> as Opt<Path> = None;
        /// Private key of the client certificate in PEM.
        keyfile: Option<PathBuf> as Opt<Path> = None;
        /// Disable verification of the certificates of Keystone and the services.
        insecure: bool as Bool = false;
        /// Time limit of a request to Keystone or a service, in seconds. Unset: 60.
        timeout: Option<Duration> as Opt<SecondsMinMillis<1000>> = None;
    }
}

section! {
    /// Validation of Keystone tokens by the API. Its user is also the service user if `[keystone_auth]` has none. Options
    /// of Keystone's middleware that are not listed have no effect.
    KeystoneAuthtokenSection "keystone_authtoken" {
        /// Public URL of Keystone, for clients and for drivers.
        www_authenticate_uri: Option<String> as Opt<HttpUrl> = None, was [("keystone_authtoken", "auth_uri")];
        /// Authentication method; only `password` is supported.
        auth_type: Option<String> as Opt<Text> = None, was [("keystone_authtoken", "auth_plugin")];
        /// Keystone's URL, with or without /v3.
        auth_url: Option<String> as Opt<HttpUrl> = None;
        /// User name.
        username: Option<String> as Opt<Text> = None, was [("keystone_authtoken", "user_name")];
        /// User id, instead of the name.
        user_id: Option<String> as Opt<Text> = None;
        /// Domain name of the user.
        user_domain_name: Option<String> as Opt<Text> = None;
        /// Domain id of the user.
        user_domain_id: Option<String> as Opt<Text> = None;
        /// Password.
        password: Option<Secret> as Opt<Password> = None;
        /// Project name.
        project_name: Option<String> as Opt<Text> = None, was [("keystone_authtoken", "tenant_name")];
        /// Project id, instead of the name.
        project_id: Option<String> as Opt<Text> = None, was [("keystone_authtoken", "tenant_id")];
        /// Domain name of the project.
        project_domain_name: Option<String> as Opt<Text> = None;
        /// Domain id of the project.
        project_domain_id: Option<String> as Opt<Text> = None;
        /// Domain id of user and project if they have none of their own.
        default_domain_id: Option<String> as Opt<Text> = None;
        /// Domain name of user and project if they have none of their own.
        default_domain_name: Option<String> as Opt<Text> = None;
        /// Section to read these options from instead, such as keystone_authtoken.
        auth_section: Option<String> as Opt<Text> = None;
        /// CA bundle in PEM to verify Keystone and the services with. Default: the system's.
        cafile: Option<PathBuf> as Opt<Path> = None;
        /// Client certificate in PEM.
        certfile: Option<PathBuf> as Opt<Path> = None;
        /// Private key of the client certificate in PEM.
        keyfile: Option<PathBuf> as Opt<Path> = None;
        /// Disable verification of the certificates of Keystone and the services.
        insecure: bool as Bool = false;
        /// Interface of Keystone's endpoint in the catalog: public, internal or admin.
        interface: String as Text = "internal".to_owned();
        /// Region of Keystone's endpoint in the catalog. Default: the first.
        region_name: Option<String> as Opt<Text> = None;
        /// Time limit of a request to Keystone, in seconds. Unset: 10.
        http_connect_timeout: Option<Duration> as Opt<SecondsMinMillis<100>> = None;
        /// Maximum number of retries while Keystone is unreachable or fails. After them the client gets 503.
        http_request_max_retries: u32 as Int<0, 100> = 3;
        /// Time that a validated token is cached, in seconds; a revoked token is accepted as long. 0: until the token
        /// expires. Negative: no cache.
        token_cache_time: i64 as Int = 300;
        /// memcached servers, host:port, that cache validated tokens for all API processes. Requires
        /// memcache_secret_key.
        memcached_servers: Vec<String> as List<Text> = Vec::new(), was [("keystone_authtoken", "memcache_servers")];
        /// No effect: entries are always encrypted and authenticated with memcache_secret_key.
        memcache_security_strategy: CacheProtection as Choice = CacheProtection::None;
        /// Secret, the same for all API processes, from which the encryption keys of entries are derived.
        memcache_secret_key: Option<Secret> as Opt<Password> = None;
        /// Not supported: if true, memcached is not used.
        memcache_tls_enabled: bool as Bool = false;
        /// Not supported: if true, memcached is not used.
        memcache_sasl_enabled: bool as Bool = false;
        /// Time for which a failed memcached server is not used, in seconds.
        memcache_pool_dead_retry: Duration as Seconds = Duration::from_secs(300);
        /// Maximum number of pooled connections per memcached server.
        memcache_pool_maxsize: usize as Int<1, 1000> = 10;
        /// Time limit of a request to memcached, in seconds.
        memcache_pool_socket_timeout: Duration as SecondsMinMillis<10> = Duration::from_secs(3);
        /// Fetch the service catalog with each token. Look-ups in other services need it.
        include_service_catalog: bool as Bool = true;
        /// Not supported: requests without a valid token always get 401.
        delay_auth_decision: bool as Bool = false;
        /// Check of token binding: disabled, permissive, strict, required or the name of a bind method. Unless
        /// disabled, tokens bound to Kerberos are refused.
        enforce_token_bind: String as Text = "permissive".to_owned();
        /// Roles of which a service token needs one for an expired user token to be accepted with it.
        service_token_roles: Vec<String> as List<Text> = vec!["service".to_owned()];
        /// Refuse service tokens without any of these roles.
        service_token_roles_required: bool as Bool = true;
        /// Type of this service in the catalog, such as container-infra. Unset: application credentials with access
        /// rules are refused.
        service_type: Option<String> as Opt<Text> = None;
    }
}

/// A section with the two options that select a service's endpoint in the catalog.
macro_rules! client_section {
    ($section:ident $name:literal $about:literal) => {
        section! {
            #[doc = $about]
            $section $name {
                /// Region of the endpoint. Default: the first.
                region_name: Option<String> as Opt<Text> = None;
                /// Interface of the endpoint: publicURL, internalURL or adminURL.
                endpoint_type: String as Text = "publicURL".to_owned();
            }
        }
    };
}
client_section! { BarbicanClientSection "barbican_client" "Endpoint of Barbican in the service catalog." }
client_section! { GlanceClientSection "glance_client" "Endpoint of Glance in the caller's service catalog." }
client_section! { NovaClientSection "nova_client" "Endpoint of Nova in the caller's service catalog." }
client_section! { NeutronClientSection "neutron_client" "Endpoint of Neutron in the caller's service catalog." }
client_section! { CinderClientSection "cinder_client" "Endpoint of Cinder in the caller's service catalog." }
