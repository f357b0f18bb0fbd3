//! A database, a scripted driver, and conductors in this process that share them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use magnum_common::context::{Caller, RequestContext};
use magnum_common::ids::{ClusterUuid, ConductorId, MessageId, NodeGroupUuid, OperationId, RequestId};
use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup};
use magnum_common::secret::Secret;
use magnum_conductor::certificates::Certificates;
use magnum_conductor::drivers::Registry;
use magnum_conductor::handlers::command::{ClusterCreate, ClusterResize, ClusterUpdate, ClusterUpgrade};
use magnum_conductor::handlers::{Accepted, Acceptor, Answerer, Command, Incoming};
use magnum_conductor::operations::at_work::AtWork;
use magnum_conductor::operations::breakers::Breakers;
use magnum_conductor::operations::journal::rows::EventRow;
use magnum_conductor::operations::journal::{JournalError, OperationRow, read};
use magnum_conductor::operations::keeper::LeaseKeeper;
use magnum_conductor::operations::lease_watch::LeaseWatch;
use magnum_conductor::operations::monitor::CallMonitors;
use magnum_conductor::operations::notice::NoticeQueue;
use magnum_conductor::operations::replies::{self, Replies, ReplySink};
use magnum_conductor::operations::stored_reply::Reply;
use magnum_conductor::operations::{Executor, OperationServices, OperationTiming, Signals, State};
use magnum_conductor::seal::JournalKey;
use magnum_conductor::store;
use magnum_conductor::workflows::DriverSource;
use magnum_conductor::workflows::choose_driver::LoadedDrivers;
use magnum_config::{CertManagerType, ConductorSection, DatabaseSection, KeyType, Settings};
use magnum_db::{AnyConnection, Database, migrate};
use magnum_driver_api::Driver;
use magnum_drivers::ResolutionRules;
use magnum_rpc::{PublishError, ReplyAddress, WireFormat};
use magnum_tests::TestDatabase;
use magnum_tests::fake_driver::FakeDriver;
use magnum_tests::wait;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub const TEMPLATE: &str = "c0ffee00-1111-4222-8333-444455556666";

/// Takes answers instead of a broker; can be told to fail.
#[derive(Default)]
pub struct Sink {
    pub sent: Mutex<Vec<(String, Reply)>>,
    pub fail: Mutex<Option<PublishError>>,
}

#[async_trait]
impl ReplySink for Sink {
    async fn answer(&self, to: &ReplyAddress, answer: &Reply) -> Result<(), PublishError> {
        if let Some(error) = self.fail.lock().unwrap().clone() {
            return Err(error);
        }
        self.sent
            .lock()
            .unwrap()
            .push((to.msg_id.clone(), answer.clone()));
        Ok(())
    }

    async fn alive(&self, _to: &ReplyAddress) -> Result<(), PublishError> {
        Ok(())
    }
}

pub struct World {
    pub db: Database,
    pub driver: Arc<FakeDriver>,
    pub sink: Arc<Sink>,
    pub key: Arc<JournalKey>,
    pub timing: OperationTiming,
    /// Takes none, unless a test listens.
    pub notices: NoticeQueue,
    _folder: tempfile::TempDir,
}

/// One conductor of the world.
pub struct Conductor {
    pub services: OperationServices,
    pub acceptor: Acceptor,
    pub stop: CancellationToken,
    pub executor: JoinHandle<()>,
    replies: JoinHandle<()>,
}

impl Conductor {
    /// Tells its executor that there is work, as its own consumer does after a commit.
    pub fn wake(&self) {
        self.services.signals.work.notify_one();
    }
}

impl Drop for Conductor {
    fn drop(&mut self) {
        // What a test leaves running ends with it, as a killed process would.
        self.executor.abort();
        self.replies.abort();
    }
}

pub fn context(project: &str) -> RequestContext {
    let caller = Caller {
        user_id: Some("u".into()),
        project_id: Some(project.into()),
        auth_token: Some(Secret::new("token-of-u")),
        ..Caller::default()
    };
    RequestContext::for_caller(&caller, &RequestId::random())
}

impl World {
    pub async fn new(database: &TestDatabase) -> Self {
        let section = DatabaseSection {
            connection: Secret::new(database.url()),
            ..DatabaseSection::default()
        };
        migrate::upgrade(&section).await.expect("tables");
        let db = Database::connect(&section).await.expect("database");
        let mut template = ClusterTemplate::new(TEMPLATE.into());
        template.project_id = Some("p".into());
        template.name = Some("t".into());
        template.coe = Some("kubernetes".into());
        template.cluster_distro = Some("ubuntu".into());
        template.driver = Some("fake".into());
        template.image_id = Some("image".into());
        template.flavor_id = Some("small".into());
        template.master_flavor_id = Some("big".into());
        db.transaction::<_, JournalError, _>(move |conn| {
            Ok(magnum_db::write::cluster_templates::insert(conn, &template)?)
        })
        .await
        .expect("template");
        let folder = tempfile::tempdir().expect("folder");
        let key = JournalKey::load_or_create(&folder.path().join("journal.key")).expect("key");
        let section = ConductorSection {
            operation_lease: Duration::from_secs(3),
            operation_retry_initial: Duration::from_millis(20),
            operation_retry_max_interval: Duration::from_millis(50),
            operation_retry_max_attempts: 4,
            shutdown_timeout: Duration::from_millis(300),
            ..ConductorSection::default()
        };
        let mut timing = OperationTiming::new(&section, Duration::from_secs(60));
        timing.poll = Duration::from_millis(200);
        Self {
            db,
            driver: FakeDriver::new("fake"),
            sink: Arc::default(),
            key: Arc::new(key),
            timing,
            notices: NoticeQueue::default(),
            _folder: folder,
        }
    }

