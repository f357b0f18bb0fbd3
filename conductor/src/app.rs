//! A conductor as one thing that starts and stops: in `magnum-conductor`, in `magnum-dev`, in tests.
//!
//! Start order: database and its revision, journal key, drivers; then the admin interface; then the parts, those
//! that finish accepted work first; the consumer last, so that nothing is accepted that could not be worked on.
//! A broker that is away holds up only the consumer: what is in the journal is worked on meanwhile.
//!
//! Stop order, the same backwards: take no more messages; let running operations reach a border and give the
//! rest back; end periodic work; send the answers that are due; withdraw the drivers; close the broker.

mod parts;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::seal::{JournalKey, SealError};
use magnum_common::ids::ConductorId;
use magnum_config::Settings;
use magnum_db::{self as db, Database, DbError};
use magnum_driver_api::{EngineServices, GuardProgram};
use magnum_rpc::{Addressing, RpcServer, Transport, TransportError, new_server_id};
use magnum_telemetry::field;
use tokio::sync::{Notify, watch};

use self::parts::Parts;
use crate::certificates::Certificates;
use crate::drivers::{Loaded, Registry};
use crate::handlers::{Acceptor, Answerer};
use crate::notifications::Notifier;
use crate::operations::monitor::CallMonitors;
use crate::operations::notice::{self, NoticeQueue};
use crate::operations::replies::{self, AnswerSink, Replies};
use crate::operations::{Engine, Executor, Signals, Timing, sweep};
use crate::periodic::announce::Announcer;
use crate::periodic::certificate_removal::CertificateRemoval;
use crate::periodic::health::{self, HealthCheck};
use crate::periodic::key_pool::KeyPoolFilling;
use crate::periodic::status_sync::{Pace, StatusSync};
use crate::periodic::{journal_history, journal_metrics, service_heartbeat};
use crate::rpc::{Consumer, TransportSink};
use crate::workflows::DriverSource;
use crate::workflows::choose_driver::LoadedDrivers;
use crate::{http, metric_definitions as metric};

