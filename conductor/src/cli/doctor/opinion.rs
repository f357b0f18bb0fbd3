//! What of the facts is worth a person's time, why it is so, and what to do about it. Pure.

use std::collections::HashSet;
use std::process::ExitCode;
use std::time::Duration;

use magnum_common::model::MagnumService;
use magnum_db::read::operations::Operation;

use super::facts::{Facts, Queues, Stored};

/// A queued operation whose turn it is begins sooner than this on a conductor that has room.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);

/// An operation that failed longer ago is history.
const LATELY: Duration = Duration::from_secs(24 * 3600);

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// As it should be.
    Well,
    /// A person should look at it.
    Look,
    /// It does not go on by itself.
    Broken,
}

impl Level {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Well => "ok",
            Self::Look => "look",
            Self::Broken => "BROKEN",
        }
    }

    pub(super) fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Well => 0,
            Self::Look => 1,
            Self::Broken => 2,
        })
    }
}

/// One thing that can be said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remark {
    pub(super) level: Level,
    /// What it is about: a part of the installation, or a cluster by name.
    pub(super) about: String,
    /// What is so, and why.
    pub(super) text: String,
    /// What to do.
    pub(super) next: Option<String>,
    pub(super) operation: Option<String>,
    pub(super) cluster: Option<String>,
}

impl Remark {
    fn new(level: Level, about: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            level,
            about: about.into(),
            text: text.into(),
            next: None,
            operation: None,
            cluster: None,
        }
    }

    fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

/// Everything that can be said, the parts of the installation first, then what is stuck, the oldest first.
pub(super) fn of(facts: &Facts) -> Vec<Remark> {
    let mut remarks = vec![database(facts)];
    remarks.extend(broker(facts));
    remarks.extend(keystone(facts));
    if let Ok(stored) = &facts.database {
        remarks.extend(conductors(facts, stored));
        remarks.extend(drivers(stored));
        remarks.extend(operations(facts, stored));
    }
    remarks
}

fn database(facts: &Facts) -> Remark {
    match &facts.database {
        Ok(_) => Remark::new(Level::Well, "database", &facts.database_url),
        Err(error) => Remark::new(
            Level::Broken,
            "database",
            format!("{}: {error}", facts.database_url),
        )
        .next("see that it runs, and [database] connection; nothing else can be told without it"),
    }
}

fn broker(facts: &Facts) -> Vec<Remark> {
    let queues = match &facts.broker {
        None => return Vec::new(),
        Some(Ok(queues)) => *queues,
        Some(Err(error)) => {
            return vec![
                Remark::new(Level::Broken, "broker", format!("{}: {error}", facts.broker_url))
                    .next("see that it runs, and [DEFAULT] transport_url; requests get 503 until it answers"),
            ];
        }
    };
    let Queues {
        requests,
        dead_letters,
    } = queues;
    let mut remarks = vec![match requests {
        None => Remark::new(
            Level::Broken,
            "broker",
            format!("{} has no queue of requests: no conductor has ever run", facts.broker_url),
        )
        .next("start magnum-conductor; the API answers 503 until then"),
        Some(state) if state.consumers == 0 => Remark::new(
            Level::Broken,
            "broker",
            format!("{} requests wait and nobody takes them", state.messages),
        )
        .next("start magnum-conductor, or see in its log why it takes none: it pauses while its database is away"),
        Some(state) => Remark::new(
            Level::Well,
            "broker",
            format!(
                "{}: {} requests wait, {} conductors take them",
                facts.broker_url, state.messages, state.consumers
            ),
        ),
    }];
    if let Some(state) = dead_letters
        && state.messages > 0
    {
        remarks.push(
            Remark::new(
                Level::Look,
                "dead letters",
                format!("{} messages were set aside", state.messages),
            )
            .next("magnum-conductor dead-letters list"),
        );
    }
    remarks
}

fn keystone(facts: &Facts) -> Option<Remark> {
    Some(match facts.keystone.as_ref()? {
        Ok(identity) => Remark::new(Level::Well, "Keystone", identity),
        Err(error) => Remark::new(Level::Broken, "Keystone", error).next(
            "see [keystone_auth] and [keystone_authtoken]; drivers cannot act in the cloud until it answers",
        ),
    })
}

