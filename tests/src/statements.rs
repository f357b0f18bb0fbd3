//! The statements that a program in this process sends over its one connection to SQLite, and how SQLite carries them
//! out.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use diesel::connection::{Instrumentation, InstrumentationEvent};
use diesel::prelude::*;
use diesel::sql_types::Text;
use magnum_db::Database;

type Log = Arc<Mutex<Vec<String>>>;

/// What is sent over the connection of a pool that has one.
pub struct Statements {
    database: Database,
    log: Log,
}

struct Watcher(Log);

impl Instrumentation for Watcher {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        if let InstrumentationEvent::StartQuery { query, .. } = event {
            let text = query.to_string();
            let text = text.split(" -- binds:").next().unwrap_or_default();
            let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            log.push(text.trim().to_owned());
        }
    }
}

/// What is no work of a program's: transactions, and the pool's question whether a connection lives.
const OTHERS: &[&str] = &["SELECT 1", "BEGIN", "COMMIT", "ROLLBACK"];

#[derive(QueryableByName)]
struct PlanLine {
    #[diesel(sql_type = Text)]
    detail: String,
}

impl Statements {
    /// Watches the connection of `database`, whose pool holds one and not more.
    pub async fn of(database: &Database) -> Result<Self> {
        let log = Log::default();
        let watcher = Watcher(Arc::clone(&log));
        database
            .run(move |connection| {
                connection.set_instrumentation(watcher);
                Ok(())
            })
            .await?;
        let (open, _) = database.connections();
        ensure!(open == 1, "which of {open} connections is watched?");
        Ok(Self {
            database: database.clone(),
            log,
        })
    }

    /// Those that were sent since the last call.
    pub fn take(&self) -> Vec<String> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let all = std::mem::take(&mut *log);
        let is_work = |text: &String| !OTHERS.iter().any(|other| text.starts_with(other));
        all.into_iter().filter(is_work).collect()
    }

    /// How SQLite carries a statement out, a line for each table.
    pub async fn plan(&self, statement: &str) -> Result<Vec<String>> {
        let question = format!("EXPLAIN QUERY PLAN {statement}");
        let lines = self.database.run(move |connection| {
            let lines: Vec<PlanLine> = diesel::sql_query(question).load(connection)?;
            Ok(lines)
        });
        Ok(lines.await?.into_iter().map(|line| line.detail).collect())
    }
}
