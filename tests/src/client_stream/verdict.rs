//! The end of a run: everything that was confirmed ends, then the checker decides.

use anyhow::{Context as _, Result, ensure};
use magnum_common::secret::Secret;
use magnum_config::DatabaseSection;
use magnum_db::Database;
use std::time::Duration;

use super::{ClientStream, PATIENCE};
use crate::checker::history::Told;
use crate::checker::{self, Bounds, History, Rule, Verdict, read};
use crate::databases::TestDatabase;
use crate::deployment::Deployment;
use crate::wait;

const BOUNDS: Bounds = Bounds {
    after_limit: Duration::from_secs(30),
    waiting: Duration::from_secs(60),
    idle_statements: 5.0,
};

/// What a run came to.
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    /// Requests that were confirmed.
    pub confirmed: usize,
    /// Operations in the journal.
    pub operations: usize,
    /// Requests that were refused or not answered.
    pub unanswered: usize,
    /// Confirmed requests that are not exactly one operation.
    pub lost: usize,
    /// Other promises that were not kept.
    pub wrong: usize,
}

impl ClientStream {
    /// Waits until everything that was confirmed has an end, and decides. `database` is what was written to in the end.
    /// An error that lists what was lost and what is wrong; what was done otherwise.
    pub async fn verdict(&self, deployment: &Deployment, database: &TestDatabase) -> Result<Summary> {
        let connection = DatabaseSection {
            connection: Secret::new(database.url()),
            mysql_wsrep_sync_wait: Some(1),
            ..DatabaseSection::default()
        };
        let connection = Database::connect(&connection).await?;
        let told = self
            .told
            .lock()
            .map_err(|_| anyhow::anyhow!("a client panicked"))?
            .clone();
        let settled = wait::until("everything that was confirmed to end", PATIENCE, async || {
            let operations = read::operations(&connection).await?;
            let open = operations.iter().find(|one| !one.has_ended());
            ensure!(open.is_none(), "{open:?}");
            let is_there = |told: &&Told| {
                let id = told.id.as_ref();
                id.is_none_or(|id| operations.iter().any(|one| one.is_for(id)))
            };
            let missing = told
                .iter()
                .filter(|told| told.heard.is_promise())
                .find(|told| !is_there(told));
            ensure!(missing.is_none(), "not recorded: {missing:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await;
        let (calls, overlaps) = read::calls(&deployment.record)?;
        let history = History {
            told,
            calls,
            overlaps,
            operations: read::operations(&connection).await?,
            dead_letters: Vec::new(),
            clusters: read::clusters(&connection).await?,
            built: deployment.record.built()?,
            idle: Vec::new(),
        };
        let verdicts = checker::check(&history, &BOUNDS);
        let count = |is: fn(&Verdict) -> bool| verdicts.iter().filter(|one| is(one)).count();
        let summary = Summary {
            confirmed: self.confirmed(),
            operations: history.operations.len(),
            unanswered: history.told.len() - self.confirmed(),
            lost: count(|one| one.rule == Rule::Accepted),
            wrong: count(|one| one.rule != Rule::Accepted),
        };
        let all: Vec<String> = verdicts.iter().map(ToString::to_string).collect();
        ensure!(all.is_empty(), "{summary:?}:\n{}", all.join("\n"));
        settled.with_context(|| format!("{summary:?}"))?;
        Ok(summary)
    }
}
