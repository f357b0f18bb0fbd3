//! When operations were written and ended, by the machine's clock: the database's may be stepped.
//!
//! It asks again and again, directly, and notes what it sees for the first time: up to a second after it was so, or as long as the
//! database was away.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use diesel::prelude::*;
use magnum_common::clock::utc_now;
use magnum_db::Database;
use magnum_db::schema::conductor_operation::dsl as op;

use crate::checker::history::{Millis, Operation};

const PERIOD: Duration = Duration::from_millis(250);

/// What was seen.
#[derive(Debug, Default)]
pub struct Watch {
    seen: Mutex<BTreeMap<String, Seen>>,
    is_over: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    created: Millis,
    ended: Option<Millis>,
}

impl Watch {
    /// Looks until [`Self::end`].
    pub async fn go_on(&self, database: &Database) {
        while !self.is_over.load(Ordering::Relaxed) {
            self.look(database).await;
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Has [`Self::go_on`] return.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Looks once. A database that is away says nothing.
    pub async fn look(&self, database: &Database) {
        let ask = database.run(|conn| {
            let all = op::conductor_operation.select((op::uuid, op::ended_ms.is_not_null()));
            let all: Vec<(String, bool)> = all.load(conn)?;
            Ok(all)
        });
        let Ok(all) = ask.await else { return };
        let now = utc_now().timestamp_millis();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for (operation, has_ended) in all {
            let known = seen.entry(operation).or_insert(Seen {
                created: now,
                ended: None,
            });
            if has_ended && known.ended.is_none() {
                known.ended = Some(now);
            }
        }
    }

    /// Operations with the times at which they were seen.
    pub fn set_times(&self, operations: &mut [Operation]) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for operation in operations {
            if let Some(known) = seen.get(&operation.id) {
                operation.created = known.created;
                operation.ended = operation.ended.and(known.ended);
            }
        }
    }
}
