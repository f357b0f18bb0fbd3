//! One schedule from begin to end.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use magnum_conductor::seal::JournalKey;
use magnum_config::Settings;
use magnum_db::KeepPrepared as _;
use magnum_rpc::Addressing;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::client::{self, Clients, Subject};
use super::conductor::{self, Answers, Surroundings};
use super::database::Store;
use super::line::{Onlooker, Stage};
use super::plan::{LIMIT, Plan};
use super::randomness::{self, Runtimes};
use super::trace::Trace;
use super::verdict::{self, Seen};
use crate::checker::read;

/// Schedules before the first one that counts.
const WARM_UP: u64 = 4;

/// How often it is looked whether all is done.
const LOOK: Duration = Duration::from_secs(2);

/// What schedules of a process share.
pub struct Workshop {
    runtimes: Runtimes,
    store: Arc<Store>,
    key: Arc<JournalKey>,
    settings: Arc<Settings>,
}

/// Which schedule, and how.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Its seed.
    pub seed: u64,
    /// What is left out of its plan.
    pub without: BTreeSet<usize>,
    /// Whether it is told in words.
    pub in_words: bool,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Of everything that happened.
    pub hash: u64,
    /// What was not as promised.
    pub verdicts: Vec<String>,
    /// Operations.
    pub operations: usize,
    /// Virtual time.
    pub took: Duration,
    /// Calls of drivers.
    pub driver_calls: usize,
    /// The words.
    pub lines: Vec<String>,
}

/// How many operations there are that a message asked for, and how many operations have something left to be done.
const OPEN: &str = "SELECT \
    (SELECT COUNT(*) FROM conductor_operation WHERE message_id IS NOT NULL) AS known, \
    (SELECT COUNT(*) FROM conductor_operation \
        WHERE state NOT IN ('succeeded', 'failed', 'refused', 'cancelled') OR reply_pending = true) AS open";

#[derive(QueryableByName)]
struct Open {
    #[diesel(sql_type = BigInt)]
    known: i64,
    #[diesel(sql_type = BigInt)]
    open: i64,
}

impl Workshop {
    /// The only one of a process: see [`Runtimes`]. Keeps a key in `folder`.
    pub fn new(folder: &Path) -> Result<Self> {
        let mut workshop = Self {
            runtimes: Runtimes::new()?,
            store: Arc::new(Store::new()?),
            key: Arc::new(JournalKey::load_or_create(&folder.join("journal.key"))?),
            settings: Arc::default(),
        };
        // What is made once in a process, when it is first needed, takes randomness of whoever needs it first.
        for seed in 0..WARM_UP {
            workshop.run(&Wanted {
                seed,
                ..Wanted::default()
            })?;
        }
        Ok(workshop)
    }

    /// Lets the place of a schedule in the process pass unused.
    pub fn skip(&mut self) -> Result<()> {
        self.runtimes.build_next().map(drop)
    }

    /// Runs a schedule.
    pub fn run(&mut self, wanted: &Wanted) -> Result<Outcome> {
        let runtime = self.runtimes.build_next()?;
        self.store.empty()?;
        let (store, key, settings) = (
            Arc::clone(&self.store),
            Arc::clone(&self.key),
            Arc::clone(&self.settings),
        );
        let ran = randomness::seeded(wanted.seed, move || {
            runtime.block_on(schedule(wanted, store, key, settings))
        })?;
        match ran {
            Ok(outcome) => outcome,
            Err(panic) => {
                // A transaction may be open on the connection.
                self.store = Arc::new(Store::new()?);
                let text = magnum_common::panic::message(panic.as_ref()).unwrap_or("no message");
                bail!("the simulation itself panicked with seed {}: {text}", wanted.seed)
            }
        }
    }
}

async fn schedule(
    wanted: &Wanted,
    store: Arc<Store>,
    key: Arc<JournalKey>,
    settings: Arc<Settings>,
) -> Result<Outcome> {
    let plan = Plan::of(wanted.seed).without(&wanted.without);
    let dice = StdRng::seed_from_u64(!wanted.seed);
    let stage = Arc::new(Stage::new(plan, store, Trace::new(wanted.in_words), dice));
    let around = Surroundings {
        stage: Arc::clone(&stage),
        cloud: Arc::default(),
        record: Arc::default(),
        answers: Arc::new(Answers::default()),
        broker: format!("simulation-{}", wanted.seed),
        settings,
        key,
    };
    // A broker ends with its last transport.
    let transport = around.transport()?;
    let seen = Arc::new(Seen::default());
    let members: Vec<JoinHandle<Result<()>>> = (0..stage.plan.members.len())
        .map(|member| tokio::spawn(conductor::live(around.clone(), member, Arc::clone(&seen))))
        .collect();
    let clients = Arc::new(Clients::default());
    let subjects = stage.plan.clusters.iter().enumerate();
    let subjects: Vec<_> = subjects
        .map(|(number, driver)| Arc::new(Subject::new(number, driver)))
        .collect();
    let requests = stage.plan.requests.iter();
    let asking: Vec<JoinHandle<Result<()>>> = requests
        .map(|asked| {
            let subject = Arc::clone(&subjects[asked.cluster]);
            tokio::spawn(client::ask(around.clone(), *asked, subject, Arc::clone(&clients)))
        })
        .collect();
    let last = stage.plan.quiet + LIMIT * u32::try_from(asking.len() + 2)?;
    loop {
        sleep(LOOK).await;
        let is_asked = asking.iter().all(JoinHandle::is_finished);
        let waiting = transport.queue(&Addressing::default().names.topic).await?;
        let is_taken = waiting.is_none_or(|queue| queue.messages == 0);
        if is_asked && is_taken && nothing_is_open(&stage, &clients)? || stage.trace.elapsed() > last {
            break;
        }
    }
    for asked in asking {
        asked.await.context("a client broke")??;
    }
    for member in members {
        if member.is_finished() {
            member.await.context("a member broke")??;
        } else {
            member.abort();
        }
    }
    let db = stage.store.base.through(Arc::new(Onlooker(Arc::clone(&stage))));
    let (operations, clusters) = (read::operations(&db).await?, read::clusters(&db).await?);
    for operation in &operations {
        stage.trace.note("end", format_args!("{operation}"));
    }
    let record = around.record.written();
    let outcome = verdict::Evidence {
        around: &around,
        seen: &seen,
        told: clients.told(),
        calls: clients.calls(),
        operations,
        clusters,
        record,
    };
    Ok(Outcome {
        verdicts: outcome.verdicts(),
        operations: outcome.operations.len(),
        driver_calls: outcome.record.calls.len(),
        hash: stage.trace.hash(),
        took: stage.trace.elapsed(),
        lines: stage.trace.lines(),
    })
}

fn nothing_is_open(stage: &Stage, clients: &Clients) -> Result<bool> {
    let arrived = i64::try_from(clients.arrived())?;
    stage.store.with(stage.now_ms(), |conn| {
        let counts: Open = diesel::sql_query(OPEN).keep_prepared().get_result(conn)?;
        Ok(counts.known >= arrived && counts.open == 0)
    })
}