    pub fn drivers(&self) -> Arc<dyn DriverSource> {
        let driver: Arc<dyn Driver> = Arc::clone(&self.driver) as Arc<dyn Driver>;
        Arc::new(LoadedDrivers::new(
            Registry::of([driver]),
            ResolutionRules::from(&magnum_config::DriversSection::default()),
        ))
    }

    /// Kept in the database, with keys that are made fast.
    pub fn certificates(&self) -> Certificates {
        let mut settings = Settings::default();
        settings.certificates.cert_manager_type = CertManagerType::X509KeyPair;
        settings.certificates.key_type = KeyType::EcdsaP256;
        Certificates::new(&settings, self.db.clone(), JournalKey::clone(&self.key))
    }

    /// What a conductor works with.
    pub fn services(&self, name: &str) -> (OperationServices, Replies) {
        let (answers, due) = replies::queue();
        let me = ConductorId::new(name);
        let sink = Arc::clone(&self.sink) as Arc<dyn ReplySink>;
        let services = OperationServices {
            db: self.db.clone(),
            drivers: self.drivers(),
            keeper: LeaseKeeper::new(&self.db, me.clone(), self.timing.lease),
            lease_watch: LeaseWatch::new(self.timing.lease),
            key: Arc::clone(&self.key),
            me: me.clone(),
            certificates: self.certificates(),
            timing: Arc::new(self.timing.clone()),
            signals: Arc::new(Signals::default()),
            answers,
            monitors: CallMonitors::new(self.db.clone(), Arc::clone(&sink)),
            notices: self.notices.clone(),
            at_work: AtWork::default(),
            breakers: Breakers::default(),
        };
        (services, Replies::new(self.db.clone(), me, sink, due))
    }

    /// A conductor that works.
    pub fn conductor(&self, name: &str) -> Conductor {
        let (services, replies) = self.services(name);
        let stop = CancellationToken::new();
        Conductor {
            acceptor: self.acceptor(name),
            executor: tokio::spawn(Executor::new(services.clone()).run(stop.clone())),
            replies: tokio::spawn(replies.run(CancellationToken::new())),
            services,
            stop,
        }
    }

    /// What answers questions.
    pub fn answerer(&self) -> Answerer {
        Answerer::new(self.db.clone(), self.certificates())
    }

    pub fn acceptor(&self, name: &str) -> Acceptor {
        Acceptor::new(
            self.db.clone(),
            self.drivers(),
            Arc::clone(&self.key),
            ConductorId::new(name),
            NoticeQueue::default(),
        )
    }

    /// Accepts one request without any executor being told.
    pub async fn accept(&self, incoming: Incoming) -> Accepted {
        self.acceptor("accepting")
            .accept(vec![incoming], Duration::ZERO)
            .await
            .expect("no outage")
            .pop()
            .flatten()
            .expect("accepted")
    }

    /// Accepts a request that is recorded, and gives its operation.
    pub async fn record(&self, incoming: Incoming) -> OperationId {
        match self.accept(incoming).await {
            Accepted::Recorded { operation, .. } => operation,
            other => panic!("not recorded: {other:?}"),
        }
    }

