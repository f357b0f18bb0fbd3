//! A call of a driver's own API that changes something has its cluster to itself.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use magnum_common::ids::{ClusterUuid, ConductorId, MessageId};
use magnum_common::model::{Cluster, ClusterStatus};
use magnum_conductor::operations::hold::{ABANDONED, Held, Holder, NotHeld, Wanted};
use magnum_conductor::operations::keeper::LeaseKeeper;
use magnum_conductor::operations::{Signals, State};
use magnum_conductor::store;
use magnum_tests::fake_driver::{Act, Gate, built};
use magnum_tests::{TestDatabase, on_every_database, wait};

use super::world::{World, context, create, update};

const TERM: Duration = Duration::from_secs(3);

fn holder(world: &World) -> Holder {
    Holder {
        db: world.db.clone(),
        keeper: LeaseKeeper::new(&world.db, ConductorId::new("holding"), TERM),
        signals: Arc::new(Signals::default()),
    }
}

fn wanted(cluster: &ClusterUuid) -> Wanted {
    Wanted {
        message: MessageId::random(),
        cluster: cluster.clone(),
        context: context("p"),
        what: "fake: PUT notes".to_owned(),
    }
}

/// Holds, and reads the cluster's row in the same transaction.
async fn take(world: &World, wanted: Wanted) -> Result<(Held, Option<Cluster>), NotHeld> {
    let cluster = wanted.cluster.clone();
    let read = move |conn: &mut magnum_db::AnyConnection| store::clusters::find(conn, &cluster);
    holder(world).take(wanted, read).await
}

on_every_database! {
    async fn operations_wait_until_a_hold_ends(database: TestDatabase) {
        let world = World::new(&database).await;
        let one = world.conductor("one");
        let cluster = world.complete_cluster(&one).await;
        let (held, row) = take(&world, wanted(&cluster)).await.expect("nothing else is open");
        assert_eq!(row.expect("its row").status, Some(ClusterStatus::CreateComplete));

        let waits = world.record(update(&cluster, 3)).await;
        // A request of another cluster, accepted later, is carried out: the conductor has seen the first and left it.
        world.complete_cluster(&one).await;
        assert_eq!(world.row(&waits).await.state, "queued");

        let entry = held.operation().clone();
        held.end(State::Succeeded, &"The driver replied 204.".into()).await;
        one.wake();
        world.reaches(&waits, State::Succeeded).await;
        let entry = world.row(&entry).await;
        assert_eq!((entry.state.as_str(), entry.reason.as_deref()), ("succeeded", Some("The driver replied 204.")));
        world.nothing_is_open().await;
    }

    async fn open_operation_refuses_a_hold_that_leaves_no_entry(database: TestDatabase) {
        let world = World::new(&database).await;
        let asked = create();
        let cluster = asked.command.cluster().clone();
        let gate = Gate::new();
        world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Report(Box::new(built(ClusterStatus::CreateComplete, "s"))))));
        // Queued, and running.
        let operation = world.record(asked).await;
        let refused = take(&world, wanted(&cluster)).await.expect_err("it is queued");
        assert!(matches!(refused, NotHeld::Busy), "{refused:?}");
        let _one = world.conductor("one");
        gate.entered().await;
        let refused = take(&world, wanted(&cluster)).await.expect_err("it runs");
        assert!(matches!(refused, NotHeld::Busy), "{refused:?}");
        gate.open();
        world.reaches(&operation, State::Succeeded).await;
        world.nothing_is_open().await;
        let (held, _) = take(&world, wanted(&cluster)).await.expect("it has ended");
        held.end(State::Succeeded, &"done".into()).await;
    }

    async fn message_is_held_for_once(database: TestDatabase) {
        let world = World::new(&database).await;
        let cluster = ClusterUuid::random();
        let first = wanted(&cluster);
        let (held, _) = take(&world, first.clone()).await.expect("free");
        let refused = take(&world, first.clone()).await.expect_err("it is held");
        assert!(matches!(refused, NotHeld::Known), "{refused:?}");
        held.end(State::Failed, &"The driver failed.".into()).await;
        let refused = take(&world, first).await.expect_err("redelivered after the end");
        assert!(matches!(refused, NotHeld::Known), "{refused:?}");
    }

    async fn of_calls_at_once_one_has_the_cluster(database: TestDatabase) {
        let world = World::new(&database).await;
        let cluster = ClusterUuid::random();
        let calls = join_all((0..6).map(|_| take(&world, wanted(&cluster)))).await;
        let (held, refused): (Vec<_>, Vec<_>) = calls.into_iter().partition(Result::is_ok);
        assert_eq!(held.len(), 1, "{refused:?}");
        for one in refused {
            assert!(matches!(one, Err(NotHeld::Busy)), "{one:?}");
        }
        for (held, _) in held.into_iter().flatten() {
            held.end(State::Succeeded, &"done".into()).await;
        }
        world.nothing_is_open().await;
    }

    async fn hold_of_a_dead_conductor_is_ended_and_not_repeated(database: TestDatabase) {
        let world = World::new(&database).await;
        let two = world.conductor("two");
        let cluster = world.complete_cluster(&two).await;
        let calls = world.driver.calls().len();
        let (held, _) = take(&world, wanted(&cluster)).await.expect("free");
        let entry = held.operation().clone();
        // As a killed process: nothing is given back, and the lease is not renewed.
        drop(held);
        let waits = world.record(update(&cluster, 3)).await;
        let row = world.reaches(&entry, State::Failed).await;
        assert_eq!(row.reason.as_deref(), Some(ABANDONED));
        world.reaches(&waits, State::Succeeded).await;
        // One for the update: none for the call.
        assert_eq!(world.driver.calls().len(), calls + 1);
        world.nothing_is_open().await;
    }

    async fn hold_that_lost_its_lease_is_over_and_writes_nothing(database: TestDatabase) {
        let world = World::new(&database).await;
        let (held, _) = take(&world, wanted(&ClusterUuid::random())).await.expect("free");
        let entry = held.operation().clone();
        database.execute(&format!(
            "UPDATE conductor_operation SET owner = 'somebody', lease_epoch = lease_epoch + 1 WHERE uuid = '{entry}'"
        )).await.unwrap();
        tokio::time::timeout(TERM, held.over().cancelled()).await.expect("it is over within a term");
        held.end(State::Succeeded, &"too late".into()).await;
        let row = world.row(&entry).await;
        assert_eq!((row.state.as_str(), row.reason), ("running", None));
    }

    async fn hold_outlasts_its_first_lease(database: TestDatabase) {
        let world = World::new(&database).await;
        let two = world.conductor("two");
        let (held, _) = take(&world, wanted(&ClusterUuid::random())).await.expect("free");
        let entry = held.operation().clone();
        let first = world.row(&entry).await.lease_expires_ms.expect("a lease");
        wait::until("the lease to outlive its first term", Duration::from_secs(30), async || {
            two.wake();
            let expires = world.row(&entry).await.lease_expires_ms.unwrap_or(first);
            (expires - first > 3500).then_some(()).ok_or(expires - first)
        }).await.expect("renewals");
        assert!(!held.over().is_cancelled());
        held.end(State::Succeeded, &"done".into()).await;
        let row = world.row(&entry).await;
        assert_eq!((row.state.as_str(), row.lease_epoch), ("succeeded", 1), "nobody else took it");
    }
}
