//! The nodes that go when a resize names none: asked for once, kept, and handed over in every attempt.

use magnum_common::ids::ClusterUuid;
use magnum_common::model::{ClusterStatus, NodeGroup};
use magnum_conductor::operations::State;
use magnum_driver_api::DriverError;
use magnum_tests::fake_driver::{Act, Call};
use magnum_tests::{TestDatabase, on_every_database};

use super::world::{World, resize};

/// The default worker group of a new cluster: two nodes.
async fn worker(world: &World, cluster: &ClusterUuid) -> NodeGroup {
    let groups = world.groups(cluster).await.into_iter();
    groups
        .into_iter()
        .find(|group| group.name == "default-worker")
        .expect("a worker group")
}

fn busy() -> DriverError {
    DriverError::Transient("the cloud is busy".into())
}

fn nodes(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The calls of the resize, by attempt and by what they were given to remove.
fn resizes(world: &World) -> Vec<(u32, Vec<String>)> {
    let calls = world.driver.calls().into_iter();
    let resizes = calls.filter(|call: &Call| call.method == "resize");
    resizes.map(|call| (call.attempt, call.removes)).collect()
}

on_every_database! {
    async fn nodes_that_were_chosen_go_in_every_attempt(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        // The choice itself may have to be asked for again; afterwards it is never asked for.
        world.driver.push_choice(Err(busy())).push_choice(Ok(nodes(&["b"]))).push_choice(Ok(nodes(&["a"])));
        world.driver.then(Act::Fail(busy())).then(Act::Fail(busy()));
        let operation = world.record(resize(&cluster, &worker(&world, &cluster).await, 1)).await;
        conductor.wake();
        world.reaches(&operation, State::Succeeded).await;
        assert_eq!(resizes(&world), [(2, nodes(&["b"])), (3, nodes(&["b"])), (4, nodes(&["b"]))]);
        let details: Vec<_> = world.events(&operation).await.into_iter().filter_map(|event| event.detail).collect();
        assert!(details.iter().any(|detail| detail == "nodes b"), "{details:?}");
        assert_eq!(worker(&world, &cluster).await.node_count, 1);
    }

    async fn a_driver_that_leaves_the_choice_to_the_resize_gets_no_names(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        world.driver.push_choice(Err(DriverError::NotSupported("not now".into())));
        for count in [1, 0] {
            let operation = world.record(resize(&cluster, &worker(&world, &cluster).await, count)).await;
            conductor.wake();
            world.reaches(&operation, State::Succeeded).await;
        }
        assert_eq!(resizes(&world), [(1, Vec::new()), (1, Vec::new())]);
    }

    async fn a_growing_group_has_no_choice_and_no_step_for_it(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        world.driver.push_choice(Ok(nodes(&["a"])));
        let operation = world.record(resize(&cluster, &worker(&world, &cluster).await, 5)).await;
        conductor.wake();
        world.reaches(&operation, State::Succeeded).await;
        assert_eq!(resizes(&world), [(1, Vec::new())]);
        let steps: Vec<_> = world.events(&operation).await.into_iter().filter_map(|event| event.step).collect();
        assert!(!steps.iter().any(|step| step == "choose_nodes"), "{steps:?}");
    }

    async fn a_senseless_choice_fails_the_resize_before_it_begins(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        world.driver.push_choice(Ok(nodes(&["a", "b"])));
        let operation = world.record(resize(&cluster, &worker(&world, &cluster).await, 1)).await;
        conductor.wake();
        let row = world.reaches(&operation, State::Failed).await;
        assert_eq!(
            row.reason.as_deref(),
            Some("driver fake 1.0.0 chose nodes that cannot be removed: nodes has 2 names; 1 nodes go")
        );
        assert_eq!(resizes(&world), []);
        let after = worker(&world, &cluster).await;
        assert_eq!((after.node_count, after.status), (2, Some(ClusterStatus::UpdateFailed)));
    }

    /// As a release before the step left it: the driver was found, the resize comes next.
    async fn an_operation_of_an_older_journal_goes_on_without_a_choice(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        drop(conductor);
        world.driver.push_choice(Ok(nodes(&["a"])));
        let operation = world.record(resize(&cluster, &worker(&world, &cluster).await, 1)).await;
        database
            .execute(&format!(
                "UPDATE conductor_operation SET step = 'resize_cluster', driver = 'fake', driver_version = '1.0.0' \
                 WHERE uuid = '{operation}'"
            ))
            .await
            .expect("update");
        let _conductor = world.conductor("two");
        world.reaches(&operation, State::Succeeded).await;
        assert_eq!(resizes(&world), [(1, Vec::new())]);
    }
}
