//! A row that somebody holds, and gives back when he likes: only what needs this row waits. (SQLite has no such locks.)

use std::time::Duration;

use magnum_conductor::operations::database_watch::DatabaseWatch;
use magnum_conductor::operations::{State, sweep};
use magnum_tests::row_lock::RowLock;
use magnum_tests::{Backend, TestDatabase};

use super::world::{World, create};

/// Writes a test once and runs it on both databases that lock rows.
macro_rules! on_every_server {
    ($(async fn $name:ident($database:ident) $body:block)+) => { $(
        mod $name {
            use super::*;

            async fn on($database: TestDatabase) $body

            #[tokio::test(flavor = "multi_thread")]
            async fn mariadb() {
                on(TestDatabase::empty(Backend::Mariadb).await.expect("MariaDB")).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn postgres() {
                on(TestDatabase::empty(Backend::Postgres).await.expect("PostgreSQL")).await;
            }
        }
    )+ };
}

async fn lock_operation(database: &TestDatabase, uuid: &str) -> RowLock {
    let operation = format!("uuid = '{uuid}'");
    RowLock::take(database, "conductor_operation", &operation)
        .await
        .expect("the lock")
}

on_every_server! {
    async fn an_operation_whose_row_is_locked_keeps_no_other_from_being_claimed(database) {
        let world = World::new(&database).await;
        let oldest = world.record(create()).await;
        let held = lock_operation(&database, oldest.as_str()).await;
        let conductor = world.conductor("one");
        for _ in 0..3 {
            let other = world.record(create()).await;
            conductor.wake();
            world.reaches(&other, State::Succeeded).await;
        }
        assert_eq!(world.row(&oldest).await.lease_epoch, 0);
        drop(held);
        let row = world.reaches(&oldest, State::Succeeded).await;
        assert_eq!(row.attempts, 1, "a row that is locked is not claimed");
    }

    async fn an_operation_whose_row_is_locked_keeps_no_other_from_being_swept(database) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        conductor.stop.cancel();
        let (oldest, other) = (world.record(create()).await, world.record(create()).await);
        database.execute("UPDATE conductor_operation SET deadline_ms = 1").await.unwrap();
        let held = lock_operation(&database, oldest.as_str()).await;
        let mut watch = DatabaseWatch::new(Duration::from_secs(60));
        sweep::pass(&conductor.services, &mut watch).await.unwrap();
        assert_eq!(world.row(&other).await.state, State::Failed.as_str());
        assert_eq!(world.row(&oldest).await.state, State::Queued.as_str());
        drop(held);
        sweep::pass(&conductor.services, &mut watch).await.unwrap();
        assert_eq!(world.row(&oldest).await.state, State::Failed.as_str());
    }
}