    pub async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&mut AnyConnection) -> Result<T, JournalError> + Send + 'static,
    ) -> T {
        self.db.transaction(work).await.expect("database")
    }

    pub async fn row(&self, operation: &OperationId) -> OperationRow {
        let id = operation.clone();
        self.read(move |conn| read::find(conn, id.as_str()))
            .await
            .expect("operation")
    }

    pub async fn events(&self, operation: &OperationId) -> Vec<EventRow> {
        let id = operation.clone();
        self.read(move |conn| read::events(conn, id.as_str())).await
    }

    pub async fn cluster(&self, uuid: &ClusterUuid) -> Option<Cluster> {
        let uuid = uuid.clone();
        self.read(move |conn| Ok(store::clusters::find(conn, &uuid)?))
            .await
    }

    pub async fn groups(&self, uuid: &ClusterUuid) -> Vec<NodeGroup> {
        let uuid = uuid.clone();
        self.read(move |conn| Ok(store::node_groups::of(conn, &uuid)?))
            .await
    }

    /// Waits until the operation is in `state`.
    pub async fn reaches(&self, operation: &OperationId, state: State) -> OperationRow {
        wait::until(
            &format!("operation to be {state}"),
            Duration::from_secs(20),
            async || {
                let row = self.row(operation).await;
                if row.state == state.as_str() {
                    Ok(row)
                } else {
                    Err(format!("{} ({:?})", row.state, row.reason))
                }
            },
        )
        .await
        .expect("state")
    }

    /// A cluster that is complete, with its create behind it.
    pub async fn complete_cluster(&self, conductor: &Conductor) -> ClusterUuid {
        let incoming = create();
        let cluster = incoming.command.cluster().clone();
        let operation = self.record(incoming).await;
        conductor.wake();
        self.reaches(&operation, State::Succeeded).await;
        cluster
    }

    /// The same after the template was made to name a driver of which there is none: for a moment it names ours.
    pub async fn complete_cluster_of(&self, conductor: &Conductor, database: &TestDatabase) -> ClusterUuid {
        database
            .execute("UPDATE cluster_template SET driver = 'fake'")
            .await
            .expect("template");
        self.complete_cluster(conductor).await
    }

    /// Nothing is left open: every test ends with this.
    pub async fn nothing_is_open(&self) {
        let open = self
            .read(|conn| {
                let rows = read::list(
                    conn,
                    &read::Wanted {
                        limit: 1000,
                        ..read::Wanted::default()
                    },
                )?;
                Ok(rows
                    .into_iter()
                    .filter(|row| row.state.parse::<State>().is_ok_and(State::is_open))
                    .map(|row| format!("{} {} {}", row.uuid, row.kind, row.state))
                    .collect::<Vec<_>>())
            })
            .await;
        assert!(open.is_empty(), "still open: {open:?}");
    }
}

pub fn incoming(command: Command) -> Incoming {
    Incoming {
        command,
        message: Some(MessageId::random()),
        context: context("p"),
        reply: None,
        monitor: None,
        trace: None,
        span: tracing::Span::none(),
    }
}

/// A create of a new cluster.
pub fn create() -> Incoming {
    let mut cluster = Cluster::new(ClusterUuid::random(), TEMPLATE.into());
    cluster.name = Some("c".into());
    cluster.project_id = Some("p".into());
    cluster.user_id = Some("u".into());
    incoming(Command::ClusterCreate(ClusterCreate {
        cluster: Box::new(cluster),
        master_count: 1,
        node_count: 2,
        create_timeout: Some(60),
    }))
}

/// An update to another worker count.
pub fn update(cluster: &ClusterUuid, node_count: i32) -> Incoming {
    incoming(Command::ClusterUpdate(ClusterUpdate {
        cluster: cluster.clone(),
        node_count: Some(node_count),
        health: None,
        rollback: false,
    }))
}

/// Another number of nodes in a group.
pub fn resize(cluster: &ClusterUuid, group: &NodeGroup, node_count: i32) -> Incoming {
    incoming(Command::ClusterResize(ClusterResize {
        cluster: cluster.clone(),
        node_group: group.uuid.clone(),
        node_count,
        nodes_to_remove: Vec::new(),
    }))
}

/// Another template.
pub fn upgrade(cluster: &ClusterUuid, group: &NodeGroup, template: &str) -> Incoming {
    incoming(Command::ClusterUpgrade(ClusterUpgrade {
        cluster: cluster.clone(),
        template: template.into(),
        node_group: group.uuid.clone(),
        max_batch_size: Some(1),
        rollback: false,
    }))
}

/// A group named `pool`, and the request to make it.
pub fn create_pool(cluster: &ClusterUuid) -> (NodeGroup, Incoming) {
    let mut group = NodeGroup::new(NodeGroupUuid::random(), "pool", cluster.clone(), "p", "worker");
    group.node_count = 2;
    let create = Command::NodegroupCreate(cluster.clone(), Box::new(group.clone()));
    (group, incoming(create))
}

/// The end of a group.
pub fn delete_group(cluster: &ClusterUuid, group: &NodeGroup) -> Incoming {
    incoming(Command::NodegroupDelete(cluster.clone(), group.uuid.clone()))
}

/// New certificates.
pub fn rotate_ca(cluster: &ClusterUuid) -> Incoming {
    incoming(Command::RotateCaCertificate(cluster.clone()))
}

/// A new credential.
pub fn rotate_credential(cluster: &ClusterUuid) -> Incoming {
    incoming(Command::CredentialRotate(cluster.clone()))
}

/// A delete.
pub fn delete(cluster: &ClusterUuid) -> Incoming {
    incoming(Command::ClusterDelete(cluster.clone()))
}

/// The same as a call.
pub fn as_call(mut incoming: Incoming) -> Incoming {
    incoming.reply = Some(ReplyAddress {
        queue: "reply_1".into(),
        msg_id: MessageId::random().into_string(),
        format: WireFormat::Json,
    });
    incoming
}
