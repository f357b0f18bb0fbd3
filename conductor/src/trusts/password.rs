//! Passwords for users of clusters.

use rand::RngExt as _;
use rand::seq::{IndexedRandom as _, SliceRandom as _};

/// As Magnum's: password policies ask for one of each, and nobody confuses two of these.
const GROUPS: [&[u8]; 3] = [
    b"23456789",
    b"ABCDEFGHJKLMNPQRSTUVWXYZ",
    b"abcdefghijkmnopqrstuvwxyz",
];
const LENGTH: usize = 18;

/// A random password of 18 characters, with at least one of each group.
pub(super) fn generate() -> String {
    let mut rng = rand::rng();
    let all = GROUPS.concat();
    let mut letters: Vec<u8> = GROUPS
        .iter()
        .filter_map(|group| group.choose(&mut rng).copied())
        .collect();
    while letters.len() < LENGTH {
        letters.push(all[rng.random_range(0..all.len())]);
    }
    letters.shuffle(&mut rng);
    letters.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn passwords_differ_and_have_a_digit_a_capital_and_a_small_letter() {
        let made: HashSet<String> = (0..200).map(|_| generate()).collect();
        assert_eq!(made.len(), 200);
        for password in made {
            assert_eq!(password.len(), LENGTH);
            for group in GROUPS {
                assert!(password.bytes().any(|byte| group.contains(&byte)), "{password}");
            }
        }
    }
}
