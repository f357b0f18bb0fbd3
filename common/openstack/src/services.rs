//! The services that clusters are made of, and how each is found in a catalog.

use magnum_config::Settings;

use super::{Endpoint, Root};

/// A service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Service {
    /// Identity.
    Keystone,
    /// Images.
    Glance,
    /// Compute.
    Nova,
    /// Networks.
    Neutron,
    /// Volumes.
    Cinder,
}

impl std::fmt::Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Service {
    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Keystone => "Keystone",
            Self::Glance => "Glance",
            Self::Nova => "Nova",
            Self::Neutron => "Neutron",
            Self::Cinder => "Cinder",
        }
    }
}

/// How each of them is found: by the options of its section.
#[derive(Debug, Clone)]
pub struct Endpoints {
    keystone: Endpoint,
    glance: Endpoint,
    nova: Endpoint,
    neutron: Endpoint,
    cinder: Endpoint,
}

impl Endpoints {
    /// By these settings.
    pub fn new(settings: &Settings) -> Self {
        macro_rules! endpoint {
            ($service:ident, $kinds:expr, $section:ident, $root:expr) => {
                Endpoint::new(
                    Service::$service.name(),
                    $kinds,
                    stringify!($section),
                    &settings.$section.endpoint_type,
                    settings.$section.region_name.clone(),
                )
                .at($root)
            };
        }
        Self {
            // Found as the validation of tokens finds it.
            keystone: Endpoint::new(
                Service::Keystone.name(),
                &["identity"],
                "keystone_authtoken",
                &settings.keystone_authtoken.interface,
                settings.keystone_authtoken.region_name.clone(),
            )
            .at(Root::Version("v3")),
            glance: endpoint!(Glance, &["image"], glance_client, Root::Version("v2")),
            nova: endpoint!(Nova, &["compute"], nova_client, Root::VersionUnlessListed("v2.1")),
            neutron: endpoint!(Neutron, &["network"], neutron_client, Root::Version("v2.0")),
            cinder: endpoint!(
                Cinder,
                &["block-storage", "volumev3", "block-store"],
                cinder_client,
                // A version without the project behind it is understood since Cinder 20 (Yoga).
                Root::VersionUnlessListed("v3")
            ),
        }
    }

    /// How to find this one.
    pub fn of(&self, service: Service) -> &Endpoint {
        match service {
            Service::Keystone => &self.keystone,
            Service::Glance => &self.glance,
            Service::Nova => &self.nova,
            Service::Neutron => &self.neutron,
            Service::Cinder => &self.cinder,
        }
    }
}
