//! One process of a simulated conductor: the parts of the real one that accepted requests pass, and its life and death.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use magnum_common::ids::ConductorId;
use magnum_common::panic;
use magnum_conductor::certificates::Certificates;
use magnum_conductor::drivers::Registry;
use magnum_conductor::handlers::{Acceptor, Answerer};
use magnum_conductor::operations::at_work::AtWork;
use magnum_conductor::operations::breakers::Breakers;
use magnum_conductor::operations::keeper::LeaseKeeper;
use magnum_conductor::operations::lease_watch::LeaseWatch;
use magnum_conductor::operations::monitor::CallMonitors;
use magnum_conductor::operations::notice::NoticeQueue;
use magnum_conductor::operations::replies::{self, Replies, ReplySink};
use magnum_conductor::operations::stored_reply::Reply;
use magnum_conductor::operations::{Executor, OperationServices, OperationTiming, Signals, sweep};
use magnum_conductor::periodic::announce::Announcer;
use magnum_conductor::periodic::status_sync::{Pace, StatusSync};
use magnum_conductor::rpc::Consumer;
use magnum_conductor::seal::JournalKey;
use magnum_conductor::workflows::choose_driver::LoadedDrivers;
use magnum_config::{ConductorSection, DriversSection, Settings};
use magnum_db::simulated::Seam;
use magnum_driver_api::Driver;
use magnum_drivers::ResolutionRules;
use magnum_rpc::{Addressing, PublishError, ReplyAddress, RpcOptions, Transport, connect_with};
use magnum_rpc_server::RpcServer;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::cloud::Cloud;
use super::driver::SimulatedDriver;
use super::line::{Line, Stage};
use super::plan::{DRIVERS, End, Ending, LEASE, LIMIT};
use super::record::Record;
use super::verdict::{Life, Seen};

/// How long others count a conductor as alive after it has announced its drivers.
pub const ALIVE: Duration = Duration::from_secs(60);

/// After how long a process is started again that its driver has ended.
const RESTART: Duration = Duration::from_secs(5);

/// What all conductors of a schedule share besides the database.
#[derive(Clone)]
pub struct Surroundings {
    /// The schedule.
    pub stage: Arc<Stage>,
    /// What drivers build in.
    pub cloud: Arc<Cloud>,
    /// What drivers write down.
    pub record: Arc<Record>,
    /// Answers that were sent, by the call.
    pub answers: Arc<Answers>,
    /// The name of the broker.
    pub broker: String,
    /// Settings for what takes all of them.
    pub settings: Arc<Settings>,
    /// The key of the journal.
    pub key: Arc<JournalKey>,
}

/// Takes answers instead of a caller's queue.
#[derive(Default)]
pub struct Answers(Mutex<BTreeMap<String, Vec<Reply>>>);

