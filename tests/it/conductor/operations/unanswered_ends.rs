//! The commit of an end whose answer got lost: whoever waits for the end is told all the same.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diesel::prelude::*;
use magnum_conductor::operations::State;
use magnum_conductor::operations::notice::{self, Notice};
use magnum_db::simulated::{Access, Fate, Seam};
use magnum_db::{AnyConnection, DbError};
use magnum_tests::fake_driver::FakeDriver;
use magnum_tests::{Backend, TestDatabase};

use super::world::{World, create};

/// Says of one transaction, the first after a driver was called, that the database is away; it is carried out.
struct LosesAnEnd {
    conn: Mutex<AnyConnection>,
    driver: Arc<FakeDriver>,
    has_lost: AtomicBool,
}

impl Seam for LosesAnEnd {
    fn begin(&self, access: Access) -> Pin<Box<dyn Future<Output = Fate> + Send + '_>> {
        let is_after_the_call = access == Access::Transaction && !self.driver.calls().is_empty();
        let fate = if is_after_the_call && !self.has_lost.swap(true, Ordering::Relaxed) {
            Fate::Lost(DbError::Unavailable("as the test says".to_owned()))
        } else {
            Fate::Done
        };
        Box::pin(ready(fate))
    }

    fn carry_out(&self, work: &mut dyn FnMut(&mut AnyConnection)) {
        work(&mut self.conn.lock().unwrap());
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(ready(()))
    }
}

/// Nothing but the notice tells those who listen, and it is sent by the worker alone.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_was_not_answered_is_told() {
    let database = TestDatabase::empty(Backend::Sqlite).await.expect("SQLite");
    let mut world = World::new(&database).await;
    let (notices, mut told) = notice::queue();
    world.notices = notices;
    let file = database.file().expect("file").to_string_lossy().into_owned();
    let seam = Arc::new(LosesAnEnd {
        conn: Mutex::new(AnyConnection::Sqlite(
            SqliteConnection::establish(&file).expect("connection"),
        )),
        driver: Arc::clone(&world.driver),
        has_lost: AtomicBool::new(false),
    });
    world.db = world.db.through(Arc::clone(&seam) as Arc<dyn Seam>);
    let conductor = world.conductor("one");
    let asked = world.record(create()).await;
    conductor.wake();
    world.reaches(&asked, State::Succeeded).await;
    assert!(seam.has_lost.load(Ordering::Relaxed), "an answer was lost");
    let notice = tokio::time::timeout(Duration::from_secs(10), told.recv()).await;
    let Ok(Some(Notice::Ended { operation, .. })) = notice else {
        panic!("no end was told: {notice:?}");
    };
    assert_eq!(operation, asked);
    world.nothing_is_open().await;
}
