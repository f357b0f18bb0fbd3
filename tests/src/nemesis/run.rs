//! One run: everything comes up, tenants ask, faults come and go, everything calms down, and the checker decides.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use magnum_common::clock::utc_now;
use serde_json::Value;
use tokio::time::Instant;

use super::faults::{self, Effect};
use super::kind::Kind;
use super::load::{CLIENTS, Load};
use super::plan::{Planned, Shape, plan};
use super::report::Report;
use super::service_manager;
use super::watch::Watch;
use super::world::World;
use crate::checker::history::RequestId;
use crate::checker::{Bounds, History, check, read};
use crate::raw_rpc::RawRpc;
use crate::{Backend, wait};

const DEAD_LETTERS: &str = "magnum-conductor.dead";
/// How long everything may take to come back after the last fault.
const UP_WITHIN: Duration = Duration::from_secs(90);
/// How long what is open may take to end after that: operations that were lost again and again wait for half a minute more at
/// each loss.
const SETTLES_WITHIN: Duration = Duration::from_secs(240);
/// Nothing has a time limit that short; what waits does so for the faults, and the waits after them.
const BOUNDS: Bounds = Bounds {
    after_limit: Duration::from_secs(60),
    waiting: Duration::from_secs(240),
    idle_statements: f64::INFINITY,
};

/// What is to be done.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// On this database.
    pub backend: Backend,
    /// What decides about everything that is random.
    pub seed: u64,
    /// How long faults come.
    pub span: Duration,
}

/// A fault, and what came of it.
#[derive(Debug, Clone)]
pub struct Struck {
    /// As it was planned.
    pub fault: Planned,
    /// When it began, in milliseconds since 1970.
    pub began: i64,
    /// When it was undone.
    pub ended: i64,
    /// What it did.
    pub effect: Effect,
}

/// Does it.
///
/// # Errors
/// The harness failed. What the programs did wrong is in the report.
pub async fn run(settings: Settings) -> Result<Report> {
    let shape = Shape {
        backend: settings.backend,
        conductors: 3,
        apis: 2,
    };
    let world = Box::pin(World::start(shape)).await?;
    let load = Load::new(&world, settings.seed).await?;
    let watch = Watch::default();
    let watching = watch.go_on(&world.direct);
    let doing = async {
        let struck = tokio::select! {
            struck = Box::pin(storm(&world, &load, &settings)) => struck,
            never = service_manager::work(&world) => match never? {},
        };
        watch.end();
        struck
    };
    let (struck, ()) = tokio::join!(doing, watching);
    let (struck, settled) = struck?;
    watch.look(&world.direct).await;
    let history = history(&world, &load, &watch).await?;
    let verdicts = check(&history, &BOUNDS);
    let report = Report::new(settings, struck, history, verdicts, settled);
    if !report.is_good() {
        report.keep(&world.deployment.folder)?;
    }
    Ok(report)
}

/// Tenants ask while faults come. Returns what these did, and how long it took until nothing was to do.
async fn storm(world: &World, load: &Load, settings: &Settings) -> Result<(Vec<Struck>, Result<Duration>)> {
    let asking = try_join_all((0..CLIENTS).map(|number| load.client(world, number)));
    let faults = async {
        let struck = weather(world, plan(settings.seed, world.shape, settings.span)).await;
        load.end();
        struck
    };
    let (asked, struck) = tokio::join!(asking, faults);
    asked?;
    let struck = struck?;
    let calm = Instant::now();
    world.is_up(UP_WITHIN).await?;
    let settled = settle(world, load).await.map(|()| calm.elapsed());
    Ok((struck, settled))
}

async fn weather(world: &World, plan: Vec<Planned>) -> Result<Vec<Struck>> {
    let begin = Instant::now();
    let faults = plan.into_iter().map(async |fault| {
        tokio::time::sleep_until(begin + Duration::from_millis(fault.at_ms)).await;
        let began = utc_now().timestamp_millis();
        let effect = Box::pin(faults::strike(world, &fault))
            .await
            .with_context(|| format!("{fault:?}"))?;
        let ended = utc_now().timestamp_millis();
        eprintln!("{:?} at {:?}: {effect:?}", fault.kind, fault.place);
        Ok::<_, anyhow::Error>(Struck {
            fault,
            began,
            ended,
            effect,
        })
    });
    try_join_all(faults).await
}

/// Waits until everything that was promised is in the journal or set aside, and has ended.
async fn settle(world: &World, load: &Load) -> Result<()> {
    let promised: BTreeSet<RequestId> = load
        .told()
        .into_iter()
        .filter(|told| told.heard.is_promise() && told.kind != "no_such_method")
        .filter_map(|told| told.id)
        .collect();
    wait::until("everything to end", SETTLES_WITHIN, async || {
        let operations = read::operations(&world.direct).await?;
        let open: Vec<_> = operations.iter().filter(|one| !one.has_ended()).collect();
        ensure!(open.is_empty(), "{} are open, such as {}", open.len(), open[0]);
        let mut promised = promised.iter();
        let missing = promised.find(|id| !operations.iter().any(|one| one.is_for(id)));
        ensure!(missing.is_none(), "{missing:?} is not in the journal");
        let waiting = world
            .deployment
            .vhost
            .management()
            .messages("magnum-conductor")
            .await?;
        ensure!(waiting == 0, "{waiting} messages wait");
        Ok(())
    })
    .await
}

async fn history(world: &World, load: &Load, watch: &Watch) -> Result<History> {
    let record = &world.deployment.record;
    let (calls, overlaps) = read::calls(record)?;
    let mut operations = read::operations(&world.direct).await?;
    watch.set_times(&mut operations);
    Ok(History {
        told: load.told(),
        calls,
        overlaps,
        operations,
        dead_letters: dead_letters(world).await?,
        clusters: read::clusters(&world.direct).await?,
        built: record.built()?,
        idle: Vec::new(),
    })
}

/// The ids of all dead letters.
async fn dead_letters(world: &World) -> Result<Vec<RequestId>> {
    let vhost = &world.deployment.vhost;
    let queues = vhost.management().queues().await?;
    let mut letters = Vec::new();
    // It is made with the first dead letter.
    if !queues.iter().any(|queue| queue["name"] == DEAD_LETTERS) {
        return Ok(letters);
    }
    // A queue has no leader for a while after its broker was killed, and the broker says so after its own time limit.
    let bodies = wait::until("the dead letters", SETTLES_WITHIN, async || {
        RawRpc::connect(vhost).await?.look_at_all(DEAD_LETTERS).await
    })
    .await?;
    for body in bodies {
        let envelope: Value = serde_json::from_slice(&body)?;
        let message = envelope["oslo.message"].as_str().context("no oslo.message")?;
        let message: Value = serde_json::from_str(message)?;
        let id = message["_unique_id"].as_str().context("no _unique_id")?;
        letters.push(RequestId::Message(id.to_owned()));
    }
    Ok(letters)
}

/// Kinds of faults that came often enough, and never had an effect: they prove nothing.
pub fn without_effect(struck: &[Struck]) -> Vec<Kind> {
    const OFTEN: usize = 10;
    let is_idle = |kind: &Kind| {
        let mut of_kind = struck.iter().filter(|one| one.fault.kind == *kind);
        let count = of_kind.clone().count();
        count >= OFTEN && of_kind.all(|one| matches!(one.effect, Effect::None(_)))
    };
    Kind::ALL.into_iter().filter(is_idle).collect()
}