fn is_up(service: &MagnumService, facts: &Facts) -> bool {
    let down_after = i64::try_from(facts.service_down_time.as_secs()).unwrap_or(i64::MAX);
    service.is_up(facts.now, down_after)
}

fn conductors(facts: &Facts, stored: &Stored) -> Vec<Remark> {
    let (up, down): (Vec<_>, Vec<_>) = stored.services.iter().partition(|service| is_up(service, facts));
    let host = |service: &&MagnumService| service.host.clone().unwrap_or_else(|| "?".to_owned());
    let mut remarks = Vec::new();
    if up.is_empty() {
        remarks.push(
            Remark::new(
                Level::Broken,
                "conductors",
                "none is up: what was accepted is not carried out",
            )
            .next("start magnum-conductor"),
        );
    } else {
        let hosts: Vec<String> = up.iter().map(host).collect();
        remarks.push(Remark::new(
            Level::Well,
            "conductors",
            format!("{} up: {}", up.len(), hosts.join(", ")),
        ));
    }
    for service in down {
        let seen = service.last_seen_up.or(service.updated_at).or(service.created_at);
        let seen = seen.map_or_else(
            || "never".to_owned(),
            |seen| format!("{} ago", age((facts.now - seen).num_milliseconds())),
        );
        remarks.push(
            Remark::new(
                Level::Look,
                "conductors",
                format!("{} is down; it was seen {seen}", host(&service)),
            )
            .next("start it, or forget it where it was taken away: others do its work"),
        );
    }
    remarks
}

fn drivers(stored: &Stored) -> Vec<Remark> {
    let (loaded, failed): (Vec<_>, Vec<_>) =
        stored.announced.iter().partition(|driver| driver.error.is_none());
    let mut names: Vec<String> = loaded
        .iter()
        .map(|driver| format!("{} {}", driver.announcement.name, driver.announcement.version))
        .collect();
    names.sort();
    names.dedup();
    let mut remarks = vec![if names.is_empty() {
        Remark::new(Level::Broken, "drivers", "no conductor has announced one: no cluster can be built").next(
            "`magnum-driver-manage create` makes one, `magnum-driver-manage adopt` takes over those of a Python \
             environment; Magnum's own conductors announce none",
        )
    } else {
        Remark::new(Level::Well, "drivers", names.join(", "))
    }];
    for driver in failed {
        let why = driver.error.as_deref().unwrap_or_default();
        remarks.push(
            Remark::new(
                Level::Look,
                "drivers",
                format!(
                    "{} on {} does not load: {why}",
                    driver.announcement.name, driver.host
                ),
            )
            .next("magnum-driver-manage check FOLDER, then SIGHUP to the conductor"),
        );
    }
    remarks
}

fn operations(facts: &Facts, stored: &Stored) -> Vec<Remark> {
    let up = stored.services.iter().any(|service| is_up(service, facts));
    let mut remarks = Vec::new();
    let mut busy: HashSet<&str> = HashSet::new();
    // The oldest first: it is what the others of its cluster wait for.
    for operation in stored.open.iter().rev() {
        let is_first = busy.insert(&operation.cluster_uuid);
        if let Some(remark) = stuck(operation, stored, up, is_first) {
            remarks.push(about(remark, operation, stored));
        }
    }
    for cluster in &stored.unattended {
        let name = cluster.name.clone().unwrap_or_else(|| cluster.uuid.to_string());
        let status = cluster.status.map_or("?", |status| status.as_str());
        let mut remark = Remark::new(
            Level::Look,
            name,
            format!("{status}, and no operation works on it: a conductor of Magnum has begun it"),
        )
        .next("its driver is looked at until it says how that ended; a delete ends it in any case");
        remark.cluster = Some(cluster.uuid.to_string());
        remarks.push(remark);
    }
    let since = stored.now_ms.saturating_sub(ms(LATELY));
    for operation in stored.failed.iter().rev() {
        if operation.ended_ms.is_some_and(|ended| ended >= since) {
            let remark = Remark::new(
                Level::Look,
                "",
                format!("{} failed: {}", operation.kind, reason(operation)),
            );
            let next = format!(
                "remove the cause, then `magnum-conductor operations retry {}`",
                operation.uuid
            );
            remarks.push(about(remark.next(next), operation, stored));
        }
    }
    if remarks.is_empty() {
        remarks.push(Remark::new(
            Level::Well,
            "operations",
            format!(
                "{} at work, none is stuck, none has failed within a day",
                stored.open.len()
            ),
        ));
    }
    remarks
}