/// Why a conductor does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database is away, refuses us, or has other tables.
    #[error("[database] connection: {0}")]
    Database(#[from] DbError),
    /// The journal's key cannot be read or made.
    #[error("[conductor] journal_key_file: {0}")]
    Key(#[from] SealError),
    /// The broker's options cannot be used.
    #[error("[DEFAULT] transport_url: {0}")]
    Transport(#[from] TransportError),
    /// Those of the notifications' own broker cannot.
    #[error("[oslo_messaging_notifications] transport_url: {0}")]
    Notifications(TransportError),
    /// The admin address is taken, or not ours.
    #[error("[conductor] admin_listen: cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The program does not know its own file.
    #[error("cannot find this program's own file, which guards drivers' programs: {0}")]
    Guard(std::io::Error),
}

/// What the caller has already. The rest is made from the settings.
#[derive(Default)]
pub struct Given {
    /// An open database, which outlives the conductor.
    pub database: Option<Database>,
    /// A transport, which outlives the conductor.
    pub transport: Option<Arc<dyn Transport>>,
    /// How to start guards; by default this program itself, which must know
    /// [`magnum_engine_exec::guard::SUB_COMMAND`].
    pub guard: Option<GuardProgram>,
}

/// A running conductor. Ends in good order by [`Conductor::shutdown`]; dropping it is like a crash.
pub struct Conductor {
    me: ConductorId,
    database: Database,
    transport: Arc<dyn Transport>,
    owns_transport: bool,
    reload: Reload,
    consuming: watch::Receiver<bool>,
    parts: Parts,
}

/// Reads the drivers again.
#[derive(Clone)]
pub struct Reload {
    registry: Registry,
    paths: Vec<std::path::PathBuf>,
    services: EngineServices,
    changed: Arc<Notify>,
}

impl Reload {
    /// Looks into the driver folders and swaps the whole set. Calls that run keep the driver they began with.
    pub async fn now(&self) {
        let (paths, services) = (self.paths.clone(), self.services.clone());
        match tokio::task::spawn_blocking(move || Loaded::from_folders(&paths, &services)).await {
            Ok(loaded) => {
                metrics::gauge!(metric::DRIVERS_LOADED).set(loaded.infos().iter().count() as f64);
                metrics::gauge!(metric::DRIVERS_FAILED).set(loaded.failed().len() as f64);
                self.registry.replace(loaded);
                self.changed.notify_one();
            }
            Err(error) => tracing::error!(%error, "the drivers could not be read; the old ones stay"),
        }
    }
}

impl Conductor {
    /// Starts everything. Returns before the broker has answered; see [`Self::consuming`].
    pub async fn start(settings: &Settings, given: Given) -> Result<Self, StartError> {
        metric::describe();
        let options = &settings.conductor;
        let database = match given.database {
            Some(database) => database,
            None => Database::connect(&settings.database).await?,
        };
        db::migrate::check(&database).await?;
        let key = Arc::new(JournalKey::load_or_create(&options.journal_key_file)?);
        let certificates = Certificates::new(settings, database.clone(), JournalKey::clone(&key));
        let me = ConductorId::for_host(&settings.default.host);

        let reload = Reload {
            registry: Registry::default(),
            paths: settings.drivers.driver_path.clone(),
            services: EngineServices {
                guard: match given.guard {
                    Some(guard) => guard,
                    None => GuardProgram::this_program().map_err(StartError::Guard)?,
                },
                lease: options.operation_lease,
            },
            changed: Arc::new(Notify::new()),
        };
        reload.now().await;
        let drivers: Arc<dyn DriverSource> = Arc::new(LoadedDrivers::new(
            reload.registry.clone(),
            (&settings.drivers).into(),
        ));

        let owns_transport = given.transport.is_none();
        let transport = match given.transport {
            Some(transport) => transport,
            None => magnum_rpc::connect(settings, &format!("magnum-conductor:{me}")).await?,
        };

        let mut parts = Parts::default();
        let is_consuming = Arc::new(AtomicBool::new(false));
        if let Some(address) = options.admin_listen {
            let listener = http::bind(address)
                .await
                .map_err(|source| StartError::Listen { address, source })?;
            let readiness = http::Readiness {
                database: database.clone(),
                transport: Arc::clone(&transport),
                consuming: Arc::clone(&is_consuming),
            };
            parts.spawn("admin interface", |stop| http::serve(listener, readiness, stop));
        }

        let announcer = Announcer {
            db: database.clone(),
            me: me.clone(),
            host: settings.default.host.clone(),
            registry: reload.registry.clone(),
            interval: options.service_report_interval,
            keep: settings.default.service_down_time * 2,
            changed: Arc::clone(&reload.changed),
        };
        // Once before anything else: the API may ask the moment it sees us consuming.
        announcer.announce().await?;
        parts.spawn("driver announcements", |stop| announcer.run(stop));
        let (db, host, interval) = (
            database.clone(),
            settings.default.host.clone(),
            options.service_report_interval,
        );
        parts.spawn("heartbeat", move |stop| {
            service_heartbeat::run(db, host, interval, stop)
        });

        let signals = Arc::new(Signals::default());
        let (answers, due) = replies::queue();
        let sink = Arc::new(TransportSink(Arc::clone(&transport)));
        let monitors = CallMonitors::new(database.clone(), Arc::clone(&sink) as Arc<dyn AnswerSink>);
        let mut engine = Engine {
            db: database.clone(),
            drivers: Arc::clone(&drivers),
            key: Arc::clone(&key),
            me: me.clone(),
            certificates: certificates.clone(),
            timing: Arc::new(Timing::new(options, settings.default.service_down_time)),
            signals: Arc::clone(&signals),
            answers: answers.clone(),
            monitors: monitors.clone(),
            notices: NoticeQueue::default(),
        };
        let notifier = Notifier::new(settings, database.clone(), Arc::clone(&transport))
            .map_err(StartError::Notifications)?;
        let notices = match notifier {
            Some(notifier) => {
                let (notices, told) = notice::queue();
                parts.spawn("notifications", |stop| notifier.run(told, stop));
                notices
            }
            None => NoticeQueue::default(),
        };
        engine.notices = notices.clone();
        let replies = Replies::new(database.clone(), me.clone(), sink, due);
        parts.spawn("answers", |stop| replies.run(stop));
        if settings.default.periodic_enable {
            let pace = Pace::every(options.status_poll_interval, options);
            let (db, interval) = (database.clone(), pace.interval);
            parts.spawn("journal metrics", move |stop| {
                journal_metrics::run(db, interval, stop)
            });
            let mut sync = StatusSync::new(
                database.clone(),
                me.clone(),
                Arc::clone(&drivers),
                Arc::clone(&signals),
                pace,
            );
            sync.notices = notices.clone();
            parts.spawn("status sync", |stop| sync.run(stop));
            if let Some(interval) = settings.kubernetes.health_polling_interval {
                let check = HealthCheck::new(
                    database.clone(),
                    me.clone(),
                    Arc::clone(&drivers),
                    Pace::every(interval, options),
                    health::Timing::default(),
                );
                parts.spawn("health check", |stop| check.run(stop));
            }
        }
        if !options.operation_history.is_zero() {
            let (db, history) = (database.clone(), options.operation_history);
            parts.spawn("journal history", move |stop| {
                journal_history::run(db, history, stop)
            });
        }
        let removal = CertificateRemoval {
            db: database.clone(),
            me: me.clone(),
            certificates: certificates.clone(),
        };
        parts.spawn("certificate removal", |stop| removal.run(stop));
        let filling = KeyPoolFilling {
            pool: certificates.key_pool().clone(),
            signals: Arc::clone(&signals),
        };
        parts.spawn("pool of keys", |stop| filling.run(stop));
        let swept = engine.clone();
        parts.spawn("sweep", |stop| sweep::run(swept, stop));
        let executor = Executor::new(engine);
        parts.spawn("operations", |stop| executor.run(stop));

        let acceptor = Acceptor::new(database.clone(), drivers, key, me.clone()).with_notices(notices);
        let answerer = Answerer::new(database.clone(), certificates);
        let (addressing, batch) = (Addressing::from(settings), options.accept_batch);
        let (consuming_tx, consuming) = watch::channel(false);
        let wire = Arc::clone(&transport);
        parts.spawn("consumer", move |stop| async move {
            let id = new_server_id();
            let server = tokio::select! {
                server = RpcServer::start(Arc::clone(&wire), addressing, &id) => server,
                () = stop.cancelled() => return,
            };
            let server = match server {
                Ok(server) => server,
                Err(error) => {
                    tracing::error!(%error, "cannot take messages from the broker");
                    return;
                }
            };
            is_consuming.store(true, Ordering::Relaxed);
            // Nobody may be waiting for it.
            let _ = consuming_tx.send(true);
            tracing::info!("taking requests");
            let consumer = Consumer {
                server,
                transport: wire,
                answerer,
                acceptor,
                answers,
                monitors,
                signals,
                batch,
            };
            consumer.run(stop).await;
            is_consuming.store(false, Ordering::Relaxed);
        });

        let threads = tokio::runtime::Handle::current().metrics().num_workers();
        tracing::info!({ field::CONDUCTOR } = %me, threads, "the conductor runs");
        Ok(Self {
            me,
            database,
            transport,
            owns_transport,
            reload,
            consuming,
            parts,
        })
    }

    /// This process's id, as leases name it.
    pub fn id(&self) -> &ConductorId {
        &self.me
    }

    /// The database it works on.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The way to make it read its drivers again.
    pub fn reload(&self) -> Reload {
        self.reload.clone()
    }

    /// Waits until it takes messages: as long as the broker takes. `false`: it never will.
    pub async fn consuming(&self) -> bool {
        let mut consuming = self.consuming.clone();
        consuming.wait_for(|consuming| *consuming).await.is_ok()
    }

    /// Waits until a part ends that should not, and names it: the process should end then, and be restarted.
    pub async fn failed(&mut self) -> &'static str {
        self.parts.failed().await
    }

    /// Stops in order. Takes at most `[conductor] shutdown_timeout` and a little more.
    pub async fn shutdown(self) {
        tracing::info!("stopping: no new requests; running operations may reach their next border");
        self.parts.stop_in_reverse().await;
        if self.owns_transport {
            self.transport.close().await;
        }
        tracing::info!("the conductor has stopped");
    }
}
