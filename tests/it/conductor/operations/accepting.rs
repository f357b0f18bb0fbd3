//! Accepting: once, completely, or not at all.

use std::time::Duration;

use magnum_common::ids::ClusterUuid;
use magnum_common::model::{ClusterStatus, HealthStatus};
use magnum_conductor::handlers::accept::{MOST_OPEN, waves};
use magnum_conductor::handlers::command::ReportedHealth;
use magnum_conductor::handlers::{Accepted, Command};
use magnum_conductor::operations::State;
use magnum_conductor::operations::journal::read;
use magnum_tests::{Backend, TestDatabase, on_every_database};

use super::world::{World, as_call, context, create, delete, resize, update};

on_every_database! {
    async fn a_create_makes_the_rows_and_the_same_message_is_known_the_second_time(database: TestDatabase) {
        let world = World::new(&database).await;
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked.clone()).await;

        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::CreateInProgress));
        let groups = world.groups(&uuid).await;
        assert_eq!(groups.iter().map(|group| (group.name.as_str(), group.node_count)).collect::<Vec<_>>(),
            [("default-master", 1), ("default-worker", 2)]);
        let row = world.row(&operation).await;
        assert_eq!((row.state.as_str(), row.driver.as_deref(), row.step.as_deref()),
            ("queued", Some("fake"), Some("choose_driver")));
        let context = row.context.unwrap();
        assert!(!context.windows(10).any(|window| window == b"token-of-u"), "the token is sealed");

        let again = world.accept(asked).await;
        assert_eq!(again, Accepted::Known { operation, answered: false });
        assert_eq!(world.groups(&uuid).await.len(), 2);
    }

    async fn two_conductors_with_the_same_message_record_it_once(database: TestDatabase) {
        let world = World::new(&database).await;
        for _ in 0..5 {
            let asked = create();
            let (one, two) = (world.acceptor("one"), world.acceptor("two"));
            let (first, second) = tokio::join!(one.accept(vec![asked.clone()], Duration::ZERO), two.accept(vec![asked.clone()], Duration::ZERO));
            let both = [first.unwrap().remove(0).unwrap(), second.unwrap().remove(0).unwrap()];
            let recorded = both.iter().filter(|one| matches!(one, Accepted::Recorded { .. })).count();
            let known = both.iter().filter(|one| matches!(one, Accepted::Known { .. })).count();
            assert_eq!((recorded, known), (1, 1), "{both:?}");
            assert_eq!(world.groups(asked.command.cluster()).await.len(), 2);
        }
    }

    async fn a_value_the_database_does_not_take_harms_only_its_own_message(database: TestDatabase) {
        let world = World::new(&database).await;
        let mut bad = create();
        if let Command::ClusterCreate(create) = &mut bad.command {
            // PostgreSQL takes no NUL in a text; the others do.
            create.cluster.name = Some("nul\0nul".into());
        }
        let good = [create(), create()];
        let wave = vec![good[0].clone(), bad, good[1].clone()];
        let accepted = world.acceptor("a").accept(wave, Duration::ZERO).await.unwrap();
        let accepted: Vec<Accepted> = accepted.into_iter().flatten().collect();
        assert!(matches!(accepted[0], Accepted::Recorded { .. }));
        assert!(matches!(accepted[2], Accepted::Recorded { state: State::Queued, .. }));
        let bad = if database.backend == Backend::Postgres { State::Refused } else { State::Queued };
        assert!(matches!(&accepted[1], Accepted::Recorded { state, .. } if *state == bad), "{accepted:?}");
        for one in &good {
            assert!(world.cluster(one.command.cluster()).await.is_some());
        }
    }

    async fn a_journal_that_takes_nothing_is_an_outage_and_not_the_requests_fault(database: TestDatabase) {
        let world = World::new(&database).await;
        let asked = create();
        database.execute("ALTER TABLE conductor_operation RENAME TO away").await.unwrap();
        let error = world.acceptor("a").accept(vec![asked.clone()], Duration::ZERO).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        database.execute("ALTER TABLE away RENAME TO conductor_operation").await.unwrap();
        let accepted = world.accept(asked.clone()).await;
        assert!(matches!(accepted, Accepted::Recorded { state: State::Queued, .. }), "{accepted:?}");
        assert_eq!(world.groups(asked.command.cluster()).await.len(), 2);
    }

    async fn request_against_the_clusters_state_is_refused_without_a_change(database: TestDatabase) {
        let world = World::new(&database).await;
        let asked = create();
        let uuid = asked.command.cluster().clone();
        world.record(asked).await;

        let accepted = world.accept(update(&uuid, 5)).await;
        let Accepted::Recorded { operation, state: State::Refused, .. } = accepted else {
            panic!("{accepted:?}");
        };
        let row = world.row(&operation).await;
        assert_eq!(row.reason.as_deref(),
            Some("Updating a cluster when status is \"CREATE_IN_PROGRESS\" is not supported."));
        assert!(row.context.is_none() && row.ended_ms.is_some());
        assert_eq!(world.groups(&uuid).await[1].node_count, 2);
    }

    async fn a_cluster_has_a_bounded_number_of_open_operations_and_can_be_deleted_all_the_same(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        conductor.stop.cancel();
        let worker = world.groups(&uuid).await[1].clone();
        for _ in 0..MOST_OPEN {
            let accepted = world.accept(resize(&uuid, &worker, 3)).await;
            assert!(matches!(accepted, Accepted::Recorded { state: State::Queued, .. }), "{accepted:?}");
        }
        let Accepted::Recorded { operation, state: State::Refused, .. } = world.accept(resize(&uuid, &worker, 3)).await else {
            panic!("one more was accepted");
        };
        let reason = world.row(&operation).await.reason.unwrap();
        assert!(reason.contains("has 100 requests that are not done yet"), "{reason}");
        let accepted = world.accept(delete(&uuid)).await;
        assert!(matches!(accepted, Accepted::Recorded { state: State::Queued, .. }), "{accepted:?}");
        assert!(matches!(world.accept(create()).await, Accepted::Recorded { state: State::Queued, .. }));
    }

    async fn a_uuid_that_is_taken_is_refused(database: TestDatabase) {
        let world = World::new(&database).await;
        let asked = create();
        world.record(asked.clone()).await;
        let mut other = create();
        other.command = asked.command.clone();
        let accepted = world.accept(other).await;
        let Accepted::Recorded { operation, state: State::Refused, .. } = accepted else {
            panic!("{accepted:?}");
        };
        assert!(world.row(&operation).await.reason.unwrap().ends_with("already exists."));
    }

    async fn somebody_elses_cluster_is_not_found(database: TestDatabase) {
        let world = World::new(&database).await;
        let asked = create();
        let uuid = asked.command.cluster().clone();
        world.record(asked).await;
        let mut foreign = delete(&uuid);
        foreign.context = context("another project");
        let accepted = world.accept(foreign).await;
        assert!(matches!(accepted, Accepted::Recorded { state: State::Refused, .. }), "{accepted:?}");
        assert_eq!(world.cluster(&uuid).await.unwrap().status, Some(ClusterStatus::CreateInProgress));
    }

    async fn health_is_written_at_once_without_an_operation_whatever_goes_on(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        // What is accepted from here on waits.
        drop(conductor);
        let calls = world.driver.calls().len();
        let operations = async || {
            let all = read::Wanted { limit: 1000, ..read::Wanted::default() };
            world.read(move |conn| read::list(conn, &all)).await.len()
        };
        let before = operations().await;
        let report = |count: i32, health: HealthStatus| {
            let mut incoming = update(&uuid, count);
            if let Command::ClusterUpdate(update) = &mut incoming.command {
                let reasons = [("api".to_owned(), "ż".to_owned())].into_iter().collect();
                update.health = Some(ReportedHealth { status: Some(health), reasons });
            }
            incoming
        };

        assert_eq!(world.accept(report(2, HealthStatus::Unhealthy)).await, Accepted::Done);
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.health_status, Some(HealthStatus::Unhealthy));
        assert_eq!(cluster.health_status_reason["api"], "ż");
        assert_eq!(cluster.status, Some(ClusterStatus::CreateComplete));
        assert_eq!(world.accept(report(2, HealthStatus::Unhealthy)).await, Accepted::Done, "nothing different");

        assert_eq!(operations().await, before);

        world.accept(update(&uuid, 5)).await;
        assert_eq!(world.accept(report(5, HealthStatus::Healthy)).await, Accepted::Done);
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.health_status, Some(HealthStatus::Healthy));
        assert_eq!(cluster.status, Some(ClusterStatus::UpdateInProgress));
        assert_eq!(operations().await, before + 1, "only the update");
        assert_eq!(world.driver.calls().len(), calls, "no driver was asked");

        // Who waits for a reply gets one, which needs an operation.
        let accepted = world.accept(as_call(report(5, HealthStatus::Unhealthy))).await;
        assert!(matches!(accepted, Accepted::Recorded { state: State::Succeeded, answered: true, .. }), "{accepted:?}");
    }

    async fn a_hundred_creates_fit_into_one_transaction(database: TestDatabase) {
        let world = World::new(&database).await;
        let asked: Vec<_> = (0..100).map(|_| create()).collect();
        let accepted = world.acceptor("a").accept(asked.clone(), Duration::ZERO).await.unwrap();
        assert!(accepted.iter().all(|one| matches!(one, Some(Accepted::Recorded { state: State::Queued, .. }))));
        for one in &asked {
            assert_eq!(world.groups(one.command.cluster()).await.len(), 2);
        }
    }
}

#[test]
fn a_batch_is_cut_where_a_cluster_or_a_message_repeats() {
    let (a, b) = (create(), create());
    let uuid: ClusterUuid = a.command.cluster().clone();
    let sizes = |batch| waves(batch).iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(sizes(vec![a.clone(), b.clone()]), [2]);
    assert_eq!(sizes(vec![a.clone(), delete(&uuid), b.clone()]), [1, 2]);
    assert_eq!(sizes(vec![a.clone(), b, a]), [2, 1]);
    assert_eq!(sizes(Vec::new()), Vec::<usize>::new());
}
