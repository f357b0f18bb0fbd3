//! A conductor as one thing that starts and stops: in `magnum-conductor`, in `magnum-dev`, in tests.
//!
//! ```text
//! open.rs    database and its revision, journal key, drivers, broker, admin address: what may be missing
//! wire.rs    the handles that parts share, each made once
//! spawn.rs   the parts as tasks, in order
//! start_report.rs  what was reached, and as whom
//! parts.rs   running tasks: watched, and stopped in reverse
//! ```
//!
//! Start order: those parts first that finish accepted work, the consumer last, so that nothing is accepted that
//! could not be worked on. A broker that is away holds up only the consumer: what is in the journal is worked on
//! meanwhile.
//!
//! Stop order, the same backwards: take no more messages; let running operations reach a step boundary and give the
//! rest back; end periodic work; send the answers that are due; withdraw the drivers; close the broker.

mod open;
mod parts;
mod reload;
mod spawn;
mod start_report;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use crate::seal::SealError;
use magnum_common::ids::ConductorId;
use magnum_config::Settings;
use magnum_db::{Database, DbError};
use magnum_driver_api::GuardProgram;
use magnum_rpc::{Transport, TransportError};
use magnum_service::{ProcessReport, StartReport};
use magnum_telemetry::field;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::operations::executor::GIVE_BACK_WITHIN;

use self::open::Resources;
use self::parts::Parts;
pub use self::reload::Reload;
use self::start_report::Reached;
use self::wire::Handles;
use crate::metric_definitions as metric;
use crate::operations::at_work::AtWork;

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
    /// [`magnum_engine_process::guard::SUB_COMMAND`].
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
    at_work: AtWork,
    stop_within: Duration,
}

/// After the operations, the other parts withdraw what they announced and give back what they claimed.
const WITHDRAW_WITHIN: Duration = Duration::from_secs(10);

impl Conductor {
    /// Starts everything. Returns before the broker has answered; see [`Self::consuming`].
    ///
    /// # Errors
    /// Something that it cannot run without is missing, or an option cannot be used. Nothing runs then.
    pub async fn start(settings: &Settings, given: Given) -> Result<Self, StartError> {
        metric::describe();
        let mut resources = Resources::open(settings, given).await?;
        let handles = Handles::wire(settings, &resources)?;
        let at_work = handles.services.at_work.clone();
        let (parts, consuming) = spawn::all(settings, &mut resources, handles).await?;
        let threads = tokio::runtime::Handle::current().metrics().num_workers();
        tracing::info!({ field::CONDUCTOR } = %resources.me, threads, "the conductor runs");
        Ok(Self {
            me: resources.me,
            database: resources.database,
            transport: resources.transport,
            owns_transport: resources.owns_transport,
            reload: resources.drivers,
            consuming,
            parts,
            at_work,
            stop_within: settings.conductor.shutdown_timeout + GIVE_BACK_WITHIN + WITHDRAW_WITHIN,
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

    /// What it has reached, and as whom: asked when it is polled, and safe to be given up.
    pub fn start_report(&self, settings: &Settings) -> impl Future<Output = StartReport> + Send + use<> {
        let reached = Reached {
            settings: settings.clone(),
            transport: Arc::clone(&self.transport),
            cloud: self.reload.services.cloud.clone(),
            drivers: self.reload.registry.clone(),
        };
        reached.report()
    }

    /// Says in the log what this process uses and works on. Asks nobody.
    pub fn report(&self) {
        ProcessReport::now().log();
        tracing::info!(parts = %self.parts.names().join(", "), "report: parts of the conductor");
        self.at_work.log();
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

    /// Stops in order. Takes at most `[conductor] shutdown_timeout` and forty seconds: with a database that says nothing,
    /// what is unfinished then is given up and taken over by lease.
    pub async fn shutdown(self) {
        tracing::info!("stopping: no new requests; running operations may reach their next step boundary");
        if timeout(self.stop_within, self.parts.stop_in_reverse())
            .await
            .is_err()
        {
            tracing::warn!("a part does not stop; what is unfinished is taken over by lease");
        }
        if self.owns_transport {
            self.transport.close().await;
        }
        tracing::info!("the conductor has stopped");
    }
}
