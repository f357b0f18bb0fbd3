//! Ownership: what is lost writes nothing, what is dropped is taken up.

use std::time::Duration;

use magnum_common::model::ClusterStatus;
use magnum_conductor::operations::State;
use magnum_tests::fake_driver::{Act, Gate, built};
use magnum_tests::{TestDatabase, on_every_database, wait};

use super::world::{World, create, delete};

on_every_database! {
    async fn a_worker_that_lost_its_lease_writes_nothing(database: TestDatabase) {
        let world = World::new(&database).await;
        let (stale, fresh) = (Gate::new(), Gate::new());
        // Neither listens to cancellation: only the fence stands between them.
        world.driver
            .then(Act::Deaf(stale.clone(), Box::new(Act::Report(Box::new(built(ClusterStatus::CreateFailed, "stale"))))))
            .then(Act::Gate(fresh.clone(), Box::new(Act::Report(Box::new(built(ClusterStatus::CreateComplete, "fresh"))))));
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        let _one = world.conductor("one");
        stale.entered().await;

        // As if another conductor had taken over: the epoch has moved on.
        database.execute(&format!(
            "UPDATE conductor_operation SET owner = 'somebody', lease_epoch = lease_epoch + 1 \
             WHERE uuid = '{operation}'")).await.unwrap();
        stale.open();
        wait::until("the stale call to end", Duration::from_secs(10), async || {
            let end = world.driver.calls()[0].end;
            if end == "done" { Ok(()) } else { Err(end) }
        }).await.unwrap();
        database.execute(&format!(
            "UPDATE conductor_operation SET lease_expires_ms = 0 WHERE uuid = '{operation}'")).await.unwrap();

        fresh.entered().await;
        assert_eq!(world.cluster(&uuid).await.unwrap().status, Some(ClusterStatus::CreateInProgress));
        assert_eq!(world.cluster(&uuid).await.unwrap().stack_id, None, "the stale result left no trace");
        fresh.open();
        let row = world.reaches(&operation, State::Succeeded).await;
        assert_eq!(row.lease_epoch, 3);
        assert_eq!(world.cluster(&uuid).await.unwrap().stack_id.as_deref(), Some("fresh"));
    }

    async fn a_drivers_save_is_seen_at_once_and_refused_after_its_lease_is_lost(database: TestDatabase) {
        let world = World::new(&database).await;
        let (saved, stale) = (Gate::new(), Gate::new());
        let late = Act::Deaf(stale.clone(), Box::new(Act::Save("https://late", Box::new(Act::Panic))));
        let early = Act::Deaf(saved.clone(), Box::new(late));
        world.driver.then(Act::Save("https://early", Box::new(early)));
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        let _one = world.conductor("one");
        saved.entered().await;
        let address = world.cluster(&uuid).await.unwrap().api_address;
        assert_eq!(address.as_deref(), Some("https://early"), "while the driver is still at work");
        saved.open();
        stale.entered().await;
        database.execute(&format!(
            "UPDATE conductor_operation SET owner = 'somebody', lease_epoch = lease_epoch + 1 \
             WHERE uuid = '{operation}'")).await.unwrap();
        stale.open();
        wait::until("the late write to be refused", Duration::from_secs(10), async || {
            let end = world.driver.calls()[0].end;
            if end == "revoked" { Ok(()) } else { Err(end) }
        }).await.unwrap();
        assert_eq!(world.cluster(&uuid).await.unwrap().api_address.as_deref(), Some("https://early"));
        database.execute(&format!(
            "UPDATE conductor_operation SET lease_expires_ms = 0 WHERE uuid = '{operation}'")).await.unwrap();
        world.reaches(&operation, State::Succeeded).await;
    }

    async fn a_driver_saves_nothing_after_the_deletion_of_its_cluster_was_accepted(database: TestDatabase) {
        let world = World::new(&database).await;
        let gate = Gate::new();
        world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Save("https://late", Box::new(Act::Panic)))));
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let creating = world.record(asked).await;
        let conductor = world.conductor("one");
        gate.entered().await;
        let deleting = world.record(delete(&uuid)).await;
        conductor.wake();
        gate.open();
        world.reaches(&creating, State::Cancelled).await;
        assert_eq!(world.driver.calls()[0].end, "revoked");
        world.reaches(&deleting, State::Succeeded).await;
    }

    async fn a_lost_lease_stops_the_driver(database: TestDatabase) {
        let world = World::new(&database).await;
        let gate = Gate::new();
        world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Panic)));
        let operation = world.record(create()).await;
        let _one = world.conductor("one");
        gate.entered().await;
        database.execute(&format!(
            "UPDATE conductor_operation SET owner = 'somebody', lease_epoch = lease_epoch + 1 \
             WHERE uuid = '{operation}'")).await.unwrap();
        wait::until("the driver to be told", Duration::from_secs(10), async || {
            let end = world.driver.calls()[0].end;
            if end == "cancelled" { Ok(()) } else { Err(end) }
        }).await.unwrap();
        database.execute(&format!(
            "UPDATE conductor_operation SET lease_expires_ms = 0 WHERE uuid = '{operation}'")).await.unwrap();
        world.reaches(&operation, State::Succeeded).await;
    }

    async fn a_lease_is_kept_as_long_as_the_work_lasts(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.lease = Duration::from_secs(2);
        let gate = Gate::new();
        world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Report(Box::default()))));
        let operation = world.record(create()).await;
        let (_one, _two) = (world.conductor("one"), world.conductor("two"));
        gate.entered().await;
        let first = world.row(&operation).await.lease_expires_ms.expect("a lease");
        wait::until("the lease to outlive two terms", Duration::from_secs(60), async || {
            let expires = world.row(&operation).await.lease_expires_ms.unwrap_or(first);
            (expires - first > 2 * 2000).then_some(()).ok_or(expires - first)
        }).await.expect("renewals");
        gate.open();
        let row = world.reaches(&operation, State::Succeeded).await;
        assert_eq!((row.attempts, row.lease_epoch), (1, 1), "nobody else took it");
    }

    async fn a_lease_that_looks_expired_is_left_to_an_owner_who_renews_it(database: TestDatabase) {
        let world = World::new(&database).await;
        let (first, second) = (Gate::new(), Gate::new());
        world.driver
            .then(Act::Gate(first.clone(), Box::new(Act::Panic)))
            .then(Act::Gate(second.clone(), Box::new(Act::Report(Box::default()))));
        let operation = world.record(create()).await;
        let one = world.conductor("one");
        first.entered().await;
        let _two = world.conductor("two");

        // By the clock of the second one's node, an hour ahead, each renewal has expired before it was made.
        let hour = 3_600_000;
        let past = magnum_common::clock::utc_now().timestamp_millis() - hour / 2;
        let ahead = format!(
            "UPDATE conductor_operation SET lease_expires_ms = lease_expires_ms - {hour} \
             WHERE state = 'running' AND lease_expires_ms > {past}"
        );
        let mut expiries = Vec::new();
        wait::until("the lease to be renewed for two terms and more", Duration::from_secs(60), async || {
            database.execute(&ahead).await.unwrap();
            expiries.extend(world.row(&operation).await.lease_expires_ms.filter(|expiry| *expiry < past));
            let renewed_for = expiries.last().unwrap_or(&0) - expiries.first().unwrap_or(&0);
            (renewed_for > 2 * 3000).then_some(()).ok_or(renewed_for)
        }).await.expect("renewals");
        let row = world.row(&operation).await;
        assert_eq!((row.lease_epoch, row.owner.as_deref()), (1, Some("one")));

        drop(one);
        // Nobody renews it any more.
        second.entered().await;
        let row = world.row(&operation).await;
        assert_eq!((row.lease_epoch, row.owner.as_deref()), (2, Some("two")));
        second.open();
        world.reaches(&operation, State::Succeeded).await;
    }

    async fn operation_of_a_dead_conductor_is_finished_by_another(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.lease = Duration::from_secs(1);
        let gate = Gate::new();
        world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Panic)));
        let operation = world.record(create()).await;
        let one = world.conductor("one");
        gate.entered().await;
        // Dropped with everything it holds, nothing given back: as a killed process.
        drop(one);
        let _two = world.conductor("two");
        let row = world.reaches(&operation, State::Succeeded).await;
        assert_eq!((row.attempts, row.lease_epoch), (2, 2));
        let claims: Vec<_> = world.events(&operation).await.into_iter()
            .filter(|event| event.kind == "claimed")
            .map(|event| event.conductor.unwrap())
            .collect();
        assert_eq!(claims, ["one", "two"]);
    }

    async fn a_shutdown_gives_the_lease_back_at_once(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.lease = Duration::from_secs(600);
        let gate = Gate::new();
        world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Panic)));
        let operation = world.record(create()).await;
        let mut one = world.conductor("one");
        gate.entered().await;
        one.stop.cancel();
        (&mut one.executor).await.unwrap();
        assert_eq!(world.driver.calls()[0].end, "cancelled");
        let row = world.row(&operation).await;
        assert_eq!((row.state.as_str(), row.owner, row.lease_expires_ms), ("running", None, Some(0)));
        let _two = world.conductor("two");
        world.reaches(&operation, State::Succeeded).await;
    }

    async fn a_shutdown_lets_a_step_reach_its_end(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.shutdown = Duration::from_secs(20);
        let gate = Gate::new();
        world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Report(Box::default()))));
        let operation = world.record(create()).await;
        let mut one = world.conductor("one");
        gate.entered().await;
        one.stop.cancel();
        gate.open();
        (&mut one.executor).await.unwrap();
        assert_eq!(world.row(&operation).await.state, "succeeded");
    }
}
