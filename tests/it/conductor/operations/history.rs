//! Old operations leave the journal, and nothing else does.

use std::time::Duration;

use magnum_common::ids::OperationId;
use magnum_conductor::operations::State;
use magnum_conductor::operations::journal::{JournalError, read};
use magnum_conductor::periodic::journal_history;
use magnum_driver_api::DriverError;
use magnum_rpc::PublishError;
use magnum_tests::fake_driver::Act;
use magnum_tests::{TestDatabase, on_every_database};

use super::world::{World, as_call, create, delete, update};

const DAY: Duration = Duration::from_secs(86_400);

/// Makes everything in the journal so many days older.
async fn age(database: &TestDatabase, days: u64) {
    let ms = days * 86_400_000;
    let sql = format!(
        "UPDATE conductor_operation SET created_ms = created_ms - {ms}, updated_ms = updated_ms - {ms}, \
         ended_ms = ended_ms - {ms}"
    );
    database.execute(&sql).await.unwrap();
}

async fn purge(world: &World) -> usize {
    // Two rows at a time: the walk has to go on.
    journal_history::pass(&world.db, 30 * DAY, 2).await.unwrap()
}

async fn is_there(world: &World, operation: &OperationId) -> bool {
    let id = operation.clone();
    world
        .read(move |conn| Ok(read::find(conn, id.as_str())?.is_some()))
        .await
}

async fn events(world: &World) -> i64 {
    use diesel::prelude::*;
    use magnum_db::schema::conductor_operation_event::dsl as e;
    world
        .read(|conn| {
            e::conductor_operation_event
                .count()
                .get_result(conn)
                .map_err(JournalError::from)
        })
        .await
}

on_every_database! {
    async fn expired_operations_are_deleted_with_their_events(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        for count in 3..8 {
            let operation = world.record(update(&cluster, count)).await;
            conductor.wake();
            world.reaches(&operation, State::Succeeded).await;
        }
        let deleted = world.record(delete(&cluster)).await;
        conductor.wake();
        world.reaches(&deleted, State::Succeeded).await;
        age(&database, 29).await;
        assert_eq!(purge(&world).await, 0);
        age(&database, 2).await;

        let kept = world.complete_cluster(&conductor).await;
        assert_eq!(purge(&world).await, 7);
        assert!(!is_there(&world, &deleted).await);
        assert!(world.cluster(&kept).await.is_some());
        let rest = world.read(|conn| read::list(conn, &read::Wanted { limit: 10, ..Default::default() })).await;
        assert_eq!(rest.len(), 1);
        let of_the_rest = world.events(&rest[0].uuid.clone().into()).await.len();
        assert_eq!(events(&world).await, i64::try_from(of_the_rest).unwrap());
    }

    async fn the_last_operation_of_a_living_cluster_stays_and_can_be_retried(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        world.driver.then(Act::Fail(DriverError::Permanent("no".into())));
        let failed = world.record(update(&cluster, 5)).await;
        conductor.wake();
        world.reaches(&failed, State::Failed).await;
        let refused = world.record(update(&cluster, 6)).await;
        assert_eq!(world.row(&refused).await.state, "refused");
        age(&database, 400).await;
        assert_eq!(purge(&world).await, 2, "the create and the refused update");
        assert!(is_there(&world, &failed).await);

        let id = failed.clone();
        world.db.transaction(move |conn| magnum_conductor::operations::admin::retry(conn, id.as_str(), "me")).await.unwrap();
        conductor.wake();
        world.reaches(&failed, State::Succeeded).await;
    }

    async fn open_or_unanswered_operations_are_kept(database: TestDatabase) {
        let world = World::new(&database).await;
        let open = world.record(create()).await;
        *world.sink.fail.lock().unwrap() = Some(PublishError::Disconnected("cut".into()));
        let mut unknown = as_call(delete(&"5d12f6fd-a196-4bf0-ae4c-1f639a523a52".into()));
        let unanswered = world.record(unknown.clone()).await;
        assert!(world.row(&unanswered).await.reply_pending);
        unknown.message = Some(magnum_common::ids::MessageId::random());
        unknown.reply = None;
        let answered = world.record(unknown).await;
        age(&database, 400).await;
        assert_eq!(purge(&world).await, 1);
        assert!(is_there(&world, &open).await && is_there(&world, &unanswered).await);
        assert!(!is_there(&world, &answered).await);
    }

    async fn what_changed_nothing_is_kept_for_a_day(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        world.record(delete(&cluster)).await;
        let repeated = world.record(delete(&cluster)).await;
        let refused = world.record(update(&cluster, 3)).await;
        let states = [world.row(&repeated).await.state, world.row(&refused).await.state];
        assert_eq!(states, ["cancelled", "refused"]);
        assert_eq!(purge(&world).await, 0);
        age(&database, 1).await;
        assert_eq!(purge(&world).await, 2);
        assert!(!is_there(&world, &repeated).await && !is_there(&world, &refused).await);
    }

    async fn a_message_is_recognised_as_long_as_its_operation_is_there(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        let asked = delete(&cluster);
        let operation = world.record(asked.clone()).await;
        conductor.wake();
        world.reaches(&operation, State::Succeeded).await;
        age(&database, 29).await;
        purge(&world).await;
        let again = world.accept(asked).await;
        assert!(matches!(again, magnum_conductor::handlers::Accepted::Known { .. }), "{again:?}");
    }
}
