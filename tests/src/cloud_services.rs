//! The real Glance, Nova, Neutron and Cinder, from PyPI, on SQLite, beside the real Keystone: one process each, shared by
//! all tests of a run, started when a test first asks for them. What Magnum looks up can be made in them; no machine,
//! network or volume comes of it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::keystone_people::{People, Person, id};
use crate::openstack::{OpenStack, PASSWORD, Session, client_of_all_tests};
use crate::oslo_peer::python;
use crate::ports::free_port;
use crate::process::little_environment;
use crate::rest::IMAGE;
use crate::run_dir::{base, run_dir};
use crate::server::ServerProcess;

/// Where the catalog has them.
pub const REGION: &str = "RegionOne";
/// They make their databases first, on a machine with other work.
const START_WITHIN: Duration = Duration::from_secs(300);

/// A service: the program's name, its type in the catalog, and the path of its API, as deployments list them: with and
/// without a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Service {
    Glance,
    Nova,
    Neutron,
    Cinder,
}

impl Service {
    const ALL: [Self; 4] = [Self::Glance, Self::Nova, Self::Neutron, Self::Cinder];

    const fn name(self) -> &'static str {
        match self {
            Self::Glance => "glance",
            Self::Nova => "nova",
            Self::Neutron => "neutron",
            Self::Cinder => "cinder",
        }
    }

    /// Its type in the catalog.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Glance => "image",
            Self::Nova => "compute",
            Self::Neutron => "network",
            Self::Cinder => "block-storage",
        }
    }

    /// What the catalog has behind the port.
    pub const fn listed(self) -> &'static str {
        match self {
            Self::Glance | Self::Neutron => "",
            Self::Nova => "/v2.1",
            Self::Cinder => "/v3",
        }
    }

    const fn api(self) -> &'static str {
        match self {
            Self::Glance => "/v2",
            Self::Neutron => "/v2.0",
            Self::Nova | Self::Cinder => self.listed(),
        }
    }
}

/// All four.
#[derive(Debug)]
pub struct CloudServices {
    /// Keystone.
    pub openstack: &'static OpenStack,
    /// Those who use them.
    pub people: People,
    ports: [u16; 4],
    _processes: Vec<ServerProcess>,
}

