//! A delete goes ahead of everything else, and nothing undoes it.

use magnum_common::model::ClusterStatus;
use magnum_conductor::handlers::Accepted;
use magnum_conductor::operations::State;
use magnum_driver_api::DriverError;
use magnum_tests::fake_driver::{Act, Gate, built};
use magnum_tests::{TestDatabase, on_every_database};

use super::world::{World, create, delete};

on_every_database! {
    async fn a_deleted_cluster_leaves_no_row_but_its_journal(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        assert!(world.cluster(&uuid).await.unwrap().front_proxy_ca_cert_ref.is_some());
        let operation = world.record(delete(&uuid)).await;
        conductor.wake();
        world.reaches(&operation, State::Succeeded).await;
        assert_eq!(world.cluster(&uuid).await, None);
        assert!(world.groups(&uuid).await.is_empty());
        let (keys, pins) = world.read(|conn| {
            use diesel::prelude::*;
            use magnum_db::schema::{conductor_cluster_driver, x509keypair};
            Ok((x509keypair::table.count().get_result::<i64>(conn)?,
                conductor_cluster_driver::table.count().get_result::<i64>(conn)?))
        }).await;
        assert_eq!((keys, pins), (0, 0));
        world.nothing_is_open().await;
    }

    async fn running_create_stops_at_its_step_boundary_and_the_delete_gets_its_stack(database: TestDatabase) {
        let world = World::new(&database).await;
        let gate = Gate::new();
        world.driver.then(Act::Gate(
            gate.clone(),
            Box::new(Act::Report(Box::new(built(ClusterStatus::CreateComplete, "half-built")))),
        ));
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let creating = world.record(asked).await;
        let conductor = world.conductor("one");
        gate.entered().await;

        let deleting = world.record(delete(&uuid)).await;
        conductor.wake();
        assert!(world.row(&creating).await.stop_requested);
        assert_eq!(world.cluster(&uuid).await.unwrap().status, Some(ClusterStatus::DeleteInProgress));
        assert_eq!(world.row(&deleting).await.state, "queued", "one at a time");

        gate.open();
        let row = world.reaches(&creating, State::Cancelled).await;
        assert!(row.reason.unwrap().contains("being deleted"));
        world.reaches(&deleting, State::Succeeded).await;
        let calls = world.driver.calls();
        assert_eq!(calls.iter().map(|call| call.method).collect::<Vec<_>>(), ["create", "delete"]);
        assert_eq!(calls[1].stack_id.as_deref(), Some("half-built"));
        assert_eq!(world.cluster(&uuid).await, None);
    }

    async fn a_call_that_does_not_end_is_stopped_for_a_delete_that_another_conductor_accepted(database: TestDatabase) {
        let world = World::new(&database).await;
        let gate = Gate::new();
        world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Report(Box::default()))));
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let creating = world.record(asked).await;
        let one = world.conductor("one");
        gate.entered().await;
        let two = world.conductor("two");

        let deleting = world.record(delete(&uuid)).await;
        two.wake();
        let row = world.reaches(&creating, State::Cancelled).await;
        assert!(row.reason.unwrap().contains("being deleted"));
        assert_eq!(row.lost_claims, 0, "its conductor has given it up itself");
        world.reaches(&deleting, State::Succeeded).await;
        let ends: Vec<_> = world.driver.calls().iter().map(|call| (call.method, call.end)).collect();
        assert_eq!(ends, [("create", "cancelled"), ("delete", "done")]);
        assert_eq!(world.cluster(&uuid).await, None);
        drop((one, two));
    }

    async fn observing_or_retrying_operation_is_cancelled(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.limits.policy.initial = std::time::Duration::from_secs(600);
        world.timing.limits.policy.max_interval = std::time::Duration::from_secs(600);
        let conductor = world.conductor("one");
        for (act, state) in [
            (Act::Report(Box::new(built(ClusterStatus::CreateInProgress, "s"))), State::Observing),
            (Act::Fail(DriverError::Transient("busy".into())), State::Retrying),
        ] {
            world.driver.then(act);
            let asked = create();
            let uuid = asked.command.cluster().clone();
            let creating = world.record(asked).await;
            conductor.wake();
            world.reaches(&creating, state).await;
            let deleting = world.record(delete(&uuid)).await;
            assert_eq!(world.row(&creating).await.state, "cancelled");
            conductor.wake();
            world.reaches(&deleting, State::Succeeded).await;
            assert_eq!(world.cluster(&uuid).await, None);
        }
        world.nothing_is_open().await;
    }

    async fn a_second_delete_joins_the_first(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        let gate = Gate::new();
        world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Report(Box::default()))));
        let first = world.record(delete(&uuid)).await;
        conductor.wake();
        gate.entered().await;
        let accepted = world.accept(delete(&uuid)).await;
        let Accepted::Recorded { operation, state: State::Cancelled, .. } = accepted else {
            panic!("{accepted:?}");
        };
        assert!(world.row(&operation).await.reason.unwrap().contains(first.as_str()));
        gate.open();
        world.reaches(&first, State::Succeeded).await;
        assert_eq!(world.driver.calls().iter().filter(|call| call.method == "delete").count(), 1);
    }

    async fn failed_delete_has_a_reason_and_can_be_requested_again(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        world.driver.then(Act::Fail(DriverError::Permanent("a volume is in use".into())));
        let first = world.record(delete(&uuid)).await;
        conductor.wake();
        world.reaches(&first, State::Failed).await;
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::DeleteFailed));
        assert_eq!(cluster.status_reason.as_deref(), Some("a volume is in use"));
        let second = world.record(delete(&uuid)).await;
        conductor.wake();
        world.reaches(&second, State::Succeeded).await;
        assert_eq!(world.cluster(&uuid).await, None);
    }

    async fn a_delete_works_without_its_template(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        database.execute("DELETE FROM cluster_template").await.unwrap();
        let operation = world.record(delete(&uuid)).await;
        conductor.wake();
        world.reaches(&operation, State::Succeeded).await;
    }
}
