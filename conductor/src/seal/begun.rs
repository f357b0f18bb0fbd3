//! What a deployment has agreed on, and since when: kept in `conductor_sealing` ([`crate::store::sealing`]), and here for
//! whoever seals and opens.
//!
//! A time only ever moves back: a record that is gone, or says a later time than before, changes nothing for a conductor
//! that has seen it.

use std::sync::atomic::{AtomicI64, Ordering};

/// Something that begins once for a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// All values are bound to their place: what is not, in a newer row, is refused.
    BoundValues,
    /// `[certificates] seal_private_keys`: a key that is not sealed, in a newer row, is refused.
    SealedKeys,
}

impl Beginning {
    /// All of them.
    pub const ALL: &[Self] = &[Self::BoundValues, Self::SealedKeys];

    /// Its name in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BoundValues => "bound_values",
            Self::SealedKeys => "sealed_keys",
        }
    }
}

/// Since when, in milliseconds since 1970 by the database's clock. [`ALWAYS`]: nothing older is left, so no row counts as older,
/// whatever it says of itself.
#[derive(Debug)]
pub struct Begun {
    bound_values: AtomicI64,
    sealed_keys: AtomicI64,
}

impl Default for Begun {
    fn default() -> Self {
        Self {
            bound_values: AtomicI64::new(NEVER),
            sealed_keys: AtomicI64::new(NEVER),
        }
    }
}

const NEVER: i64 = i64::MAX;
/// The time of what has no exceptions any more.
pub const ALWAYS: i64 = 0;

impl Begun {
    fn of(&self, what: Beginning) -> &AtomicI64 {
        match what {
            Beginning::BoundValues => &self.bound_values,
            Beginning::SealedKeys => &self.sealed_keys,
        }
    }

    /// It began, or will begin, at this time, or earlier.
    pub fn begin(&self, what: Beginning, since_ms: i64) {
        self.of(what).fetch_min(since_ms, Ordering::AcqRel);
    }

    /// When it began, or will begin; `None`: nobody has said so.
    pub fn since(&self, what: Beginning) -> Option<i64> {
        Some(self.of(what).load(Ordering::Acquire)).filter(|since| *since != NEVER)
    }

    /// Whether a row that was made then is newer than that.
    pub fn is_after(&self, what: Beginning, made_ms: i64) -> bool {
        self.since(what)
            .is_some_and(|since| since <= ALWAYS || made_ms >= since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_only_moves_back() {
        let begun = Begun::default();
        assert!(!begun.is_after(Beginning::SealedKeys, i64::MAX - 1));
        begun.begin(Beginning::SealedKeys, 50);
        begun.begin(Beginning::SealedKeys, 90);
        assert_eq!(begun.since(Beginning::SealedKeys), Some(50));
        assert_eq!(begun.since(Beginning::BoundValues), None);
        begun.begin(Beginning::BoundValues, ALWAYS);
        assert!(
            begun.is_after(Beginning::BoundValues, -7),
            "whatever the row says"
        );
        assert!(begun.is_after(Beginning::SealedKeys, 50) && !begun.is_after(Beginning::SealedKeys, 49));
    }
}
