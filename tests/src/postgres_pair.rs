//! A PostgreSQL primary with a streaming standby, and one address that leads to whichever is the primary.
//!
//! Replication is synchronous (`synchronous_standby_names`, `synchronous_commit = on`): a commit is answered when the standby
//! has it, too. So a promotion loses none, also of what is asked while the standby is cut off: nothing is answered then. While
//! there is no standby the primary goes alone, as an operator would have it.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::chaos_proxy::ChaosProxy;
use crate::postgres::Postgres;
use crate::wait;

const STANDBY: &str = "standby";
const PATIENCE: Duration = Duration::from_secs(60);

/// The two of them. The standby is away between a failover and [`Self::rebuild`]. They end when this is dropped.
#[derive(Debug)]
pub struct PostgresPair {
    primary: Postgres,
    standby: Option<Postgres>,
    front: ChaosProxy,
}

impl PostgresPair {
    /// A new pair that replicates.
    pub async fn start() -> Result<Self> {
        let primary = Postgres::dedicated().await?;
        let front = ChaosProxy::start(primary.address()).await?;
        let mut pair = Self {
            primary,
            standby: None,
            front,
        };
        pair.rebuild().await?;
        Ok(pair)
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.front.address()
    }

    /// The server that takes writes.
    pub fn primary(&self) -> &Postgres {
        &self.primary
    }

    /// `kill -9` of the primary, when the standby gets nothing more and a commit waits for that; then the standby is promoted,
    /// and the address leads there.
    pub async fn fail_over(&mut self) -> Result<()> {
        let standby = self.standby.take();
        let Some(standby) = standby else {
            anyhow::bail!("there is no standby that could be promoted");
        };
        standby.execute("ALTER SYSTEM SET primary_conninfo = ''").await?;
        standby.execute("SELECT pg_reload_conf()").await?;
        wait::until("a commit to wait for the standby", PATIENCE, async || {
            let waiting = "SELECT wait_event FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
            let waiting = self.primary.ask(waiting).await?;
            ensure!(!waiting.is_empty(), "none does");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        self.primary.kill().await?;
        standby.promote().await?;
        self.front.redirect(standby.address());
        let mut killed = std::mem::replace(&mut self.primary, standby);
        killed.discard();
        Ok(())
    }

    /// `kill -9` of the standby. Commits wait for it, until [`Self::restart_standby`].
    pub async fn kill_standby(&self) -> Result<()> {
        match &self.standby {
            Some(standby) => standby.kill().await,
            None => Ok(()),
        }
    }

    /// Starts a standby that was killed.
    pub async fn restart_standby(&self) -> Result<()> {
        if let Some(standby) = &self.standby {
            standby.start().await?;
        }
        self.is_synchronous().await
    }

    /// Makes a new standby, and replication synchronous.
    pub async fn rebuild(&mut self) -> Result<()> {
        self.standby = Some(self.primary.standby(STANDBY).await?);
        self.primary
            .execute(&format!(
                "ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'"
            ))
            .await?;
        self.primary.execute("SELECT pg_reload_conf()").await?;
        self.is_synchronous().await
    }

    async fn is_synchronous(&self) -> Result<()> {
        wait::until("the standby to be synchronous", PATIENCE, async || {
            let states = self
                .primary
                .ask("SELECT sync_state FROM pg_stat_replication")
                .await?;
            ensure!(states == ["sync"], "{states:?}");
            Ok(())
        })
        .await
    }
}

impl Drop for PostgresPair {
    fn drop(&mut self) {
        self.primary.discard();
        if let Some(standby) = &mut self.standby {
            standby.discard();
        }
    }
}
