//! Operations under which conductors end do not take others along, and slowness of ours is nobody's fault.

use std::time::Duration;

use magnum_common::ids::OperationId;
use magnum_conductor::operations::journal::candidates::{self, Place};
use magnum_conductor::operations::slots::Room;
use magnum_conductor::operations::{State, lease};
use magnum_tests::fake_driver::{Act, Gate};
use magnum_tests::{TestDatabase, on_every_database, wait};
use tokio::time::Instant;

use super::world::{World, create};

async fn was_lost(database: &TestDatabase, operation: &OperationId, times: u32) {
    let sql = format!("UPDATE conductor_operation SET lost_claims = {times} WHERE uuid = '{operation}'");
    database.execute(&sql).await.unwrap();
}

/// A create at whose driver call somebody stands at the gate.
fn held(world: &World) -> std::sync::Arc<Gate> {
    let gate = Gate::new();
    world
        .driver
        .then(Act::Gate(gate.clone(), Box::new(Act::Report(Box::default()))));
    gate
}

on_every_database! {
    async fn a_suspect_begins_alone(database: TestDatabase) {
        let mut world = World::new(&database).await;
        // The conductor looks when it is told, not between the record of the suspect and what makes it one.
        world.timing.poll = Duration::from_secs(3600);
        let first_gate = held(&world);
        let first = world.record(create()).await;
        let conductor = world.conductor("one");
        first_gate.entered().await;
        let suspect = world.record(create()).await;
        was_lost(&database, &suspect, 2).await;
        let second_gate = held(&world);
        let second = world.record(create()).await;
        conductor.wake();
        // The younger one has begun, so the suspect was passed over.
        second_gate.entered().await;
        assert_eq!(world.row(&suspect).await.state, "queued");
        let suspects_gate = held(&world);
        first_gate.open();
        second_gate.open();
        world.reaches(&first, State::Succeeded).await;
        world.reaches(&second, State::Succeeded).await;
        suspects_gate.entered().await;
        let third = world.record(create()).await;
        conductor.wake();
        suspects_gate.open();
        world.reaches(&suspect, State::Succeeded).await;
        world.reaches(&third, State::Succeeded).await;
        let (ended, begun) = (world.events(&suspect).await, world.events(&third).await);
        let (ended, begun) = (ended.last().unwrap().at_ms, begun.iter().find(|event| event.kind == "claimed").unwrap().at_ms);
        assert!(ended <= begun, "it was not alone");
        assert_eq!(world.row(&suspect).await.attempts, 1);
        world.nothing_is_open().await;
    }

    async fn each_loss_is_counted_and_makes_a_suspect_wait_longer(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.lease = Duration::from_secs(1);
        let operation = world.record(create()).await;
        let row = world.row(&operation).await.id;
        let claimable = move || magnum_conductor::operations::breakers::Claimable {
            drivers: vec!["fake".to_owned()],
            over: vec![row],
            ..Default::default()
        };
        let candidates = async || {
            let look = world.read(move |conn| candidates::candidates(conn, &claimable(), &Room::default(), Place::START, 10)).await;
            [look.due, look.queued].concat()
        };
        for lost in 0..2 {
            let candidate = candidates().await.pop().expect("its turn");
            assert_eq!(candidate.lost_claims(), (lost - 1).max(0));
            let me = magnum_common::ids::ConductorId::new("one");
            let claimed = world.read(move |conn| {
                lease::claim(conn, &candidate, &me, Duration::ZERO, Instant::now())
            }).await;
            assert_eq!(claimed.expect("claimed").1.lost_claims, lost);
        }
        // Lost once by now, and a second time when it is claimed again.
        let candidate = candidates().await.pop().expect("its turn");
        assert_eq!(candidate.lost_claims(), 1);
        was_lost(&database, &operation, 2).await;
        assert!(candidates().await.is_empty(), "it has to wait");
        let sql = format!("UPDATE conductor_operation SET lease_expires_ms = lease_expires_ms - 60000 WHERE uuid = '{operation}'");
        database.execute(&sql).await.unwrap();
        assert_eq!(candidates().await.len(), 1);
        let _conductor = world.conductor("two");
        world.reaches(&operation, State::Succeeded).await;
    }

    async fn a_lease_that_was_given_back_is_no_loss(database: TestDatabase) {
        let world = World::new(&database).await;
        let gate = held(&world);
        let operation = world.record(create()).await;
        let mut one = world.conductor("one");
        gate.entered().await;
        one.stop.cancel();
        (&mut one.executor).await.unwrap();
        let _two = world.conductor("two");
        let row = world.reaches(&operation, State::Succeeded).await;
        assert_eq!((row.attempts, row.lost_claims), (2, 0));
    }

    async fn a_conductor_that_was_too_slow_takes_the_loss_back(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.lease = Duration::from_secs(2);
        let gate = held(&world);
        let operation = world.record(create()).await;
        let mut one = world.conductor("one");
        gate.entered().await;
        // Its renewals fail for a while, and somebody takes over.
        database.execute("ALTER TABLE conductor_operation RENAME TO elsewhere").await.unwrap();
        wait::until("the driver to be told", Duration::from_secs(20), async || {
            let end = world.driver.calls()[0].end;
            if end == "cancelled" { Ok(()) } else { Err(end) }
        }).await.unwrap();
        // Its worker leaves the operation first, and takes the loss back later; it claims nothing more.
        one.stop.cancel();
        (&mut one.executor).await.unwrap();
        database.execute("UPDATE elsewhere SET owner = 'two', lease_epoch = lease_epoch + 1, lost_claims = 1").await.unwrap();
        database.execute("ALTER TABLE elsewhere RENAME TO conductor_operation").await.unwrap();
        wait::until("the loss to be taken back", Duration::from_secs(20), async || {
            let lost = world.row(&operation).await.lost_claims;
            if lost == 0 { Ok(()) } else { Err(lost) }
        }).await.unwrap();
        let events = world.events(&operation).await;
        assert_eq!(events.iter().filter(|event| event.kind == "released").count(), 1);
        database.execute("UPDATE conductor_operation SET lease_expires_ms = 0, owner = NULL").await.unwrap();
        let _three = world.conductor("three");
        world.reaches(&operation, State::Succeeded).await;
    }
}
