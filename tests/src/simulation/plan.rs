//! What a seed means: who takes part, what is asked for, and what goes wrong. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// The drivers that there are. Everybody has the first one.
pub const DRIVERS: [&str; 2] = ["alpha", "beta"];

/// The lease of an operation.
pub const LEASE: Duration = Duration::from_secs(30);

/// The time limit of every operation.
pub const LIMIT: Duration = Duration::from_secs(180);

/// By how much the clock of a conductor's database may be off, in milliseconds to either side: by one clock, two may differ by
/// more than half of a lease, and still tell that a conductor is alive which announced itself in time.
const MOST_OFFSET_MS: i64 = 8000;

/// One schedule.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Who takes part.
    pub members: Vec<Member>,
    /// Drivers of the clusters.
    pub clusters: Vec<&'static str>,
    /// What is asked for, in order of time.
    pub requests: Vec<Asked>,
    /// What goes wrong with the database.
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

/// Something goes wrong between conductors and the database.
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
    /// How many of a hundred accesses.
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
    /// … cannot be made on that conductor.
    pub not_here: u32,
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

    /// The schedule of this seed.
    pub fn of(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let random = &mut random;
        let quiet = Duration::from_secs(if one_in(random, 12) { 240 } else { 75 });
        let count = random.random_range(2..=5);
        let is_offset = one_in(random, 4);
        let members = (0..count)
            .map(|number| member(random, number, is_offset, quiet))
            .collect();
        let clusters: Vec<&'static str> = (0..random.random_range(1..=3))
            .map(|_| DRIVERS[usize::from(one_in(random, 4))])
            .collect();
        let requests = requests(random, clusters.len());
        let troubles = if one_in(random, 3) {
            Vec::new()
        } else {
            (0..random.random_range(1..=3))
                .map(|_| trouble(random, count, quiet))
                .collect()
        };
        Self {
            members,
            requests,
            troubles,
            weather: weather(random),
            poison: one_in(random, 40)
                .then(|| (random.random_range(0..clusters.len()), random.random_range(1..=4))),
            clusters,
            driver_patience: if one_in(random, 6) {
                Duration::from_secs(20)
            } else {
                Duration::from_secs(120)
            },
            quiet,
        }
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
            not_here: 0,
            in_progress: 0,
            longest: Duration::from_secs(2),
        }
    }
}

fn one_in(random: &mut StdRng, many: u32) -> bool {
    random.random_range(0..many) == 0
}

fn seconds(random: &mut StdRng, from: u64, to: u64) -> Duration {
    Duration::from_millis(random.random_range(from * 1000..=to * 1000))
}

fn member(random: &mut StdRng, number: usize, is_offset: bool, quiet: Duration) -> Member {
    let has_all = one_in(random, 2);
    let joins = if number == 0 || !one_in(random, 4) {
        Duration::from_millis(random.random_range(0..50))
    } else {
        seconds(random, 0, 30)
    };
    let ends = if one_in(random, 2) {
        0
    } else {
        random.random_range(1..=3)
    };
    let ends = (0..ends)
        .map(|_| {
            let how = match random.random_range(0..8) {
                0..3 => Ending::BeforeAccess(random.random_range(1..60)),
                3..6 => Ending::AfterAccess(random.random_range(1..60)),
                6 => Ending::Killed(seconds(random, 1, quiet.as_secs())),
                _ => Ending::Stopped(seconds(random, 1, quiet.as_secs())),
            };
            // The first one always comes back: somebody has to be there in the end.
            let back = (number == 0 || !one_in(random, 4)).then(|| seconds(random, 0, 20));
            End { how, back }
        })
        .collect();
    Member {
        drivers: DRIVERS[..if has_all { 2 } else { 1 }].to_vec(),
        offset_ms: if is_offset {
            random.random_range(-MOST_OFFSET_MS..=MOST_OFFSET_MS)
        } else {
            0
        },
        joins,
        ends,
    }
}

fn requests(random: &mut StdRng, clusters: usize) -> Vec<Asked> {
    let mut requests = Vec::new();
    for cluster in 0..clusters {
        let mut at = seconds(random, 0, 5);
        let further = random.random_range(0..=3);
        let mut has_group = false;
        for number in 0..=further {
            let what = match random.random_range(0..10) {
                _ if number == 0 => What::Create,
                // One that changes nothing leaves no trace.
                0..4 => What::Update(number + 3),
                4 | 5 if has_group => What::RemoveGroup,
                4 | 5 => What::AddGroup,
                6 => What::RotateCa,
                _ => What::Delete,
            };
            has_group = has_group || what == What::AddGroup;
            let sent = match random.random_range(0..12) {
                0 => Sent::Twice(seconds(random, 0, 20)),
                1 => Sent::Unconfirmed(one_in(random, 2)),
                _ => Sent::Once,
            };
            let is_call = one_in(random, 4);
            requests.push(Asked {
                at,
                cluster,
                what,
                sent,
                is_call,
            });
            at += if one_in(random, 3) {
                Duration::from_millis(random.random_range(0..200))
            } else {
                seconds(random, 0, 25)
            };
        }
    }
    requests.sort_by_key(|asked| asked.at);
    requests
}

fn trouble(random: &mut StdRng, members: usize, quiet: Duration) -> Trouble {
    let what = match random.random_range(0..9) {
        0..3 => Wrong::Away,
        3 | 4 => Wrong::Unknown,
        5 => Wrong::Locked,
        6 => Wrong::Conflict,
        _ => Wrong::Slow(Duration::from_millis(random.random_range(200..1600))),
    };
    let from = seconds(random, 0, 40);
    let lasts = if one_in(random, 4) {
        quiet
    } else {
        seconds(random, 0, 40)
    };
    Trouble {
        what,
        who: one_in(random, 2).then(|| random.random_range(0..members)),
        from,
        until: (from + lasts).min(quiet),
        share: match what {
            Wrong::Locked => 15,
            _ if one_in(random, 2) => 100,
            _ => random.random_range(5..60),
        },
    }
}

fn weather(random: &mut StdRng) -> Weather {
    if one_in(random, 3) {
        return Weather::fair();
    }
    let mut sometimes = |share| if one_in(random, 3) { share } else { 0 };
    Weather {
        transient: sometimes(25),
        permanent: sometimes(15),
        panics: sometimes(10),
        hangs: sometimes(4),
        not_here: sometimes(20),
        in_progress: sometimes(50),
        longest: Duration::from_secs(if one_in(random, 3) { 60 } else { 10 }),
    }
}
