//! Which schedule a seed means. Pure.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::{Asked, DRIVERS, End, Ending, Member, Plan, Sent, Trouble, Weather, What, Wrong};

/// By how much the clock of a conductor's database may be off, in milliseconds to either side: by one clock, two may differ by
/// almost a lease, and still tell that a conductor is alive which announced itself in time.
const MOST_OFFSET_MS: i64 = 14_000;

/// The least time until all is quiet in which a long outage has place.
const LONG_OUTAGE: Duration = Duration::from_secs(240);

impl Plan {
    /// The schedule of this seed.
    pub fn of(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let random = &mut random;
        let quiet = Duration::from_secs(if one_in(random, 8) { 240 } else { 75 });
        let count = random.random_range(2..=5);
        let is_offset = one_in(random, 4);
        let members = (0..count)
            .map(|number| member(random, number, is_offset, quiet))
            .collect();
        let clusters: Vec<&'static str> = (0..random.random_range(1..=3))
            .map(|_| DRIVERS[usize::from(one_in(random, 4))])
            .collect();
        let requests = requests(random, clusters.len());
        let mut troubles = if one_in(random, 3) {
            Vec::new()
        } else {
            (0..random.random_range(1..=3))
                .map(|_| trouble(random, count, quiet))
                .collect()
        };
        let is_long_outage = quiet >= LONG_OUTAGE && one_in(random, 3);
        if is_long_outage {
            troubles.push(long_outage(random));
        }
        let mut plan = Self {
            members,
            requests,
            troubles,
            weather: weather(random),
            poison: one_in(random, 20)
                .then(|| (random.random_range(0..clusters.len()), random.random_range(1..=4))),
            clusters,
            driver_patience: if is_long_outage || one_in(random, 6) {
                Duration::from_secs(20)
            } else {
                Duration::from_secs(120)
            },
            quiet,
        };
        if one_in(random, 10) {
            plan.troubles.extend(late_answers(random, count, quiet));
        }
        plan
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
            End {
                how,
                back,
                loses_drivers: one_in(random, 6),
            }
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
    let what = match random.random_range(0..12) {
        0..3 => Wrong::Away,
        3 | 4 => Wrong::Unknown,
        5 => Wrong::Locked,
        6 => Wrong::Conflict,
        7 => Wrong::Stalled,
        8 => Wrong::Silent,
        9 => Wrong::NoProcesses,
        _ => Wrong::Slow(Duration::from_millis(random.random_range(200..1600))),
    };
    let is_of_one = what.is_of_a_host() || one_in(random, 2);
    let from = seconds(random, 0, 40);
    let lasts = if one_in(random, 4) {
        quiet
    } else {
        seconds(random, 0, 40)
    };
    Trouble {
        what,
        who: is_of_one.then(|| random.random_range(0..members)),
        from,
        until: (from + lasts).min(quiet),
        share: match what {
            Wrong::Locked => 15,
            _ if what.is_of_a_host() => 100,
            _ if one_in(random, 2) => 100,
            _ => random.random_range(5..60),
        },
    }
}

/// A line whose answers stand still, and then all of it: the last renewal of a lease is answered late, and is the last. Whoever counts
/// from the answer relies on the lease longer than it lasts.
fn late_answers(random: &mut StdRng, members: usize, quiet: Duration) -> [Trouble; 2] {
    let who = Some(random.random_range(0..members));
    let from = seconds(random, 2, 20);
    let answered = from + seconds(random, 8, 22);
    let of_the_line = |what, from: Duration, until: Duration| Trouble {
        what,
        who,
        from,
        until: until.min(quiet),
        share: 100,
    };
    // Time for the answer to arrive, and for nothing else.
    let lost = answered + Duration::from_millis(50);
    [
        of_the_line(Wrong::Silent, from, answered),
        of_the_line(Wrong::Stalled, lost, lost + Duration::from_secs(50)),
    ]
}

/// The database is away for so long that nobody can have announced anything.
fn long_outage(random: &mut StdRng) -> Trouble {
    let from = seconds(random, 5, 30);
    Trouble {
        what: Wrong::Away,
        who: None,
        from,
        until: from + seconds(random, 65, 150),
        share: 100,
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
        in_progress: sometimes(50),
        longest: Duration::from_secs(if one_in(random, 3) { 60 } else { 10 }),
    }
}
