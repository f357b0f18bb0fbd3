//! What tenants read of a failure that is not the driver's, and what administrators read of it.

use magnum_common::ids::OperationId;
use magnum_conductor::operations::State;
use magnum_driver_api::{DriverError, Reason};
use magnum_tests::fake_driver::Act;
use magnum_tests::{TestDatabase, on_every_database};

use super::world::{World, as_call, create, rotate_ca};

/// Everything about an ended operation that a tenant can read: its cluster, the groups, its own reason, and the answer to
/// its call.
async fn told(world: &World, operation: &OperationId) -> String {
    let row = world.row(operation).await;
    let uuid = row.cluster_uuid.as_str().into();
    let cluster = world.cluster(&uuid).await.expect("the cluster");
    let groups = world.groups(&uuid).await;
    let answer = row.answer.as_deref().map(String::from_utf8_lossy);
    format!(
        "{:?} {:?} {:?} {:?} {answer:?}",
        row.reason,
        cluster.status_reason,
        cluster.health_status_reason,
        groups
            .iter()
            .map(|group| &group.status_reason)
            .collect::<Vec<_>>(),
    )
}

/// What administrators read in the operation's events.
async fn whole(world: &World, operation: &OperationId) -> String {
    let events = world.events(operation).await;
    events
        .into_iter()
        .filter_map(|event| event.detail)
        .collect::<Vec<_>>()
        .join("\n")
}

on_every_database! {
    async fn a_failure_of_the_store_of_certificates_is_told_without_the_words_of_the_database(database: TestDatabase) {
        let world = World::new(&database).await;
        database.execute("ALTER TABLE x509keypair RENAME TO elsewhere").await.unwrap();
        let operation = world.record(create()).await;
        let conductor = world.conductor("one");
        world.reaches(&operation, State::Failed).await;
        let (told, whole) = (told(&world, &operation).await, whole(&world, &operation).await);
        assert!(told.contains("Failed to create certificates for Cluster"), "{told}");
        assert!(!told.contains("x509keypair"), "{told}");
        assert!(whole.contains("x509keypair"), "{whole}");

        database.execute("ALTER TABLE elsewhere RENAME TO x509keypair").await.unwrap();
        let cluster = world.complete_cluster(&conductor).await;
        database.execute("ALTER TABLE x509keypair RENAME TO elsewhere").await.unwrap();
        let call = world.record(as_call(rotate_ca(&cluster))).await;
        world.reaches(&call, State::Failed).await;
        assert!(!self::told(&world, &call).await.contains("x509keypair"));
        world.nothing_is_open().await;
    }

    async fn tenants_do_not_read_paths_of_the_conductors_host(database: TestDatabase) {
        let world = World::new(&database).await;
        let reason = Reason::internal("The conductor cannot start the driver", "/opt/drivers/disk: no such file");
        for _ in 0..4 {
            world.driver.then(Act::Fail(DriverError::Transient(reason.clone())));
        }
        let operation = world.record(create()).await;
        let _conductor = world.conductor("one");
        world.reaches(&operation, State::Failed).await;
        let (told, whole) = (told(&world, &operation).await, whole(&world, &operation).await);
        assert_eq!(told.matches("cannot start the driver (given up after 4 attempts)").count(), 4, "{told}");
        assert!(!told.contains("/opt/drivers"), "{told}");
        assert!(whole.contains("failed: /opt/drivers/disk: no such file (given up after 4 attempts)"), "{whole}");
        world.nothing_is_open().await;
    }

    async fn the_words_of_a_panic_are_for_administrators(database: TestDatabase) {
        let world = World::new(&database).await;
        for _ in 0..3 {
            world.driver.then(Act::Panic);
        }
        let operation = world.record(create()).await;
        let _conductor = world.conductor("one");
        world.reaches(&operation, State::Failed).await;
        let (told, whole) = (told(&world, &operation).await, whole(&world, &operation).await);
        assert!(told.contains("The driver panicked (given up after 3 panics)"), "{told}");
        assert!(whole.contains("The driver panicked: as the script says"), "{whole}");
        assert!(!told.contains("script"), "{told}");
        world.nothing_is_open().await;
    }
}
