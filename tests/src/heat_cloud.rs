//! Everything that a Heat driver asks when it makes a cluster, for real but the machines: Keystone with a domain for
//! trustees, Glance, Nova, Neutron and Cinder for what clusters name, and Heat.
//!
//! It is the cloud of a Magnum that has such a driver, whichever Magnum that is: [`HeatCloud::options`] are the same for
//! Python's and for ours.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::cloud_services::{CloudServices, REGION};
use crate::etcd_discovery;
use crate::heat::Heat;
use crate::keystone_people::Person;
use crate::openstack::PASSWORD;
use crate::run_dir::base;
use crate::trustee_domain::TrusteeDomain;

/// The driver that Magnum 22 brings.
pub const DRIVER: &str = "k8s_fedora_coreos_v1";
/// An image for it.
const IMAGE: &str = "fedora-coreos-42";
/// The key pair of everybody.
const KEY_PAIR: &str = "key";

/// The services.
#[derive(Debug)]
pub struct HeatCloud {
    /// Heat, with those who may have stacks.
    pub heat: &'static Heat,
    /// The other services.
    pub services: &'static CloudServices,
}

impl HeatCloud {
    /// The one that all tests of this process share.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<HeatCloud> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    async fn start() -> Result<Self> {
        let (heat, services) = tokio::try_join!(Heat::shared(), CloudServices::shared())?;
        services.usual().await?;
        services
            .image(IMAGE, "public", &[("os_distro", "fedora-coreos")])
            .await?;
        Ok(Self { heat, services })
    }

    /// Options of a Magnum whose API listens at `port`. The machines of its clusters would ask it for their
    /// certificates, so the catalog lists it, in a region of its own.
    pub async fn options(&self, port: u16) -> Result<Vec<(&'static str, &'static str, String)>> {
        self.heat.people.service("container-infra", "magnum").await?;
        let url = format!("http://127.0.0.1:{port}/v1");
        let openstack = self.heat.openstack;
        let region = openstack.region_of("container-infra", "public", &url).await?;
        let trustees = &self.heat.trustees;
        let mut options = self.services.options();
        options.extend([
            ("keystone_auth", "auth_url", openstack.keystone_url()),
            ("keystone_auth", "auth_type", "password".to_owned()),
            ("keystone_auth", "username", "magnum".to_owned()),
            ("keystone_auth", "password", PASSWORD.to_owned()),
            ("keystone_auth", "project_name", "service".to_owned()),
            ("keystone_auth", "user_domain_name", "Default".to_owned()),
            ("keystone_auth", "project_domain_name", "Default".to_owned()),
            ("trust", "trustee_domain_name", trustees.name.clone()),
            ("trust", "trustee_domain_admin_name", trustees.admin.clone()),
            ("trust", "trustee_domain_admin_password", PASSWORD.to_owned()),
            ("trust", "trustee_keystone_region_name", REGION.to_owned()),
            // Without it the machines of a cluster could not log in for their certificates.
            ("trust", "cluster_user_trust", "true".to_owned()),
            ("magnum_client", "region_name", region),
            ("heat_client", "region_name", REGION.to_owned()),
            ("octavia_client", "region_name", REGION.to_owned()),
            ("barbican_client", "region_name", REGION.to_owned()),
            (
                "cluster",
                "etcd_discovery_service_endpoint_format",
                etcd_discovery::endpoint_format().await?,
            ),
        ]);
        Ok(options)
    }

    /// Where clusters have their users.
    pub fn trustee_domain(&self) -> TrusteeDomain {
        TrusteeDomain::of(&self.heat.people, self.heat.trustees.clone())
    }

    /// Somebody new who may have clusters, with a key pair.
    pub async fn person(&self) -> Result<Person> {
        let person = self.heat.person().await?;
        self.services.key_pair(&person, KEY_PAIR).await?;
        Ok(person)
    }
}

/// The virtual environment of an operator of [`DRIVER`], which has Magnum 22's library.
pub fn environment() -> Result<PathBuf> {
    let folder = base().join("heat-driver");
    ensure!(
        folder.exists(),
        "{} is missing: tests/run makes it",
        folder.display()
    );
    Ok(folder)
}

/// A request for a template of [`DRIVER`]'s.
pub fn template(name: &str) -> Value {
    json!({
        "name": name, "image_id": IMAGE, "coe": "kubernetes", "external_network_id": "public", "keypair_id": KEY_PAIR,
        "flavor_id": "m1.small", "master_flavor_id": "m1.medium"
    })
}
