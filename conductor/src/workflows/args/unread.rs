//! What a newer release has written into an operation's arguments and this one does not know: kept, and written back when the
//! arguments are rewritten. Pure.
//!
//! Known entries are those that this program's own encoding of what it has read has as well. An entry is unread when it is
//! missing there, or is nothing there and something in the journal (a status that only the newer release knows). Lists are
//! known or unread as a whole.

use rmpv::Value;

/// The entries of a map that were not read, by their keys; none where all were.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unread(Vec<(Value, Entry)>);

#[derive(Debug, Clone, PartialEq)]
enum Entry {
    /// Nothing of it is known.
    Whole(Value),
    /// It is known, but for some entries in it.
    Within(Unread),
}

impl Unread {
    /// What `stored` has and `known`, which was read from it, has not.
    pub(super) fn of(stored: Value, known: &Value) -> Self {
        let (Value::Map(stored), Value::Map(known)) = (stored, known) else {
            return Self::default();
        };
        let mut unread = Self::default();
        for (key, value) in stored {
            let entry = match known.iter().find(|(name, _)| *name == key) {
                None => Some(Entry::Whole(value)),
                Some((_, Value::Nil)) => (!value.is_nil()).then_some(Entry::Whole(value)),
                Some((_, known)) => {
                    let within = Self::of(value, known);
                    (!within.is_empty()).then_some(Entry::Within(within))
                }
            };
            unread.0.extend(entry.map(|entry| (key, entry)));
        }
        unread
    }

    /// Whether everything was read.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `known`, with what was not read in its place. What this program has taken away stays away, with all that was in it.
    pub(super) fn into(self, known: Value) -> Value {
        let Value::Map(mut known) = known else {
            return known;
        };
        for (key, entry) in self.0 {
            let place = known.iter_mut().find(|(name, _)| *name == key);
            match (place, entry) {
                (None, Entry::Whole(value)) => known.push((key, value)),
                (Some((_, place)), Entry::Whole(value)) if place.is_nil() => *place = value,
                (Some((_, place)), Entry::Within(within)) => {
                    *place = within.into(std::mem::replace(place, Value::Nil));
                }
                (Some(_), Entry::Whole(_)) | (None, Entry::Within(_)) => {}
            }
        }
        Value::Map(known)
    }

    /// The same without the entry `name` of the whole.
    pub(super) fn without(mut self, name: &str) -> Self {
        self.0.retain(|(key, _)| key.as_str() != Some(name));
        self
    }
}
