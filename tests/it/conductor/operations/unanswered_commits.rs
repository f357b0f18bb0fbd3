//! A commit that was carried out and whose answer got lost: what it was about is done once more, and comes out the same.

use std::sync::Arc;
use std::time::Duration;

use magnum_common::ids::{ConductorId, OperationId};
use magnum_conductor::operations::State;
use magnum_conductor::operations::journal::candidates::{self, Place};
use magnum_conductor::operations::journal::{Operation, fenced, read};
use magnum_conductor::operations::lease::{self, Lease};
use magnum_conductor::operations::material::{self, Begin};
use magnum_conductor::operations::slots::Room;
use magnum_conductor::workflows::{OperationKind, Step};
use magnum_tests::{TestDatabase, on_every_database};
use tokio::time::Instant;

use super::world::{World, create, create_pool};

/// Claims the only operation that waits.
async fn claim(world: &World) -> (Lease, Operation) {
    let claimed = world
        .read(|conn| {
            let claimable = magnum_conductor::operations::breakers::Claimable {
                drivers: vec!["fake".to_owned()],
                ..Default::default()
            };
            let look = candidates::candidates(conn, &claimable, &Room::default(), Place::START, 10)?;
            let [candidate] = look.queued.as_slice() else {
                panic!("one operation should wait: {look:?}");
            };
            let me = ConductorId::new("one");
            lease::claim(conn, candidate, &me, Duration::from_secs(60), Instant::now())
        })
        .await;
    let (lease, row) = claimed.expect("claimed");
    let operation = Operation::try_from(row).expect("readable");
    (lease, operation)
}

/// As if it had ended meanwhile, and nobody had looked for what waits behind it.
async fn end(database: &TestDatabase, operation: &OperationId) {
    for sql in [
        format!(
            "UPDATE conductor_operation SET state = 'succeeded', running_key = NULL WHERE uuid = '{operation}'"
        ),
        "UPDATE cluster SET status = 'CREATE_COMPLETE'".to_owned(),
        "UPDATE nodegroup SET status = 'CREATE_COMPLETE'".to_owned(),
    ] {
        database.execute(&sql).await.expect("SQL");
    }
}

on_every_database! {
    async fn an_operation_that_waited_begins_again_as_it_began(database: TestDatabase) {
        let world = World::new(&database).await;
        let asked = create();
        let cluster = asked.command.cluster().clone();
        let first = world.record(asked).await;
        world.record(create_pool(&cluster).1).await;
        end(&database, &first).await;
        let (lease, operation) = claim(&world).await;
        assert!(operation.args.started.is_none(), "it has waited");
        let (lease, timing) = (Arc::new(lease), world.timing.clone());
        let begin = async || {
            let (lease, operation, timing) = (lease.clone(), operation.clone(), timing.clone());
            let step = operation.step;
            world.read(move |conn| material::begin(conn, &lease, &operation, step, &timing)).await
        };
        let mut begun = Vec::new();
        for time in ["the first time", "again"] {
            let Begin::Go(material) = begin().await else {
                panic!("it does not begin {time}");
            };
            begun.push((material.started.expect("arguments"), material.cluster, material.node_groups));
        }
        assert_eq!(begun[0], begun[1]);
    }
}

on_every_database! {
    async fn an_operation_is_recognised_as_left_to_the_cloud_by_its_own_worker(database: TestDatabase) {
        let world = World::new(&database).await;
        world.record(create()).await;
        let (lease, _) = claim(&world).await;
        let lease = Arc::new(lease);
        let left = async || {
            let lease = lease.clone();
            let left = move |conn: &mut _| read::left_as(conn, lease.operation(), lease.owner(), lease.epoch());
            world.read(left).await
        };
        assert_eq!(left().await, None, "it runs");
        let observed = lease.clone();
        world.read(move |conn| fenced::observe(conn, &observed, Step::CallDriver(OperationKind::ClusterCreate), None)).await;
        assert_eq!(left().await, Some(State::Observing));
        database.execute("UPDATE conductor_operation_event SET conductor = 'two'").await.expect("SQL");
        assert_eq!(left().await, None, "somebody else did");
    }
}
