//! Conductors whose line to the database is slow or loses answers, as a test says: see [`Line`].

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use magnum_conductor::operations::database_watch::DatabaseWatch;
use magnum_conductor::operations::notice::{self, Notice};
use magnum_conductor::operations::{State, sweep};
use magnum_db::schema::conductor_operation::dsl as op;
use magnum_db::simulated::{Access, Fate, Seam};
use magnum_db::{AnyConnection, DbError};
use magnum_tests::fake_driver::FakeDriver;
use magnum_tests::{Backend, TestDatabase};
use tokio::time::{Instant, sleep_until};

use super::world::{World, create};

/// What happens once on a line.
enum Trouble {
    /// The first transaction after a driver was called is carried out, and said to be lost.
    LosesAnEnd(Arc<FakeDriver>),
    /// From the moment when an operation is claimed no answer comes for so long.
    AnswersAClaimLate(Duration),
    /// Somebody else writes this before the transaction of this number.
    Meanwhile(u32, String),
}

struct Line {
    conn: Mutex<AnyConnection>,
    trouble: Trouble,
    has_been: AtomicBool,
    transactions: AtomicU32,
    late_until: OnceLock<Instant>,
}

impl Line {
    /// Puts it between the world and its database.
    fn between(world: &mut World, database: &TestDatabase, trouble: Trouble) -> Arc<Self> {
        let file = database.file().expect("file").to_string_lossy().into_owned();
        let line = Arc::new(Self {
            conn: Mutex::new(AnyConnection::Sqlite(
                SqliteConnection::establish(&file).expect("connection"),
            )),
            trouble,
            has_been: AtomicBool::new(false),
            transactions: AtomicU32::new(0),
            late_until: OnceLock::new(),
        });
        world.db = world.db.through(Arc::clone(&line) as Arc<dyn Seam>);
        line
    }

    fn has_been(&self) -> bool {
        self.has_been.load(Ordering::Relaxed)
    }

    /// Whether it is now, and was not before.
    fn is_now(&self, is_its_time: bool) -> bool {
        is_its_time && !self.has_been.swap(true, Ordering::Relaxed)
    }

    fn something_runs(&self) -> bool {
        let running = op::conductor_operation.filter(op::state.eq(State::Running.as_str()));
        let count: QueryResult<i64> = running.count().get_result(&mut *self.conn.lock().unwrap());
        count.is_ok_and(|count| count > 0)
    }
}

impl Seam for Line {
    fn begin(&self, access: Access) -> Pin<Box<dyn Future<Output = Fate> + Send + '_>> {
        Box::pin(async move {
            let before = match access {
                Access::Statements => 0,
                Access::Transaction | Access::BriefTransaction => {
                    self.transactions.fetch_add(1, Ordering::Relaxed) + 1
                }
            };
            match &self.trouble {
                Trouble::Meanwhile(number, sql) if self.is_now(before == *number) => {
                    let written = self.conn.lock().unwrap().batch_execute(sql);
                    written.expect("the test's own statement");
                    Fate::Done
                }
                Trouble::LosesAnEnd(driver)
                    if self.is_now(access == Access::Transaction && !driver.calls().is_empty()) =>
                {
                    Fate::Lost(DbError::Unavailable("as the test says".to_owned()))
                }
                _ => Fate::Done,
            }
        })
    }

    fn carry_out(&self, work: &mut dyn FnMut(&mut AnyConnection)) {
        work(&mut self.conn.lock().unwrap());
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            if let Trouble::AnswersAClaimLate(by) = &self.trouble
                && self.something_runs()
            {
                self.has_been.store(true, Ordering::Relaxed);
                sleep_until(*self.late_until.get_or_init(|| Instant::now() + *by)).await;
            }
        })
    }
}

/// Nothing but the notice tells those who listen, and it is sent by the worker alone.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_was_not_answered_is_told() {
    let database = TestDatabase::empty(Backend::Sqlite).await.expect("SQLite");
    let mut world = World::new(&database).await;
    let (notices, mut told) = notice::queue();
    world.notices = notices;
    let loses_an_end = Trouble::LosesAnEnd(Arc::clone(&world.driver));
    let line = Line::between(&mut world, &database, loses_an_end);
    let conductor = world.conductor("one");
    let asked = world.record(create()).await;
    conductor.wake();
    world.reaches(&asked, State::Succeeded).await;
    assert!(line.has_been(), "an answer was lost");
    let notice = tokio::time::timeout(Duration::from_secs(10), told.recv()).await;
    let Ok(Some(Notice::Ended { operation, .. })) = notice else {
        panic!("no end was told: {notice:?}");
    };
    assert_eq!(operation, asked);
    world.nothing_is_open().await;
}

/// Somebody else may have the operation by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_answered_after_its_lease_calls_no_driver() {
    let database = TestDatabase::empty(Backend::Sqlite).await.expect("SQLite");
    let mut world = World::new(&database).await;
    let late = Trouble::AnswersAClaimLate(world.timing.lease);
    let line = Line::between(&mut world, &database, late);
    let conductor = world.conductor("one");
    let asked = world.record(create()).await;
    conductor.wake();
    world.reaches(&asked, State::Succeeded).await;
    assert!(line.has_been(), "an answer was late");
    let attempts: Vec<u32> = world.driver.calls().iter().map(|call| call.attempt).collect();
    assert_eq!(attempts, [2], "the first attempt was over before it began");
    world.nothing_is_open().await;
}

/// Between the look for what is late and the next one the status sync may settle an operation, or an operator try again.
#[tokio::test]
async fn a_sweep_ends_nothing_that_is_not_late_any_more() {
    for (before, meanwhile, state) in [
        (2, "state = 'succeeded'", State::Succeeded),
        (3, "state = 'succeeded'", State::Succeeded),
        (2, "deadline_ms = 9000000000000", State::Queued),
        (2, "updated_ms = updated_ms + 1", State::Failed),
    ] {
        let database = TestDatabase::empty(Backend::Sqlite).await.expect("SQLite");
        let mut world = World::new(&database).await;
        let asked = world.record(create()).await;
        database
            .execute("UPDATE conductor_operation SET deadline_ms = 1")
            .await
            .unwrap();
        let trouble = Trouble::Meanwhile(before, format!("UPDATE conductor_operation SET {meanwhile}"));
        let line = Line::between(&mut world, &database, trouble);
        let (services, _replies) = world.services("one");
        let mut watch = DatabaseWatch::new(Duration::from_secs(60));
        sweep::pass(&services, &mut watch).await.expect("a pass");
        assert!(line.has_been(), "{meanwhile}");
        assert_eq!(
            world.row(&asked).await.state,
            state.as_str(),
            "{meanwhile} before {before}"
        );
    }
}
