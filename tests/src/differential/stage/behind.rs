//! Who takes what an API publishes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use diesel::prelude::*;
use magnum_common::secret::Secret;
use magnum_config::Settings;
use magnum_db::schema::conductor_operation;
use magnum_rpc as rpc;
use magnum_rpc_server::RpcServer;
use tokio::task::JoinHandle;

use crate::deployment::Deployment;
use crate::process::Program;
use crate::python_magnum::PythonMagnum;
use crate::{probe, wait};

/// A driver of a conductor does its work at once.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);

/// Which of the two kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// It is forgotten.
    Nobody,
    /// A conductor of Magnum's behind Magnum's API, one of ours behind ours.
    Conductors,
}

/// One who takes it.
#[derive(Debug)]
pub enum Taker {
    Queue(JoinHandle<()>),
    Magnum(#[expect(dead_code, reason = "runs as long as it is kept")] Program),
    Ours(#[expect(dead_code, reason = "runs as long as it is kept")] Program),
}

impl Drop for Taker {
    fn drop(&mut self) {
        if let Self::Queue(queue) = self {
            queue.abort();
        }
    }
}

impl Taker {
    /// Takes what comes, and does nothing.
    pub async fn queue(deployment: &Deployment) -> Result<Self> {
        let mut settings = Settings::default();
        settings.default.transport_url = Secret::new(deployment.vhost.transport_url());
        let transport = rpc::connect(&settings, "nobody").await?;
        let mut server = RpcServer::start(Arc::clone(&transport), &settings, "nobody").await?;
        Ok(Self::Queue(tokio::spawn(async move {
            while let Some(incoming) = server.recv().await {
                incoming.delivery.ack().await;
            }
            drop(transport);
        })))
    }

    /// Magnum's conductor.
    pub async fn magnum(magnum: &PythonMagnum, deployment: &Deployment) -> Result<Self> {
        Ok(Self::Magnum(magnum.conductor(&deployment.vhost).await?))
    }

    /// Ours.
    pub async fn ours(deployment: &Deployment) -> Result<Self> {
        Ok(Self::Ours(deployment.conductor("one").await?))
    }

    /// Waits until our conductor has nothing to do. What is asked of Magnum's is done when it answers.
    pub async fn settle(&self, deployment: &Deployment) -> Result<()> {
        let Self::Ours(_) = self else { return Ok(()) };
        let database = probe::open(&deployment.database).await?;
        wait::until("every operation to end", SETTLED_WITHIN, async || {
            let open: i64 = database
                .run(|conn| {
                    let ended = ["succeeded", "failed", "refused", "cancelled"];
                    let open = conductor_operation::state.ne_all(ended);
                    Ok(conductor_operation::table.filter(open).count().get_result(conn)?)
                })
                .await?;
            ensure!(open == 0, "{open} are open");
            Ok(())
        })
        .await
    }
}