impl CloudServices {
    /// The services that all tests of this process share; never stopped.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<CloudServices> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    async fn start() -> Result<Self> {
        let openstack = OpenStack::shared().await?;
        let people = People::of(openstack).await?;
        let folder = run_dir()?.folder("cloud")?;
        let mut ports = [0; 4];
        let mut processes = Vec::new();
        // At once: most of their start is importing.
        for (service, port) in Service::ALL.into_iter().zip(&mut ports) {
            *port = free_port()?;
            let url = format!("http://127.0.0.1:{port}{}", service.listed());
            people
                .acting_service(service.name(), service.kind(), REGION, &url)
                .await?;
            let mut command = Command::new(python()?);
            little_environment(&mut command)
                .arg(script())
                .arg(service.name())
                .arg(&folder);
            command.args([port.to_string(), openstack.keystone_address().port().to_string()]);
            processes.push(ServerProcess::spawn(service.name(), command, Signal::SIGKILL)?);
        }
        let client = client_of_all_tests()?;
        for (process, port) in processes.iter_mut().zip(ports) {
            let url = format!("http://127.0.0.1:{port}/");
            let client = client.clone();
            process
                .wait_ready(START_WITHIN, async || {
                    client.get(&url).send().await?;
                    Ok(())
                })
                .await?;
        }
        Ok(Self {
            openstack,
            people,
            ports,
            _processes: processes,
        })
    }

    /// Options of a `magnum-api` that asks Keystone who its clients are, and all five what requests name.
    pub fn options(&self) -> Vec<(&'static str, &'static str, String)> {
        let url = self.openstack.keystone_url();
        let mut options = vec![("api", "auth_strategy", "keystone".to_owned())];
        options.extend(
            [
                ("www_authenticate_uri", url.as_str()),
                ("auth_url", &url),
                ("auth_type", "password"),
                ("username", "magnum"),
                ("password", PASSWORD),
                ("project_name", "service"),
                ("user_domain_name", "Default"),
                ("project_domain_name", "Default"),
                ("region_name", REGION),
            ]
            .map(|(option, value)| ("keystone_authtoken", option, value.to_owned())),
        );
        // Other tests have lines of their own in the catalog, in other regions.
        options.extend(
            ["glance_client", "nova_client", "neutron_client", "cinder_client"]
                .map(|section| (section, "region_name", REGION.to_owned())),
        );
        options
    }

    /// Where a service listens.
    pub fn address(&self, service: Service) -> SocketAddr {
        let at = Service::ALL
            .iter()
            .position(|one| *one == service)
            .unwrap_or_default();
        (Ipv4Addr::LOCALHOST, self.ports[at]).into()
    }

    /// Asks a service as the cloud's administrator.
    pub async fn administrate(&self, service: Service, path: &str, body: Value) -> Result<Value> {
        let admin = self.openstack.log_in("admin", "admin").await?;
        self.post(&admin, service, path, body).await
    }

    /// Asks a service as somebody.
    pub async fn ask_as(&self, person: &Person, service: Service, path: &str, body: Value) -> Result<Value> {
        let session = self.openstack.log_in(&person.name, &person.project).await?;
        self.post(&session, service, path, body).await
    }

    async fn post(&self, session: &Session, service: Service, path: &str, body: Value) -> Result<Value> {
        let url = format!("http://{}{}{path}", self.address(service), service.api());
        session.ask(Method::POST, url, body).await
    }

    /// A new image; its id. `visibility` is `public` or `private`; private ones are the administrator's.
    pub async fn image(&self, name: &str, visibility: &str, properties: &[(&str, &str)]) -> Result<String> {
        let mut image = json!({
            "name": name, "visibility": visibility, "disk_format": "raw", "container_format": "bare"});
        for (name, value) in properties {
            image[*name] = json!(value);
        }
        id(&self.administrate(Service::Glance, "/images", image).await?)
    }

    /// A new flavor; its id.
    pub async fn flavor(&self, name: &str, disk: u32) -> Result<String> {
        let flavor = json!({"flavor": {"name": name, "vcpus": 1, "ram": 512, "disk": disk}});
        id(&self.administrate(Service::Nova, "/flavors", flavor).await?["flavor"])
    }

    /// A new network of somebody's project; its id.
    pub async fn network(&self, owner: &Person, name: &str) -> Result<String> {
        let network = json!({"network": {"name": name}});
        id(&self.ask_as(owner, Service::Neutron, "/networks", network).await?["network"])
    }

    /// A new external network; its id.
    pub async fn external_network(&self, name: &str) -> Result<String> {
        let network = json!({"network": {
            "name": name, "router:external": true, "provider:network_type": "flat", "provider:physical_network": name}});
        id(&self.administrate(Service::Neutron, "/networks", network).await?["network"])
    }

    /// A new subnet of a network; its id.
    pub async fn subnet(&self, owner: &Person, network: &str, name: &str) -> Result<String> {
        let subnet =
            json!({"subnet": {"name": name, "network_id": network, "ip_version": 4, "cidr": "10.0.0.0/24"}});
        id(&self.ask_as(owner, Service::Neutron, "/subnets", subnet).await?["subnet"])
    }

    /// A new key pair of somebody's.
    pub async fn key_pair(&self, owner: &Person, name: &str) -> Result<()> {
        // A well-formed key; nobody holds its private half.
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl nobody";
        let pair = json!({"keypair": {"name": name, "public_key": key}});
        self.ask_as(owner, Service::Nova, "/os-keypairs", pair).await?;
        Ok(())
    }

    /// What commands of people name, made once for all tests of this process: an image, flavors, an external network
    /// `public`, and a key pair `key` of each of the users that the testbed makes.
    pub async fn usual(&self) -> Result<()> {
        static MADE: OnceCell<()> = OnceCell::const_new();
        let make = async || {
            self.image(IMAGE, "public", &[("magnum_distro", "ubuntu")])
                .await?;
            for flavor in ["m1.small", "m1.medium", "m1.large"] {
                self.flavor(flavor, 20).await?;
            }
            self.external_network("public").await?;
            for (name, project) in [
                ("anna", "north"),
                ("carol", "north"),
                ("chief", "north"),
                ("bert", "south"),
            ] {
                let person = Person {
                    name: name.to_owned(),
                    id: String::new(),
                    project: project.to_owned(),
                    project_id: String::new(),
                };
                self.key_pair(&person, "key").await?;
            }
            Ok(())
        };
        MADE.get_or_try_init(make).await.copied()
    }

    /// A new volume type; its id.
    pub async fn volume_type(&self, name: &str) -> Result<String> {
        let kind = json!({"volume_type": {"name": name}});
        id(&self.administrate(Service::Cinder, "/types", kind).await?["volume_type"])
    }
}

fn script() -> PathBuf {
    base().with_file_name("testbed").join("cloud.py")
}