impl Answers {
    /// All that were sent, by the call.
    pub fn sent(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Reply>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ReplySink for Answers {
    async fn answer(&self, to: &ReplyAddress, answer: &Reply) -> Result<(), PublishError> {
        let mut sent = self.sent();
        sent.entry(to.msg_id.clone()).or_default().push(answer.clone());
        Ok(())
    }

    async fn alive(&self, _: &ReplyAddress) -> Result<(), PublishError> {
        Ok(())
    }
}

impl Surroundings {
    /// A way to the broker.
    pub fn transport(&self) -> Result<Arc<dyn Transport>> {
        let options = RpcOptions::for_url(&format!("fake://{}", self.broker))?;
        Ok(connect_with(options, "simulation")?)
    }
}

/// The life of a member: its processes, one after the other.
pub async fn live(around: Surroundings, member: usize, seen: Arc<Seen>) -> Result<()> {
    let plan = around.stage.plan.members[member].clone();
    sleep(plan.joins).await;
    let mut drivers = plan.drivers.as_slice();
    let mut ends = plan.ends.iter().copied();
    let mut end = ends.next();
    for number in 0.. {
        let (stage, name) = (Arc::clone(&around.stage), format!("m{member}.{number}"));
        stage.trace.note(&name, format_args!("starts"));
        let life = seen.begin(member, drivers, stage.trace.elapsed());
        let line = Arc::new(Line::new(stage, name, member, end.map(|end| end.how)));
        process(&around, drivers, &line, end, |learn| seen.learn(life, learn)).await?;
        let until = around.stage.trace.elapsed();
        seen.learn(life, |life| life.until = Some(until));
        if line.is_poisoned() {
            // Started again as after any crash; its own end is yet to come.
            sleep(RESTART).await;
            continue;
        }
        match end.and_then(|end| end.back) {
            Some(back) => sleep(back).await,
            None => break,
        }
        if end.is_some_and(|end| end.loses_drivers) {
            drivers = &DRIVERS[..1];
        }
        end = ends.next();
    }
    Ok(())
}

/// One process, from its start to its end.
async fn process(
    around: &Surroundings,
    drivers: &[&str],
    line: &Arc<Line>,
    end: Option<End>,
    learn: impl Fn(&mut dyn FnMut(&mut Life)),
) -> Result<()> {
    let process = tokio::select! {
        biased;
        () = line.death.notified() => return Ok(()),
        process = Process::start(around, drivers, line) => process?,
    };
    let told = tokio::select! {
        biased;
        () = line.death.notified() => None,
        how = told(&around.stage, end) => how,
        () = count(&around.stage, line, &learn) => None,
    };
    let broken = match told {
        Some(Ending::Stopped(_)) => process.stop(line).await,
        _ => process.crash(line).await,
    };
    learn(&mut |life| life.broken.clone_from(&broken));
    Ok(())
}

/// Waits until the process is ended from outside.
async fn told(stage: &Stage, end: Option<End>) -> Option<Ending> {
    let how = end.map(|end| end.how);
    let Some(Ending::Killed(after) | Ending::Stopped(after)) = how else {
        return std::future::pending().await;
    };
    if stage.trace.elapsed() + after >= stage.plan.quiet {
        return std::future::pending().await;
    }
    sleep(after).await;
    how
}

/// Counts what is asked of the database when all troubles are over. Never ends.
async fn count(stage: &Stage, line: &Line, learn: impl Fn(&mut dyn FnMut(&mut Life))) {
    sleep(stage.plan.quiet.saturating_sub(stage.trace.elapsed())).await;
    let before = line.accesses();
    for seconds in 1.. {
        sleep(Duration::from_secs(1)).await;
        learn(&mut |life| life.asked = (line.accesses() - before, seconds));
    }
}

/// A process.
struct Process {
    transport: Arc<dyn Transport>,
    /// In the order of their start.
    parts: Vec<(CancellationToken, JoinHandle<()>)>,
}

impl Process {
    async fn start(around: &Surroundings, drivers: &[&str], line: &Arc<Line>) -> Result<Self> {
        let seam: Arc<dyn Seam> = Arc::clone(line) as Arc<dyn Seam>;
        let db = around.stage.store.base.through(seam);
        let me = ConductorId::for_host(&line.name);
        let drivers = drivers
            .iter()
            .map(|name| SimulatedDriver::new(name, around, Arc::clone(line)) as Arc<dyn Driver>);
        let registry = Registry::of(drivers);
        let announcer = Announcer {
            db: db.clone(),
            me: me.clone(),
            host: line.name.clone(),
            registry: registry.clone(),
            interval: ALIVE / 3,
            alive: ALIVE,
            keep: ALIVE * 2,
            changed: Arc::new(Notify::new()),
        };
        // Without it a program ends, and is started again.
        while announcer.announce().await.is_err() {
            sleep(Duration::from_secs(1)).await;
        }
        let options = section();
        let mut timing = OperationTiming::new(&options, ALIVE);
        timing.poll = Duration::from_secs(10);
        timing.driver_patience = around.stage.plan.driver_patience;
        let (answers, due) = replies::queue();
        let sink = Arc::clone(&around.answers) as Arc<dyn ReplySink>;
        let certificates = Certificates::new(&around.settings, db.clone(), JournalKey::clone(&around.key));
        let rules = ResolutionRules::from(&DriversSection::default());
        let services = OperationServices {
            drivers: Arc::new(LoadedDrivers::new(registry, rules)),
            keeper: LeaseKeeper::new(&db, me.clone(), timing.lease),
            lease_watch: LeaseWatch::new(timing.lease),
            key: Arc::clone(&around.key),
            me: me.clone(),
            certificates: certificates.made_up(),
            timing: Arc::new(timing),
            signals: Arc::new(Signals::default()),
            answers,
            monitors: CallMonitors::new(db.clone(), Arc::clone(&sink)),
            notices: NoticeQueue::default(),
            at_work: AtWork::default(),
            breakers: Breakers::default(),
            db: db.clone(),
        };
        let transport = around.transport()?;
        let server = RpcServer::start(Arc::clone(&transport), Addressing::default(), &line.name).await?;
        let mut process = Self {
            transport: Arc::clone(&transport),
            parts: Vec::new(),
        };
        process.spawn(|stop| announcer.run(stop));
        process.spawn(|stop| Replies::new(db.clone(), me.clone(), sink, due).run(stop));
        let sync = StatusSync::new(
            db.clone(),
            me.clone(),
            Arc::clone(&services.drivers),
            Arc::clone(&services.signals),
            NoticeQueue::default(),
            Pace::every(Duration::from_secs(10), &options),
        );
        process.spawn(|stop| sync.run(stop));
        process.spawn(|stop| sweep::run(services.clone(), stop));
        process.spawn(|stop| Executor::new(services.clone()).run(stop));
        let consumer = Consumer {
            server,
            transport,
            answerer: Answerer::new(db.clone(), services.certificates.clone()),
            acceptor: Acceptor::new(
                db,
                Arc::clone(&services.drivers),
                Arc::clone(&services.key),
                me,
                NoticeQueue::default(),
            ),
            answers: services.answers.clone(),
            monitors: services.monitors.clone(),
            signals: Arc::clone(&services.signals),
            batch: 8,
        };
        process.spawn(|stop| consumer.run(stop));
        Ok(process)
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&mut self, part: impl FnOnce(CancellationToken) -> F) {
        let stop = CancellationToken::new();
        self.parts.push((stop.clone(), tokio::spawn(part(stop))));
    }

    /// Ends at once. Returns what a part has said that panicked.
    async fn crash(self, line: &Line) -> Option<String> {
        line.die();
        let mut broken = None;
        for (_, part) in self.parts {
            if part.is_finished() {
                broken = panic_of(part.await).or(broken);
            } else {
                part.abort();
            }
        }
        self.transport.close().await;
        broken
    }

    /// Ends in good order, as the program does: the last part first. What does not end in time is left.
    async fn stop(mut self, line: &Line) -> Option<String> {
        let mut broken = None;
        let in_order = async {
            while let Some((stop, part)) = self.parts.pop() {
                stop.cancel();
                broken = panic_of(part.await).or_else(|| broken.take());
            }
        };
        let is_over = timeout(Duration::from_secs(100), in_order).await;
        if is_over.is_err() {
            line.note(format_args!("does not stop"));
        }
        self.crash(line).await.or(broken)
    }
}

fn panic_of(ended: Result<(), JoinError>) -> Option<String> {
    let error = ended.err().filter(JoinError::is_panic)?;
    let panic = error.into_panic();
    Some(panic::message(panic.as_ref()).unwrap_or("no message").to_owned())
}

/// The options.
fn section() -> ConductorSection {
    ConductorSection {
        operation_lease: LEASE,
        operation_retry_initial: Duration::from_secs(1),
        operation_retry_max_interval: Duration::from_secs(10),
        operation_retry_max_attempts: 4,
        update_timeout: LIMIT,
        delete_timeout: LIMIT,
        upgrade_timeout: LIMIT,
        rotation_timeout: LIMIT,
        shutdown_timeout: Duration::from_secs(10),
        ..ConductorSection::default()
    }
}
