//! Who has much waiting, or many long calls, does not hold up the others.

use std::sync::Arc;
use std::time::Duration;

use magnum_common::ids::{ClusterUuid, OperationId};
use magnum_conductor::handlers::{Accepted, Acceptor, Incoming};
use magnum_conductor::operations::State;
use magnum_tests::fake_driver::{Act, Gate};
use magnum_tests::{TestDatabase, on_every_database, wait};

use super::world::{World, context, create, delete};

fn create_of(project: &str) -> Incoming {
    let mut create = create();
    create.context = context(project);
    create
}

async fn record(acceptor: &Acceptor, wave: Vec<Incoming>) -> Vec<OperationId> {
    let accepted = acceptor.accept(wave, Duration::ZERO).await.unwrap();
    let recorded = accepted.into_iter().map(|one| match one {
        Some(Accepted::Recorded { operation, .. }) => operation,
        other => panic!("not recorded: {other:?}"),
    });
    recorded.collect()
}

/// All calls of the driver from now on stand at the gate.
fn hold_all(world: &World, calls: usize) -> Arc<Gate> {
    let gate = Gate::new();
    for _ in 0..calls {
        world
            .driver
            .then(Act::Gate(gate.clone(), Box::new(Act::Report(Box::default()))));
    }
    gate
}

async fn running(world: &World, operations: &[OperationId]) -> usize {
    let mut count = 0;
    for operation in operations {
        count += usize::from(world.row(operation).await.state == "running");
    }
    count
}

async fn until_running(world: &World, operations: &[OperationId], wanted: usize) {
    wait::until(&format!("{wanted} to run"), Duration::from_secs(20), async || {
        let count = running(world, operations).await;
        if count == wanted { Ok(()) } else { Err(count) }
    })
    .await
    .unwrap();
}

on_every_database! {
    async fn the_first_request_of_a_project_waits_for_few_of_anothers_many(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.workers = 1;
        let gate = hold_all(&world, 1);
        let acceptor = world.acceptor("accepting");
        let many = record(&acceptor, (0..60).map(|_| create_of("many")).collect()).await;
        let conductor = world.conductor("one");
        gate.entered().await;
        let other = record(&acceptor, vec![create_of("other")]).await.remove(0);
        gate.open();
        conductor.wake();
        world.reaches(&other, State::Succeeded).await;
        let calls = world.driver.calls();
        let before = calls.iter().position(|call| call.operation == other).expect("its call");
        // One was at work, at most at the third turn; the other one gets the same, and those of the next two may come before.
        assert!(before <= 5, "{before} of the 60 that were there before came first");
        for operation in &many {
            world.reaches(operation, State::Succeeded).await;
        }
        world.nothing_is_open().await;
    }

    async fn long_calls_of_one_project_leave_room_for_others_and_for_deletions(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.workers = 8;
        let conductor = world.conductor("one");
        let old: ClusterUuid = world.complete_cluster(&conductor).await;
        let gate = hold_all(&world, 7);
        let acceptor = world.acceptor("accepting");
        let many = record(&acceptor, (0..12).map(|_| create_of("many")).collect()).await;
        conductor.wake();
        until_running(&world, &many, 6).await;
        let others = record(&acceptor, (0..2).map(|_| create_of("other")).collect()).await;
        conductor.wake();
        until_running(&world, &others, 1).await;
        // Else the deletion's call may come first, and stand at the gate in the place of one of theirs.
        for _ in 0..7 {
            gate.entered().await;
        }
        // Seven of eight are taken; the last one is kept.
        let deletion = record(&acceptor, vec![delete(&old)]).await.remove(0);
        conductor.wake();
        world.reaches(&deletion, State::Succeeded).await;
        assert_eq!((running(&world, &many).await, running(&world, &others).await), (6, 1));
        (0..7).for_each(|_| gate.open());
        for operation in many.iter().chain(&others) {
            world.reaches(operation, State::Succeeded).await;
        }
        world.nothing_is_open().await;
    }
}
