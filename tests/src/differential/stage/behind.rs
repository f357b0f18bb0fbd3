//! Who takes what an API publishes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use diesel::prelude::*;
use magnum_common::secret::Secret;
use magnum_config::Settings;
use magnum_db::schema::{cluster, conductor_operation};
use magnum_db::{AnyConnection, Database, DbError};
use magnum_rpc as rpc;
use magnum_rpc_server::RpcServer;
use tokio::task::JoinHandle;

use super::super::request::Request;
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
    Magnum(Magnum),
    Ours(
        #[expect(dead_code, reason = "runs as long as it is kept")] Program,
        Database,
    ),
}

/// A conductor of Magnum's.
#[derive(Debug)]
pub struct Magnum {
    _program: Program,
    database: Database,
    /// Has a line for each method that it has carried out, and for each round in which it has asked drivers.
    carried_out: PathBuf,
    /// How many of [`CASTS`] it was sent.
    sent: AtomicUsize,
}

/// What a conductor is told by casts.
const CASTS: [&str; 7] = [
    "cluster_create",
    "cluster_update",
    "cluster_delete",
    "cluster_resize",
    "nodegroup_create",
    "nodegroup_update",
    "nodegroup_delete",
];

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
        let carried_out = deployment.folder.join("carried-out");
        Ok(Self::Magnum(Magnum {
            _program: magnum
                .conductor_that_tells(&deployment.vhost, &carried_out)
                .await?,
            database: probe::open(&deployment.database).await?,
            carried_out,
            sent: AtomicUsize::new(0),
        }))
    }

    /// Ours.
    pub async fn ours(deployment: &Deployment) -> Result<Self> {
        Ok(Self::Ours(
            deployment.conductor("one").await?,
            probe::open(&deployment.database).await?,
        ))
    }

    /// Takes note that its API has accepted this request, and waits until nothing is left to do. Returns how clusters are that
    /// will be in progress for ever.
    pub async fn settle(&self, accepted: &Request) -> Result<Vec<String>> {
        match self {
            Self::Queue(_) => Ok(Vec::new()),
            Self::Magnum(magnum) => magnum.settle(accepted).await,
            Self::Ours(_, database) => {
                wait::until("every operation to end", SETTLED_WITHIN, async || {
                    let open = database.run(open_operations).await?;
                    ensure!(open == 0, "{open} are open");
                    Ok(())
                })
                .await?;
                Ok(Vec::new())
            }
        }
    }
}

impl Magnum {
    async fn settle(&self, accepted: &Request) -> Result<Vec<String>> {
        // An upgrade is a call: it was carried out before it was answered.
        let is_cast = accepted.route.starts_with("/v1/clusters") && !accepted.route.ends_with("/upgrade");
        let sent = self.sent.fetch_add(usize::from(is_cast), Ordering::Relaxed) + usize::from(is_cast);
        let first_round = wait::until("Magnum's conductor to be done", SETTLED_WITHIN, async || {
            let (casts, rounds) = self.carried_out();
            ensure!(casts == sent, "{casts} casts of {sent} are carried out");
            Ok(rounds)
        })
        .await?;
        wait::until("Magnum's drivers to be asked", SETTLED_WITHIN, async || {
            let in_progress = self.database.run(in_progress).await?;
            // The first round may have begun before, and what a round has begun goes on beside it.
            let rounds = self.carried_out().1 - first_round;
            ensure!(
                in_progress.is_empty() || rounds >= 5,
                "{in_progress:?}, {rounds} rounds"
            );
            Ok(in_progress)
        })
        .await
    }

    /// How many casts, and how many rounds of asking drivers.
    fn carried_out(&self) -> (usize, usize) {
        let names = std::fs::read_to_string(&self.carried_out).unwrap_or_default();
        let casts = names.lines().filter(|name| CASTS.contains(name)).count();
        let rounds = names
            .lines()
            .filter(|name| *name == "sync_cluster_status")
            .count();
        (casts, rounds)
    }
}

fn open_operations(conn: &mut AnyConnection) -> Result<i64, DbError> {
    let ended = ["succeeded", "failed", "refused", "cancelled"];
    let open = conductor_operation::state.ne_all(ended);
    Ok(conductor_operation::table.filter(open).count().get_result(conn)?)
}

fn in_progress(conn: &mut AnyConnection) -> Result<Vec<String>, DbError> {
    // A deleted one's row goes a moment later.
    let in_progress = cluster::status
        .like("%IN_PROGRESS")
        .or(cluster::status.eq("DELETE_COMPLETE"));
    let statuses: Vec<Option<String>> = cluster::table
        .filter(in_progress)
        .select(cluster::status)
        .load(conn)?;
    Ok(statuses.into_iter().flatten().collect())
}
