//! A schedule: who takes part, what is asked for, and what goes wrong. Which one a seed means says [`draw`].

pub mod draw;

use std::collections::BTreeSet;
use std::time::Duration;

/// The drivers that there are. Everybody has the first one.
pub const DRIVERS: [&str; 2] = ["alpha", "beta"];

/// The lease of an operation.
pub const LEASE: Duration = Duration::from_secs(30);

/// The time limit of every operation.
pub const LIMIT: Duration = Duration::from_secs(180);

/// One schedule.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Who takes part.
    pub members: Vec<Member>,
    /// Drivers of the clusters.
    pub clusters: Vec<&'static str>,
    /// What is asked for, in order of time.
    pub requests: Vec<Asked>,
    /// What goes wrong between conductors and what they need.
    pub troubles: Vec<Trouble>,
    /// How drivers behave.
    pub weather: Weather,
    /// A call of a driver for this cluster ends its conductor, so often.
    pub poison: Option<(usize, u32)>,
    /// How long an operation waits for a conductor that has its driver.
    pub driver_patience: Duration,
    /// When all troubles are over.
    pub quiet: Duration,
}

/// A conductor, with all the processes that it is one after the other.
#[derive(Debug, Clone)]
pub struct Member {
    /// What it has loaded.
    pub drivers: Vec<&'static str>,
    /// By how much the database's clock is off for it.
    pub offset_ms: i64,
    /// When it starts.
    pub joins: Duration,
    /// How its processes end, one after the other; the one after the last does not.
    pub ends: Vec<End>,
}

/// The end of a process, and when the next one starts.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// How.
    pub how: Ending,
    /// After how long it is started again; never, if none.
    pub back: Option<Duration>,
    /// From then on it has only what everybody has loaded: somebody took the folders of the other drivers away.
    pub loses_drivers: bool,
}

/// How a process ends.
#[derive(Debug, Clone, Copy)]
pub enum Ending {
    /// At once, before its access of this number is begun.
    BeforeAccess(u32),
    /// At once, when its access of this number was carried out.
    AfterAccess(u32),
    /// At once, when it has lived so long.
    Killed(Duration),
    /// In good order.
    Stopped(Duration),
}

/// Something goes wrong between conductors and the database, or what else their hosts have.
#[derive(Debug, Clone, Copy)]
pub struct Trouble {
    /// What.
    pub what: Wrong,
    /// For whom; for all, if none.
    pub who: Option<usize>,
    /// From when on.
    pub from: Duration,
    /// Until when.
    pub until: Duration,
    /// How many of a hundred accesses, or calls of drivers.
    pub share: u32,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
pub enum Wrong {
    /// Nobody answers, and it is not known whether a commit took effect.
    Away,
    /// A failure in words that nobody knows.
    Unknown,
    /// A row is held by somebody.
    Locked,
    /// A deadlock.
    Conflict,
    /// Answers take so long.
    Slow(Duration),
    /// Nothing arrives until this is over, and then all of it: the line, or the whole process, stands still.
    Stalled,
    /// The same of answers alone: what is asked for is carried out.
    Silent,
    /// No driver can be started on that host.
    NoProcesses,
}

impl Wrong {
    /// Whether it is of one host alone, and all the time: not of some accesses.
    pub const fn is_of_a_host(self) -> bool {
        matches!(self, Self::Stalled | Self::Silent | Self::NoProcesses)
    }
}

/// Of a hundred calls of drivers, how many …
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    /// … fail for now.
    pub transient: u32,
    /// … fail for good.
    pub permanent: u32,
    /// … panic.
    pub panics: u32,
    /// … never return.
    pub hangs: u32,
    /// … go on in the cloud.
    pub in_progress: u32,
    /// The longest that one works.
    pub longest: Duration,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// When.
    pub at: Duration,
    /// Of which cluster.
    pub cluster: usize,
    /// For what.
    pub what: What,
    /// How the message travels.
    pub sent: Sent,
    /// Whether somebody waits for an answer.
    pub is_call: bool,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A new cluster.
    Create,
    /// So many workers.
    Update(i32),
    /// A node group of its own.
    AddGroup,
    /// That it goes.
    RemoveGroup,
    /// New certificates.
    RotateCa,
    /// The end.
    Delete,
}

/// How a message travels.
#[derive(Debug, Clone, Copy)]
pub enum Sent {
    /// Once.
    Once,
    /// Twice, the second time so much later: its confirmation was lost.
    Twice(Duration),
    /// It is not confirmed, and has arrived or not.
    Unconfirmed(bool),
}

impl Plan {
    /// The lowest and the highest of what conductors' clocks are off by, and none, in milliseconds.
    pub fn offsets_ms(&self) -> (i64, i64) {
        let offsets = || self.members.iter().map(|member| member.offset_ms);
        (
            offsets().min().unwrap_or(0).min(0),
            offsets().max().unwrap_or(0).max(0),
        )
    }

    /// The same without some of what goes wrong or is asked for, by number: see [`Self::parts`].
    #[must_use]
    pub fn without(mut self, left_out: &BTreeSet<usize>) -> Self {
        let mut number = 0;
        let mut stays = || {
            number += 1;
            !left_out.contains(&(number - 1))
        };
        self.troubles.retain(|_| stays());
        for member in &mut self.members {
            // Whoever does not end lives on.
            let last = member.ends.len();
            let first_out = (0..last).filter(|_| !stays()).min().unwrap_or(last);
            member.ends.truncate(first_out);
        }
        self.requests.retain(|_| stays());
        if !stays() {
            self.weather = Weather::fair();
        }
        if !stays() {
            self.poison = None;
        }
        self
    }

    /// What is wrong for this member at this moment.
    pub fn troubles_of(&self, member: usize, now: Duration) -> impl Iterator<Item = &Trouble> {
        self.troubles.iter().filter(move |trouble| {
            trouble.who.is_none_or(|who| who == member) && (trouble.from..trouble.until).contains(&now)
        })
    }

    /// How many parts can be left out.
    pub fn parts(&self) -> usize {
        let ends: usize = self.members.iter().map(|member| member.ends.len()).sum();
        self.troubles.len() + ends + self.requests.len() + 2
    }
}

impl Weather {
    /// Everything succeeds, soon.
    pub const fn fair() -> Self {
        Self {
            transient: 0,
            permanent: 0,
            panics: 0,
            hangs: 0,
            in_progress: 0,
            longest: Duration::from_secs(2),
        }
    }
}
