//! Both halves of Magnum in this process.

use std::path::Path;

use anyhow::{Context as _, ensure};
use magnum_api_shim::Api;
use magnum_conductor::app::{Conductor, Given};
use magnum_db::{Database, migrate};
use magnum_rpc as rpc;
use magnum_telemetry as telemetry;

use crate::state::State;

/// A running API with its conductor.
pub(crate) struct Service {
    api: Api,
    conductor: Conductor,
    database: Database,
}

impl Service {
    /// Starts both; makes the database. Logs to `log`, else to standard error.
    pub(crate) async fn start(state: &State, port: u16, log: Option<&Path>) -> anyhow::Result<Self> {
        let mut settings = state.settings(port);
        settings.default.log_file = log.map(Path::to_owned);
        telemetry::init(&settings, "magnum-dev", None)?;
        for done in migrate::upgrade(&settings.database)
            .await
            .context("the database")?
        {
            tracing::info!("database: {done}");
        }
        let database = Database::connect(&settings.database).await?;
        let transport = rpc::connect(&settings, "magnum-dev").await?;
        let given = Given {
            database: Some(database.clone()),
            transport: Some(transport.clone()),
            guard: None,
        };
        let conductor = Conductor::start(&settings, given).await?;
        ensure!(
            conductor.consuming().await,
            "the conductor does not take requests"
        );
        let api = Api::start(&settings, transport, database.clone()).await?;
        Ok(Self {
            api,
            conductor,
            database,
        })
    }

    /// The API's base URL.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}/v1", self.api.address())
    }

    /// The database, for looking at the journal.
    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Reads the drivers again.
    pub(crate) async fn reload(&self) {
        self.conductor.reload().now().await;
    }

    /// Says in the log what goes on.
    pub(crate) fn report(&self) {
        self.conductor.report();
    }

    /// Stops the API, then the conductor.
    pub(crate) async fn stop(self) {
        self.api.stop().await;
        self.conductor.shutdown().await;
    }
}
