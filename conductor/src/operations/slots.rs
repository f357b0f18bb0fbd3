//! How many operations run at once in a conductor, and how many of them for one project or one driver.
//!
//! Who has many long calls does not hold up the others: of 64 slots, 8 are kept for deletions of clusters; one project, and
//! one driver where several are loaded, has 48 at most, and 56 with deletions. What is queued takes turns
//! ([`super::turns`]), so these shares only count while calls are long.
//!
//! Not given: shares of the whole fleet. Each conductor counts for itself.
//!
//! Pure.

use std::collections::HashMap;
use std::hash::Hash;

use super::journal::candidates::Candidate;

/// The slots of one conductor; `T` names what runs in one.
#[derive(Debug)]
pub struct Slots<T> {
    all: usize,
    taken: HashMap<T, Candidate>,
}

/// For what there is room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Room {
    /// Slots that are free.
    pub free: usize,
    /// Whether these are only for deletions.
    pub only_deletions: bool,
    /// Drivers that have their share.
    pub drivers: Shares,
    /// Projects that have their share.
    pub projects: Shares,
}

/// Who has a whole share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shares {
    /// Gets nothing more.
    pub full: Vec<String>,
    /// Gets only deletions.
    pub only_deletions: Vec<String>,
}

impl<T: Eq + Hash> Slots<T> {
    /// So many slots, all of them free.
    pub fn new(all: usize) -> Self {
        Self {
            all,
            taken: HashMap::new(),
        }
    }

    /// `candidate` runs as `task` from now on.
    pub fn take(&mut self, task: T, candidate: Candidate) {
        self.taken.insert(task, candidate);
    }

    /// `task` has ended.
    pub fn free(&mut self, task: &T) {
        self.taken.remove(task);
    }

    /// For what there is room in a conductor with `drivers` loaded.
    pub fn room(&self, drivers: usize) -> Room {
        Room {
            free: self.all.saturating_sub(self.taken.len()),
            only_deletions: self.other_than_deletions().count() >= self.all - self.kept(),
            drivers: if drivers > 1 {
                self.shares(Candidate::driver)
            } else {
                Shares::default()
            },
            projects: self.shares(Candidate::project),
        }
    }

    /// Slots that are kept: an eighth for deletions, and again for those who have less.
    const fn kept(&self) -> usize {
        self.all / 8
    }

    fn other_than_deletions(&self) -> impl Iterator<Item = &Candidate> {
        self.taken.values().filter(|one| !one.is_delete())
    }

    fn shares(&self, whose: fn(&Candidate) -> Option<&String>) -> Shares {
        let all = count(self.taken.values().filter_map(whose));
        let others = count(self.other_than_deletions().filter_map(whose));
        let reach = |counts: HashMap<&String, usize>, share: usize| {
            let mut reached: Vec<String> = counts
                .into_iter()
                .filter(|(_, count)| *count >= share)
                .map(|(name, _)| name.clone())
                .collect();
            reached.sort_unstable();
            reached
        };
        Shares {
            full: reach(all, self.all - self.kept()),
            only_deletions: reach(others, self.all - self.all / 4),
        }
    }
}

impl Room {
    /// Whether `candidate` fits, as the first one that is claimed.
    pub fn fits(&self, candidate: &Candidate) -> bool {
        let is_in = |names: &[String], name: Option<&String>| name.is_some_and(|name| names.contains(name));
        let may_be_other = !self.only_deletions
            && !is_in(&self.drivers.only_deletions, candidate.driver())
            && !is_in(&self.projects.only_deletions, candidate.project());
        self.free > 0
            && !is_in(&self.drivers.full, candidate.driver())
            && !is_in(&self.projects.full, candidate.project())
            && (candidate.is_delete() || may_be_other)
    }
}

fn count<'a>(names: impl Iterator<Item = &'a String>) -> HashMap<&'a String, usize> {
    let mut counts = HashMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(project: &str, driver: &str, kind: &str) -> Candidate {
        Candidate {
            row: 1,
            state: "queued".to_owned(),
            epoch: 0,
            owner: None,
            lease_expires_ms: None,
            kind: kind.to_owned(),
            project_id: Some(project.to_owned()),
            driver: Some(driver.to_owned()),
            driver_version: None,
            step: None,
            turn: 0,
            lost_claims: 0,
            stop_requested: false,
            deadline_ms: None,
        }
    }

    fn create(project: &str) -> Candidate {
        candidate(project, "a", "cluster_create")
    }

    fn delete(project: &str) -> Candidate {
        candidate(project, "a", "cluster_delete")
    }

    /// So many of `one` run, up to what there is room for.
    fn fill(slots: &mut Slots<usize>, drivers: usize, one: &Candidate) -> usize {
        let before = slots.taken.len();
        while slots.room(drivers).fits(one) {
            slots.take(slots.taken.len(), one.clone());
        }
        slots.taken.len() - before
    }

    #[test]
    fn one_project_leaves_room_for_others_and_all_leave_room_for_deletions() {
        let mut slots = Slots::new(64);
        assert_eq!(fill(&mut slots, 1, &create("many")), 48);
        assert_eq!(fill(&mut slots, 1, &delete("many")), 8, "and others have room");
        assert_eq!(fill(&mut slots, 1, &create("other")), 8);
        let room = slots.room(1);
        assert!(room.free == 0 && room.only_deletions);
        for task in 0..56 {
            slots.free(&task);
        }
        assert_eq!(slots.room(1).projects, Shares::default());
    }

    #[test]
    fn what_is_kept_is_for_deletions() {
        let mut slots = Slots::new(64);
        fill(&mut slots, 1, &create("one"));
        assert_eq!(fill(&mut slots, 1, &create("two")), 8);
        assert!(slots.room(1).only_deletions);
        assert_eq!(fill(&mut slots, 1, &create("three")), 0);
        assert_eq!(fill(&mut slots, 1, &delete("three")), 8);
    }

    #[test]
    fn a_driver_has_a_share_where_there_are_others() {
        let of = |project: &str, driver: &str| candidate(project, driver, "cluster_create");
        let mut slots = Slots::new(64);
        fill(&mut slots, 2, &of("one", "slow"));
        assert_eq!(fill(&mut slots, 2, &of("two", "slow")), 0);
        assert_eq!(fill(&mut slots, 2, &of("two", "other")), 8);
        assert_eq!(slots.room(2).drivers.only_deletions, ["slow"]);
        let mut slots = Slots::new(64);
        fill(&mut slots, 1, &of("one", "slow"));
        assert_eq!(fill(&mut slots, 1, &of("two", "slow")), 8, "the only one");
    }

    #[test]
    fn few_slots_are_not_divided() {
        for all in 1..4 {
            assert_eq!(fill(&mut Slots::new(all), 2, &create("many")), all);
        }
        assert_eq!(fill(&mut Slots::new(4), 1, &create("many")), 3);
    }
}
