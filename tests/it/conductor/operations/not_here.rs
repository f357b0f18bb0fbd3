//! What this conductor cannot do is left to others, and counts for nothing: neither as an attempt nor as a failure.

use magnum_conductor::operations::State;
use magnum_conductor::operations::breakers::Breakers;
use magnum_driver_api::DriverError;
use magnum_tests::fake_driver::Act;
use magnum_tests::{TestDatabase, on_every_database};
use tokio::time::Instant;

use super::world::{World, create, update};

on_every_database! {
    async fn a_driver_that_cannot_be_run_here_is_no_failure_of_the_operation(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        for _ in 0..2 {
            world.driver.then(Act::Fail(DriverError::NotHere("no process is left".into())));
        }
        let operation = world.record(create()).await;
        conductor.wake();
        let row = world.reaches(&operation, State::Succeeded).await;
        assert_eq!((row.attempts, row.failures), (1, 0));
        let left = world.events(&operation).await;
        let left = left.iter().filter(|event| event.kind == "released").count();
        assert_eq!(left, 2);
    }

    async fn a_version_that_is_not_here_is_left_to_whoever_has_it(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        // A newer conductor has built it.
        database.execute("UPDATE conductor_cluster_driver SET version = '9.1.0'").await.unwrap();
        let operation = world.record(update(&uuid, 3)).await;
        conductor.wake();
        let row = world.reaches(&operation, State::Retrying).await;
        assert_eq!((row.attempts, row.failures, row.driver_version.as_deref()), (0, 0, Some("9.1.0")));
        let claimable = conductor.services.breakers.claimable(vec!["fake".to_owned()], Instant::now());
        assert_eq!(claimable.without.len(), 1, "it is not claimed again at once: {claimable:?}");
        // It is installed here as well, and the conductor started again.
        database.execute("UPDATE conductor_cluster_driver SET version = '1.0.0'").await.unwrap();
        database.execute("UPDATE conductor_operation SET driver_version = '1.0.0'").await.unwrap();
        assert!(Breakers::default().claimable(vec!["fake".to_owned()], Instant::now()).without.is_empty());
        world.reaches(&operation, State::Succeeded).await;
    }
}
