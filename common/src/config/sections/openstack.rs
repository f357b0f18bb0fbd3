//! `[keystone_auth]`, `[keystone_authtoken]` and the client sections: how other OpenStack services are reached.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::schema::section;
use crate::secret::Secret;

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
    /// Token validation. Its user is also the service user where keystone_auth names none. Options of Keystone's middleware that are not listed have no effect here.
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
    }
}

section! {
    /// How Barbican is found in the service catalog.
    BarbicanClientSection "barbican_client" {
        /// Region of its endpoint; by default the first one.
        region_name: Option<String> as Opt<Text> = None;
        /// Interface of its endpoint: publicURL, internalURL or adminURL.
        endpoint_type: String as Text = "publicURL".to_owned();
    }
}
