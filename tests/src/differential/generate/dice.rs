//! Chance, and how many mistakes a request may have and has.
//!
//! With two mistakes, the two APIs may well tell another one first. So most requests have one or none.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// Draws everything about requests.
#[derive(Debug)]
pub struct Dice {
    random: StdRng,
    left: u32,
    made: u32,
}

impl Dice {
    /// The same for the same seed.
    pub fn new(seed: u64) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
            left: 0,
            made: 0,
        }
    }

    /// Begins a request.
    pub fn begin(&mut self) {
        (self.left, self.made) = match self.random.random_range(0..20) {
            0..=4 => (0, 0),
            5..=18 => (1, 0),
            _ => (2, 0),
        };
    }

    /// How many mistakes, or what may be one, the request has.
    pub fn mistakes(&self) -> u32 {
        self.made
    }

    /// Whether to make a mistake here: once in so many times, while there is one left.
    pub fn mistake(&mut self, once_in: u32) -> bool {
        let makes = self.left > 0 && self.once_in(once_in);
        if makes {
            self.left -= 1;
            self.made += 1;
        }
        makes
    }

    /// Once in so many times.
    pub fn once_in(&mut self, times: u32) -> bool {
        self.random.random_ratio(1, times)
    }

    /// Below this.
    pub fn below(&mut self, bound: usize) -> usize {
        self.random.random_range(0..bound)
    }

    /// One of these.
    pub fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// One of these; none when there is none.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.choose(&mut self.random)
    }

    /// One of these, by weight.
    pub fn weighted<'a, T>(&mut self, of: &'a [T], weight: impl Fn(&T) -> u32) -> Option<&'a T> {
        of.choose_weighted(&mut self.random, weight).ok()
    }
}
