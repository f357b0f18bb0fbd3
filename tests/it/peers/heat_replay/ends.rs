//! Waits until the driver has been called for each case, or has looked, and tells how that ended.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use diesel::prelude::*;
use magnum_conductor::operations::journal::read;
use magnum_conductor::operations::journal::{JournalError, OperationRow};
use magnum_db::{DbError, schema};
use magnum_tests::raw_rpc::RawRpc;
use magnum_tests::wait;

use super::stage::{PATIENCE, Prepared, Stage};

/// State and reason.
pub type End = (String, Option<String>);

/// The looks at a cluster: how many have begun, and whether one is under way.
type Looks = (i64, bool);

impl Stage {
    /// Sends all requests, and waits until the driver's call of each has ended. State and reason of each operation.
    pub async fn operations_made(&self) -> Result<Vec<End>> {
        let rpc = RawRpc::connect(&self.deployment.vhost).await?;
        for prepared in &self.clusters {
            let request = prepared.request.as_ref().context("a request")?;
            if request.is_call {
                rpc.ask(request.message.clone()).await?;
            } else {
                rpc.cast(&request.message).await?;
            }
        }
        let ended = wait::until("the end of the driver's calls", PATIENCE, async || {
            let operations = self.operations().await?;
            let open = operations.values().filter(|one| is_open(one)).count();
            let (known, all) = (operations.len(), self.clusters.len());
            ensure!(open == 0 && known == all, "{open} of {known} open, {all} wanted");
            Ok::<_, anyhow::Error>(operations)
        });
        let mut ended = ended.await?;
        let end = |prepared: &Prepared| {
            let operation = ended.remove(prepared.cluster());
            let operation = operation.with_context(|| format!("no operation of {}", prepared.case.name()))?;
            Ok((operation.state, operation.reason))
        };
        self.clusters.iter().map(end).collect()
    }

    /// The only operation of each cluster.
    async fn operations(&self) -> Result<BTreeMap<String, OperationRow>> {
        let found = self.db.transaction(|conn| {
            let all = read::Wanted {
                limit: i64::MAX,
                ..read::Wanted::default()
            };
            read::list(conn, &all)
        });
        let found = found.await.map_err(|error: JournalError| error)?;
        let count = found.len();
        let by_cluster: BTreeMap<String, OperationRow> = found
            .into_iter()
            .map(|operation| (operation.cluster_uuid.clone(), operation))
            .collect();
        ensure!(count == by_cluster.len(), "several operations of a cluster");
        Ok(by_cluster)
    }

    /// Waits for a look at each cluster that is to be looked at. The conductor chooses them in one query, so one that is
    /// looked at and should not be is among them.
    pub async fn looks_made(&self) -> Result<Vec<End>> {
        let looks = wait::until("a look at each cluster", PATIENCE, async || {
            let (looks, left) = (self.looks().await?, self.clusters_left().await?);
            let is_over = |one: &Prepared| match looks.get(one.cluster()) {
                Some((begun, is_under_way)) => *begun > 0 && !is_under_way,
                // With a cluster's row goes that of its looks.
                None => !left.contains(one.cluster()),
            };
            let wanted = self.clusters.iter().filter(|one| one.case.is_looked_at());
            let open = wanted.filter(|one| !is_over(one)).count();
            ensure!(open == 0, "{open} are not over");
            Ok::<_, anyhow::Error>(looks)
        });
        let looks = looks.await?;
        let end = |one: &Prepared| match looks.get(one.cluster()) {
            Some((1, _)) => "looked at".to_owned(),
            Some((begun, _)) => format!("looked at {begun} times"),
            None if one.case.is_looked_at() => "looked at".to_owned(),
            None => "not looked at".to_owned(),
        };
        Ok(self.clusters.iter().map(|one| (end(one), None)).collect())
    }

    async fn looks(&self) -> Result<BTreeMap<String, Looks>> {
        use schema::conductor_cluster_poll::dsl as poll;
        let columns = (poll::cluster_uuid, poll::lease_epoch, poll::owner);
        let found = self
            .db
            .run(move |conn| Ok::<_, DbError>(poll::conductor_cluster_poll.select(columns).load(conn)?));
        let found: Vec<(String, i64, Option<String>)> = found.await?;
        Ok(found
            .into_iter()
            .map(|(cluster, begun, owner)| (cluster, (begun, owner.is_some())))
            .collect())
    }

    /// The clusters that have a row.
    async fn clusters_left(&self) -> Result<BTreeSet<String>> {
        use schema::cluster::dsl as c;
        let found = self
            .db
            .run(|conn| Ok::<_, DbError>(c::cluster.select(c::uuid).load(conn)?));
        let found: Vec<Option<String>> = found.await?;
        Ok(found.into_iter().flatten().collect())
    }
}

/// Whether the driver has not been called, or not returned.
fn is_open(operation: &OperationRow) -> bool {
    matches!(operation.state.as_str(), "queued" | "running")
}