/// Names what a remark is about.
fn about(mut remark: Remark, operation: &Operation, stored: &Stored) -> Remark {
    let uuid = &operation.cluster_uuid;
    remark.about = stored.names.get(uuid).unwrap_or(uuid).clone();
    remark.operation = Some(operation.uuid.clone());
    remark.cluster = Some(uuid.clone());
    remark
}

/// Why an open operation does not go on, if it does not.
fn stuck(operation: &Operation, stored: &Stored, up: bool, is_first: bool) -> Option<Remark> {
    let (kind, id) = (&operation.kind, &operation.uuid);
    let waited = stored.now_ms.saturating_sub(operation.created_ms);
    if !up {
        let text = format!(
            "{kind} was accepted {} ago and waits for a conductor",
            age(waited)
        );
        return Some(Remark::new(Level::Broken, "", text).next("start magnum-conductor"));
    }
    if let Some(driver) = missing_driver(operation, stored) {
        let text = format!("{kind} waits for a conductor that has the driver {driver}");
        let next = format!("start one, or `magnum-conductor operations discard {id} --reason TEXT`");
        return Some(Remark::new(Level::Broken, "", text).next(next));
    }
    match operation.state.as_str() {
        // Behind another one of its cluster: that one is what matters.
        "queued" if !is_first => None,
        "queued" if waited > ms(BEGINS_WITHIN) => {
            let text = format!("{kind} has been waiting for its turn for {}", age(waited));
            Some(
                Remark::new(Level::Look, "", text)
                    .next("conductors may all be at work: [conductor] operation_workers, or more of them"),
            )
        }
        "retrying" => {
            let due = operation.next_attempt_ms.map_or(0, |due| due - stored.now_ms);
            let text = format!(
                "{kind} has failed {} times and is tried again in {}: {}",
                operation.failures,
                age(due),
                reason(operation)
            );
            let next = format!("remove the cause; `magnum-conductor operations retry {id}` tries at once");
            Some(Remark::new(Level::Look, "", text).next(next))
        }
        "running" | "observing" => late(operation, stored),
        _ => None,
    }
}

/// An operation that is past its time, or whose conductor has lost it.
fn late(operation: &Operation, stored: &Stored) -> Option<Remark> {
    let (kind, id) = (&operation.kind, &operation.uuid);
    if let Some(deadline) = operation.deadline_ms
        && deadline < stored.now_ms
    {
        let text = format!("{kind} is {} over its time limit", age(stored.now_ms - deadline));
        let next =
            format!("it is given up by the conductor that has it; `magnum-conductor operations show {id}`");
        return Some(Remark::new(Level::Look, "", text).next(next));
    }
    let lost = operation
        .lease_expires_ms
        .filter(|expires| *expires > 0 && stored.now_ms - expires > ms(BEGINS_WITHIN))?;
    let owner = operation.owner.as_deref().unwrap_or("its conductor");
    let text = format!(
        "{kind} was lost by {owner} {} ago, and no other has taken it",
        age(stored.now_ms - lost)
    );
    Some(Remark::new(Level::Broken, "", text).next("see the logs of the conductors that are up"))
}

/// The driver that an operation needs and no conductor has announced.
fn missing_driver(operation: &Operation, stored: &Stored) -> Option<String> {
    let (name, version) = (operation.driver.as_ref()?, operation.driver_version.as_ref()?);
    let is_there = stored
        .announced
        .iter()
        .any(|driver| driver.error.is_none() && driver.announcement.name == *name);
    (!is_there).then(|| format!("{name} {version}"))
}

/// The first line of what the operation says.
fn reason(operation: &Operation) -> &str {
    let said = operation.reason.as_deref().or(operation.progress_text.as_deref());
    said.and_then(|text| text.lines().next())
        .unwrap_or("it says nothing")
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A time in whole seconds, such as `2h 3m 4s`.
fn age(ms: i64) -> String {
    let seconds = u64::try_from(ms / 1000).unwrap_or(0);
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
}
