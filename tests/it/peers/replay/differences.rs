//! Differences from recordings that are there on purpose, and what is said of a replay in the end.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use super::selection::Selection;

/// Where the chain does not do what was recorded. One that does not occur any more is a failed comparison.
pub struct Difference<C: 'static, E: 'static> {
    /// Why, for people.
    pub reason: &'static str,
    /// In which cases.
    pub is_in: fn(&C) -> bool,
    /// What is expected instead of what was recorded.
    pub instead: fn(&C, &mut E),
}

impl<C, E> Difference<C, E> {
    /// Applies those that are in the case; returns their numbers.
    pub fn apply(all: &[Self], case: &C, expected: &mut E) -> Vec<usize> {
        let mut applied = Vec::new();
        for (number, difference) in all.iter().enumerate() {
            if (difference.is_in)(case) {
                (difference.instead)(case, expected);
                applied.push(number);
            }
        }
        applied
    }
}

/// What came of some cases.
#[derive(Default)]
pub struct Played {
    /// A text for each that is not as expected.
    pub failures: Vec<String>,
    /// The numbers of the differences that were in them.
    pub applied: BTreeSet<usize>,
}

impl Played {
    /// Adds what differs in a case of this title, if anything does.
    pub fn add(&mut self, title: &str, found: &[String]) {
        if !found.is_empty() {
            self.failures
                .push(format!("  {title}:\n    {}", found.join("\n    ")));
        }
    }
}

/// Fails when a case is not as expected, and when all have run and a listed difference was in none of them.
pub fn judge<C, E>(
    selection: &Selection<C>,
    played: &[Played],
    differences: &[Difference<C, E>],
) -> Result<()> {
    let failures: Vec<&str> = played
        .iter()
        .flat_map(|one| one.failures.iter().map(String::as_str))
        .collect();
    ensure!(
        failures.is_empty(),
        "{} of {} cases differ from their recordings:\n{}",
        failures.len(),
        selection.cases.len(),
        failures.join("\n")
    );
    if selection.is_complete {
        let applied: BTreeSet<usize> = played.iter().flat_map(|one| &one.applied).copied().collect();
        let stale = differences
            .iter()
            .enumerate()
            .filter(|(number, _)| !applied.contains(number));
        let stale: Vec<&str> = stale.map(|(_, difference)| difference.reason).collect();
        ensure!(stale.is_empty(), "differences of no case: {stale:#?}");
    }
    Ok(())
}
