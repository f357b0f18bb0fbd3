//! Where to go on in a stream (`rabbit_stream_fanout`).
//!
//! A stream keeps what was read. A consumer that begins says where: at `last`, the newest piece, when nothing is
//! known, else behind the last message that it had. So a loss of the connection loses no fanout; after the broker
//! cancelled a consumer (the stream was deleted) offsets mean nothing any more.
//!
//! `last` gives the newest piece again to a process that starts, as with a Python server: fanouts must bear that.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lapin::types::{AMQPValue, FieldTable};

use crate::topology::{Argument, Declaration, STREAM_OFFSET};

/// The next offset of each stream that was read.
#[derive(Debug, Default)]
pub(super) struct Offsets(Mutex<HashMap<String, i64>>);

impl Offsets {
    /// A message came from `queue`.
    pub(super) fn came(&self, queue: &str, offset: i64) {
        self.lock().insert(queue.to_owned(), offset.saturating_add(1));
    }

    /// Nothing is known any more.
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    /// The declarations, with consumers of streams going on where they were.
    pub(super) fn resume<'a>(&self, declarations: &'a [Declaration]) -> Cow<'a, [Declaration]> {
        let known = self.lock();
        if known.is_empty() {
            return Cow::Borrowed(declarations);
        }
        let mut resumed = declarations.to_vec();
        for declaration in &mut resumed {
            if let Declaration::Consume { queue, arguments, .. } = declaration
                && let Some(next) = known.get(queue)
            {
                for (name, value) in arguments {
                    if *name == STREAM_OFFSET {
                        *value = Argument::Number(*next);
                    }
                }
            }
        }
        Cow::Owned(resumed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, i64>> {
        // Each change is one call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A delivery's place in its stream, from its headers.
pub(super) fn offset(headers: &FieldTable) -> Option<i64> {
    match headers.inner().get(STREAM_OFFSET)? {
        AMQPValue::LongLongInt(offset) => Some(*offset),
        AMQPValue::LongInt(offset) => Some(i64::from(*offset)),
        AMQPValue::LongUInt(offset) => Some(i64::from(*offset)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn consumer(queue: &str) -> Declaration {
        Declaration::Consume {
            queue: queue.into(),
            tag: "1".into(),
            arguments: vec![(STREAM_OFFSET, Argument::Text("last".into()))],
        }
    }

    fn begins_at(offsets: &Offsets) -> Argument {
        match &offsets.resume(&[consumer("s")])[0] {
            Declaration::Consume { arguments, .. } => arguments[0].1.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_stream_goes_on_behind_its_last_message_until_that_is_forgotten() {
        let offsets = Offsets::default();
        assert_eq!(begins_at(&offsets), Argument::Text("last".into()));
        offsets.came("s", 7);
        offsets.came("other", 1);
        assert_eq!(begins_at(&offsets), Argument::Number(8));
        offsets.forget();
        assert_eq!(begins_at(&offsets), Argument::Text("last".into()));
    }
}
