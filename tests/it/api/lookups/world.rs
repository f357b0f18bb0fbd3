//! The API in this process, with the real services behind it, and somebody to ask as.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_api_shim::Api;
use magnum_common::secret::Secret;
use magnum_config::{AuthStrategy, DatabaseSection, Settings};
use magnum_db::{Database, migrate};
use magnum_rpc::{self as rpc, Transport};
use magnum_rpc_server::RpcServer;
use magnum_tests::TestDatabase;
use magnum_tests::cloud_services::{CloudServices, Service};
use magnum_tests::deployment::drivers;
use magnum_tests::keystone_people::Person;
use magnum_tests::openstack::PASSWORD;
use magnum_tests::rest::{Answer, Rest};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// A name that no other test uses.
pub fn unique(what: &str) -> String {
    format!("{what}-{}", uuid::Uuid::new_v4().simple())
}

/// What most templates of a test name: one of each, made for the test.
pub struct Things {
    pub image: String,
    pub image_id: String,
    pub flavor: String,
    pub flavor_id: String,
    pub external: String,
    pub external_id: String,
    pub network: String,
    pub network_id: String,
    pub subnet: String,
    pub subnet_id: String,
}

/// One API, its cloud, and a member of a project.
pub struct World {
    pub cloud: &'static CloudServices,
    pub member: Person,
    pub things: Things,
    api: Api,
    transport: Arc<dyn Transport>,
    listening: JoinHandle<()>,
    database: TestDatabase,
}

/// Settings of an API that asks the real Keystone.
pub fn settings(cloud: &CloudServices) -> Settings {
    let mut settings = Settings::default();
    settings.api.auth_strategy = AuthStrategy::Keystone;
    let section = &mut settings.keystone_authtoken;
    section.www_authenticate_uri = Some(cloud.openstack.keystone_url());
    section.auth_url = Some(cloud.openstack.keystone_url());
    section.username = Some("magnum".to_owned());
    section.password = Some(Secret::new(PASSWORD));
    section.project_name = Some("service".to_owned());
    section.user_domain_name = Some("Default".to_owned());
    section.project_domain_name = Some("Default".to_owned());
    // Other tests have lines of their own in the catalog, in other regions.
    let region = Some("RegionOne".to_owned());
    section.region_name.clone_from(&region);
    settings.glance_client.region_name.clone_from(&region);
    settings.nova_client.region_name.clone_from(&region);
    settings.neutron_client.region_name.clone_from(&region);
    settings.cinder_client.region_name = region;
    settings
}

/// Has one service be looked for behind a line, by a region of its own.
pub async fn via(
    cloud: &CloudServices,
    settings: &mut Settings,
    service: Service,
    line: SocketAddr,
) -> Result<()> {
    let url = format!("http://{line}{}", service.listed());
    let region = Some(cloud.openstack.region_of(service.kind(), "public", &url).await?);
    match service {
        Service::Glance => settings.glance_client.region_name = region,
        Service::Nova => settings.nova_client.region_name = region,
        Service::Neutron => settings.neutron_client.region_name = region,
        Service::Cinder => settings.cinder_client.region_name = region,
    }
    Ok(())
}

impl World {
    pub async fn start() -> Result<Self> {
        let cloud = CloudServices::shared().await?;
        Self::with(cloud, settings(cloud)).await
    }

    pub async fn with(cloud: &'static CloudServices, mut settings: Settings) -> Result<Self> {
        let database = TestDatabase::sqlite()?;
        let section = DatabaseSection {
            connection: Secret::new(database.url()),
            ..DatabaseSection::default()
        };
        migrate::upgrade(&section).await?;
        settings.api.port = 0;
        settings.api.accept_wait = Duration::ZERO;
        settings.drivers.driver_path = vec![drivers()];
        settings.default.transport_url = Secret::new(format!("fake://{}", database.name));
        let transport = rpc::connect(&settings, "test").await?;
        let mut server = RpcServer::start(Arc::clone(&transport), &settings, "one").await?;
        let listening = tokio::spawn(async move {
            while let Some(incoming) = server.recv().await {
                incoming.delivery.ack().await;
            }
        });
        let api = Api::start(
            &settings,
            Arc::clone(&transport),
            Database::connect(&section).await?,
        )
        .await?;
        let member = cloud.people.person(&["member", "reader"]).await?;
        Ok(Self {
            things: Things::new(cloud, &member).await?,
            cloud,
            member,
            api,
            transport,
            listening,
            database,
        })
    }

    pub async fn stop(self) {
        self.api.stop().await;
        self.transport.close().await;
        self.listening.abort();
    }

    /// Changes rows.
    pub async fn sql(&self, sql: &str) -> Result<()> {
        self.database.execute(sql).await
    }

    /// A client with somebody's token.
    pub async fn client(&self, person: &Person) -> Result<Rest> {
        let base = format!("http://{}/v1", self.api.address());
        Ok(Rest::new(&base).with_token(&self.cloud.people.token(person).await?))
    }

    /// The body of a template that names one of each; `changes` says what is otherwise.
    pub fn template(&self, changes: Value) -> Value {
        let mut body = json!({
            "name": unique("template"), "coe": "kubernetes", "driver": "scripted", "image_id": self.things.image,
            "flavor_id": self.things.flavor, "master_flavor_id": self.things.flavor,
            "external_network_id": self.things.external, "fixed_network": self.things.network,
            "fixed_subnet": self.things.subnet,
        });
        if let (Value::Object(body), Value::Object(changes)) = (&mut body, changes) {
            body.extend(changes);
        }
        body
    }
}

impl Things {
    async fn new(cloud: &CloudServices, member: &Person) -> Result<Self> {
        let (image, flavor, external) = (unique("image"), unique("flavor"), unique("external"));
        let (network, subnet) = (unique("network"), unique("subnet"));
        let network_id = cloud.network(member, &network).await?;
        Ok(Self {
            image_id: cloud
                .image(&image, "public", &[("magnum_distro", "ubuntu")])
                .await?,
            flavor_id: cloud.flavor(&flavor, 20).await?,
            external_id: cloud.external_network(&external).await?,
            subnet_id: cloud.subnet(member, &network_id, &subnet).await?,
            network_id,
            image,
            flavor,
            external,
            network,
            subnet,
        })
    }
}

/// Whether an answer is this refusal.
pub fn refused(answer: &Answer, status: u16, words: &str) -> Result<()> {
    ensure!(
        answer.status.as_u16() == status && answer.detail().contains(words),
        "{} {} instead of {status} {words}",
        answer.status,
        answer.body
    );
    Ok(())
}

/// The uuid in an answer.
pub fn uuid(body: &Value) -> Result<String> {
    let uuid = body["uuid"].as_str().map(str::to_owned);
    uuid.with_context(|| format!("no uuid in {body}"))
}
