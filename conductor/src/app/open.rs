//! What a conductor needs before any part of it can run. Whatever is missing here is why it does not start.

use std::sync::Arc;

use crate::seal::JournalKey;
use magnum_common::ids::ConductorId;
use magnum_config::Settings;
use magnum_db::{self as db, Database};
use magnum_driver_api::{Clock, Cloud, EngineOptions, EngineServices, GuardProgram, RandomSource, Shared};
use magnum_rpc::{self as rpc, Transport};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::{Given, Reload, StartError};
use crate::certificates::Certificates;
use crate::drivers::Registry;
use crate::http;
use crate::periodic::sealing;
use crate::trusts::Trusts;

/// Everything from outside of the process that its parts use.
pub(super) struct Resources {
    /// This process, as leases name it.
    pub(super) me: ConductorId,
    /// Its tables have a revision that this release knows.
    pub(super) database: Database,
    pub(super) key: Arc<JournalKey>,
    pub(super) certificates: Certificates,
    pub(super) trusts: Trusts,
    /// The drivers, read once by now.
    pub(super) drivers: Reload,
    /// May not be connected yet.
    pub(super) transport: Arc<dyn Transport>,
    /// Whether it ends with the conductor.
    pub(super) owns_transport: bool,
    /// The admin interface's address, taken.
    pub(super) admin: Option<TcpListener>,
}

impl Resources {
    pub(super) async fn open(settings: &Settings, given: Given) -> Result<Self, StartError> {
        let options = &settings.conductor;
        let database = match given.database {
            Some(database) => database,
            None => Database::connect(&settings.database).await?,
        };
        database.at_start(|| db::migrate::check(&database)).await?;
        let key = Arc::new(JournalKey::load_or_create(&options.journal_key_file)?);
        database
            .at_start(|| sealing::at_start(settings, &database, &key))
            .await?;
        let certificates = Certificates::new(settings, database.clone(), JournalKey::clone(&key));
        let trusts = Trusts::new(settings, database.clone(), Arc::clone(&key));
        let me = ConductorId::for_host(&settings.default.host);
        let drivers = Reload {
            registry: Registry::default(),
            paths: settings.drivers.driver_path.clone(),
            services: EngineServices {
                guard: match given.guard {
                    Some(guard) => guard,
                    None => GuardProgram::this_program().map_err(StartError::Guard)?,
                },
                lease: options.operation_lease,
                options: EngineOptions::new(settings),
                cloud: Cloud::new(settings),
                certificates: Arc::new(certificates.clone()),
                trusts: Arc::new(trusts.clone()),
                clock: Clock::default(),
                random: RandomSource::default(),
                shared: Shared::default(),
            },
            changed: Arc::new(Notify::new()),
        };
        drivers.now().await;
        let owns_transport = given.transport.is_none();
        let transport = match given.transport {
            Some(transport) => transport,
            None => rpc::connect(settings, &format!("magnum-conductor:{me}")).await?,
        };
        let admin = match options.admin_listen {
            Some(address) => Some(
                http::bind(address)
                    .await
                    .map_err(|source| StartError::Listen { address, source })?,
            ),
            None => None,
        };
        Ok(Self {
            me,
            database,
            key,
            certificates,
            trusts,
            drivers,
            transport,
            owns_transport,
            admin,
        })
    }
}
