//! What an operator can do: look, retry, discard.

use magnum_common::ids::OperationId;
use magnum_common::model::ClusterStatus;
use magnum_conductor::operations::State;
use magnum_conductor::operations::admin::{self, AdminError};
use magnum_driver_api::DriverError;
use magnum_tests::fake_driver::{Act, Gate, built};
use magnum_tests::{TestDatabase, on_every_database};

use super::world::{World, create, create_pool, update};

async fn retry(world: &World, operation: &OperationId) -> Result<&'static str, AdminError> {
    let id = operation.clone();
    world
        .db
        .transaction(move |conn| admin::retry(conn, id.as_str(), "operator test"))
        .await
}

async fn discard(world: &World, operation: &OperationId) -> Result<&'static str, AdminError> {
    let id = operation.clone();
    world
        .db
        .transaction(move |conn| admin::discard(conn, id.as_str(), "not wanted any more", "operator test"))
        .await
}

on_every_database! {
    async fn a_failed_update_can_be_tried_again_by_hand(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        world.driver.then(Act::Fail(DriverError::Permanent("no".into())));
        let operation = world.record(update(&uuid, 7)).await;
        conductor.wake();
        world.reaches(&operation, State::Failed).await;

        retry(&world, &operation).await.unwrap();
        assert_eq!(world.cluster(&uuid).await.unwrap().status, Some(ClusterStatus::UpdateInProgress));
        conductor.wake();
        world.reaches(&operation, State::Succeeded).await;
        assert_eq!(world.groups(&uuid).await[1].node_count, 7);
        let last = world.driver.calls().pop().unwrap();
        assert_eq!((last.workers, last.token), (7, None), "the token was erased with the first end");
        assert!(world.events(&operation).await.iter().any(|event| event.kind == "retried"
            && event.conductor.as_deref() == Some("operator test")));
        let again = retry(&world, &operation).await.unwrap_err();
        assert!(again.to_string().contains("is succeeded"), "{again}");
    }

    async fn a_waiting_retry_can_be_hastened(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.limits.policy.initial = std::time::Duration::from_secs(600);
        world.timing.limits.policy.max_interval = std::time::Duration::from_secs(600);
        world.driver.then(Act::Fail(DriverError::Transient("busy".into())));
        let operation = world.record(create()).await;
        let conductor = world.conductor("one");
        world.reaches(&operation, State::Retrying).await;
        retry(&world, &operation).await.unwrap();
        conductor.wake();
        world.reaches(&operation, State::Succeeded).await;
    }

    async fn waiting_operation_can_be_discarded_and_its_cluster_shows_it(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        world.driver.then(Act::Report(Box::new(built(ClusterStatus::CreateInProgress, "s"))));
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        conductor.wake();
        world.reaches(&operation, State::Observing).await;
        discard(&world, &operation).await.unwrap();
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::CreateFailed));
        assert_eq!(cluster.status_reason.as_deref(), Some("not wanted any more"));
        world.nothing_is_open().await;
    }

    async fn a_group_fails_whose_creation_is_discarded_before_its_turn(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        world.driver.then(Act::Report(Box::new(built(ClusterStatus::CreateInProgress, "s"))));
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        conductor.wake();
        world.reaches(&operation, State::Observing).await;
        let (pool, asked) = create_pool(&uuid);
        let waits = world.record(asked).await;
        discard(&world, &waits).await.unwrap();
        let groups = world.groups(&uuid).await;
        let pool = groups.iter().find(|group| group.uuid == pool.uuid).unwrap();
        assert_eq!(pool.status, Some(ClusterStatus::CreateFailed));
        assert_eq!(pool.status_reason.as_deref(), Some("not wanted any more"));
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::CreateInProgress), "it goes on");
    }

    async fn running_operation_stops_after_its_step_and_its_cluster_is_failed(database: TestDatabase) {
        let world = World::new(&database).await;
        let gate = Gate::new();
        world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Report(Box::new(built(ClusterStatus::CreateComplete, "s"))))));
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        let _conductor = world.conductor("one");
        gate.entered().await;
        discard(&world, &operation).await.unwrap();
        gate.open();
        world.reaches(&operation, State::Cancelled).await;
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::CreateFailed));
        assert!(cluster.status_reason.unwrap().contains("operator"));
        assert_eq!(cluster.stack_id.as_deref(), Some("s"), "what was built is remembered for the delete");
    }

    async fn a_driver_that_does_not_end_is_stopped_when_its_operation_is_discarded(database: TestDatabase) {
        let world = World::new(&database).await;
        let gate = Gate::new();
        world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Report(Box::default()))));
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        let _conductor = world.conductor("one");
        gate.entered().await;
        discard(&world, &operation).await.unwrap();
        world.reaches(&operation, State::Cancelled).await;
        assert_eq!(world.driver.calls().pop().unwrap().end, "cancelled");
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::CreateFailed));
        assert!(cluster.status_reason.unwrap().contains("operator"));
    }

    async fn unknown_operation_is_reported_as_unknown(database: TestDatabase) {
        let world = World::new(&database).await;
        let error = retry(&world, &OperationId::new("nope")).await.unwrap_err();
        assert!(error.to_string().contains("no operation nope"), "{error}");
    }
}
