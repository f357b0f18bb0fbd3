//! Walking through the steps: ends, retries, panics, deadlines.

use std::time::Duration;

use magnum_common::ids::{ClusterUuid, OperationId};
use magnum_common::model::ClusterStatus;
use magnum_conductor::handlers::Command;
use magnum_conductor::operations::breakers::Claimable;
use magnum_conductor::operations::database_watch::DatabaseWatch;
use magnum_conductor::operations::journal::candidates::{self, Place};
use magnum_conductor::operations::slots::Room;
use magnum_conductor::operations::{State, finish, sweep};
use magnum_driver_api::{DriverError, DriverReport, NodeGroupChanges};
use magnum_tests::fake_driver::{Act, Gate, built, with_group};
use magnum_tests::{TestDatabase, on_every_database, wait};
use tokio::time::Instant;

use super::world::{World, create, delete, update};

fn watch() -> DatabaseWatch {
    DatabaseWatch::new(Duration::from_secs(60))
}

on_every_database! {
    async fn successful_create_stores_everything_the_driver_reported(database: TestDatabase) {
        let world = World::new(&database).await;
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        let worker = world.groups(&uuid).await[1].uuid.clone();
        let mut changes = NodeGroupChanges::of(worker);
        changes.status = Some(ClusterStatus::CreateComplete);
        changes.node_addresses = Some(vec!["10.0.0.7".into()]);
        let mut report = with_group(built(ClusterStatus::CreateComplete, "stack-1"), changes);
        report.cluster.api_address = Some("https://10.0.0.5:6443".into());
        world.driver.then(Act::Report(Box::new(report)));

        let _conductor = world.conductor("one");
        let row = world.reaches(&operation, State::Succeeded).await;
        assert_eq!((row.attempts, row.failures, row.lease_epoch), (1, 0, 1));
        assert!(row.context.is_none(), "the context is erased at the end");
        assert!(row.owner.is_none() && row.lease_expires_ms.is_none());

        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::CreateComplete));
        assert_eq!(cluster.stack_id.as_deref(), Some("stack-1"));
        assert_eq!(cluster.api_address.as_deref(), Some("https://10.0.0.5:6443"));
        for group in world.groups(&uuid).await {
            assert_eq!(group.status, Some(ClusterStatus::CreateComplete), "{}", group.name);
            assert_eq!(group.stack_id.as_deref(), Some("stack-1"));
        }
        let calls = world.driver.calls();
        assert_eq!(calls.len(), 1);
        assert_eq!((calls[0].attempt, calls[0].token.as_deref()), (1, Some("token-of-u")));
        let kinds: Vec<_> = world.events(&operation).await.into_iter().map(|event| event.kind).collect();
        assert_eq!(kinds, ["accepted", "claimed", "intent", "result", "intent", "result", "intent", "ended"]);
        world.nothing_is_open().await;
    }

    /// Whatever engine ran the driver: no part of it is recorded, and asking again would bring the same.
    async fn a_report_over_the_limits_fails_the_operation_and_names_the_field(database: TestDatabase) {
        let world = World::new(&database).await;
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        let mut changes = NodeGroupChanges::of(world.groups(&uuid).await[0].uuid.clone());
        changes.version = Some("v1.29.3+distribution.1".into());
        let report = with_group(built(ClusterStatus::CreateComplete, "stack-1"), changes);
        world.driver.then(Act::Report(Box::new(report)));

        let _conductor = world.conductor("one");
        let row = world.reaches(&operation, State::Failed).await;
        let reason = "driver fake 1.0.0 returned a report that cannot be recorded: \
                      node_groups[0].version has 22 characters; its column holds 20";
        assert_eq!(row.reason.as_deref(), Some(reason));
        assert_eq!(row.attempts, 1, "it is not asked again");
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::CreateFailed));
        assert_eq!(cluster.stack_id, None);
        world.nothing_is_open().await;
    }

    async fn work_that_continues_in_the_cloud_is_finished_by_observation(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        for (end, state) in [
            (ClusterStatus::CreateComplete, State::Succeeded),
            (ClusterStatus::CreateFailed, State::Failed),
        ] {
            world.driver.then(Act::Report(Box::new(built(ClusterStatus::CreateInProgress, "s"))));
            let asked = create();
            let uuid = asked.command.cluster().clone();
            let operation = world.record(asked).await;
            conductor.wake();
            let row = world.reaches(&operation, State::Observing).await;
            assert!(row.owner.is_none(), "nobody holds a lease while the cloud works");

            let seen = uuid.clone();
            let settled = world.read(move |conn| {
                magnum_conductor::store::clusters::set_status(
                    conn, &seen, Some(ClusterStatus::CreateInProgress), end, Some("as seen"))?;
                finish::observed(conn, &seen, end, Some("as seen"))
            }).await;
            assert_eq!(settled, Some(operation.clone()));
            world.reaches(&operation, state).await;
            for group in world.groups(&uuid).await {
                assert_eq!(group.status, Some(end));
            }
        }
        world.nothing_is_open().await;
    }

    async fn transient_failures_are_tried_again_by_the_stored_schedule(database: TestDatabase) {
        let world = World::new(&database).await;
        world.driver
            .then(Act::Fail(DriverError::Transient("busy".into())))
            .then(Act::Fail(DriverError::Transient("busy".into())));
        let operation = world.record(create()).await;
        let _conductor = world.conductor("one");
        let row = world.reaches(&operation, State::Succeeded).await;
        assert_eq!((row.attempts, row.failures), (3, 2));
        let calls = world.driver.calls();
        assert_eq!(calls.iter().map(|call| call.attempt).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(calls.iter().all(|call| call.operation == operation), "the same operation each time");
        let choices = world.events(&operation).await.into_iter()
            .filter(|event| event.kind == "result" && event.step.as_deref() == Some("choose_driver"))
            .count();
        assert_eq!(choices, 1, "a step with a result is not run again");
    }

    async fn a_create_that_is_given_up_fails_with_the_drivers_words_on_cluster_and_groups(database: TestDatabase) {
        let world = World::new(&database).await;
        for _ in 0..4 {
            world.driver.then(Act::Fail(DriverError::Transient("no quota".into())));
        }
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        let _conductor = world.conductor("one");
        let row = world.reaches(&operation, State::Failed).await;
        assert_eq!((row.attempts, row.failures), (4, 4));
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::CreateFailed));
        assert_eq!(cluster.status_reason.as_deref(), Some("no quota (given up after 4 attempts)"));
        for group in world.groups(&uuid).await {
            assert_eq!(group.status, Some(ClusterStatus::CreateFailed));
            assert_eq!(group.status_reason, cluster.status_reason);
        }
        world.nothing_is_open().await;
    }

    async fn a_failed_update_puts_the_node_count_back(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        world.driver.then(Act::Fail(DriverError::Permanent("no more machines".into())));
        let operation = world.record(update(&uuid, 7)).await;
        conductor.wake();
        world.reaches(&operation, State::Failed).await;
        assert_eq!(world.driver.calls().last().unwrap().workers, 7);
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::UpdateFailed));
        assert_eq!(cluster.status_reason.as_deref(), Some("no more machines"));
        assert_eq!(world.groups(&uuid).await[1].node_count, 2);
    }

    async fn a_driver_that_panics_is_tried_again_and_then_given_up(database: TestDatabase) {
        let world = World::new(&database).await;
        for _ in 0..3 {
            world.driver.then(Act::Panic);
        }
        let operation = world.record(create()).await;
        let conductor = world.conductor("one");
        let row = world.reaches(&operation, State::Failed).await;
        assert_eq!(row.failures, 3);
        assert!(row.reason.unwrap().starts_with("The driver panicked (given up"));
        // The conductor is none the worse.
        world.complete_cluster(&conductor).await;
    }

    async fn a_driver_that_does_not_end_in_time_is_stopped_and_the_reason_names_the_limit(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.update_timeout = Duration::from_millis(400);
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        world.driver.then(Act::Gate(Gate::new(), Box::new(Act::Panic)));
        let operation = world.record(update(&uuid, 3)).await;
        conductor.wake();
        world.reaches(&operation, State::Failed).await;
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::UpdateFailed));
        let reason = cluster.status_reason.unwrap();
        assert!(reason.contains("update_timeout"), "{reason}");
        assert_eq!(world.driver.calls().last().unwrap().end, "cancelled");
    }

    async fn observed_operation_fails_after_its_time_limit(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.delete_timeout = Duration::from_millis(300);
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        world.driver.then(Act::Report(Box::new(DriverReport::status(ClusterStatus::DeleteInProgress))));
        let operation = world.record(delete(&uuid)).await;
        conductor.wake();
        world.reaches(&operation, State::Observing).await;
        tokio::time::sleep(Duration::from_millis(350)).await;
        sweep::pass(&conductor.services, &mut watch()).await.unwrap();
        world.reaches(&operation, State::Failed).await;
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::DeleteFailed));
        assert!(cluster.status_reason.unwrap().contains("delete_timeout"));
    }

    async fn an_unknown_driver_ends_in_a_status_the_user_can_see(database: TestDatabase) {
        let world = World::new(&database).await;
        database.execute("UPDATE cluster_template SET driver = NULL, cluster_distro = 'plan9'").await.unwrap();
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        let _conductor = world.conductor("one");
        world.reaches(&operation, State::Failed).await;
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::CreateFailed));
        assert_eq!(cluster.status_reason.as_deref(),
            Some("Cluster type (vm, plan9, kubernetes) not supported."));
    }

    async fn an_operation_of_a_driver_that_nobody_has_is_not_claimed_and_ends_by_the_sweep(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.driver_patience = Duration::ZERO;
        world.timing.driver_alive = Duration::ZERO;
        database.execute("UPDATE cluster_template SET driver = 'elsewhere'").await.unwrap();
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        let conductor = world.conductor("one");
        world.complete_cluster_of(&conductor, &database).await;
        assert_eq!(world.row(&operation).await.state, "queued", "left to a conductor that has the driver");
        sweep::pass(&conductor.services, &mut watch()).await.unwrap();
        world.reaches(&operation, State::Failed).await;
        let reason = world.cluster(&uuid).await.unwrap().status_reason.unwrap();
        assert!(reason.contains("(elsewhere) not supported") && reason.contains("No running conductor"), "{reason}");
    }

    async fn a_conductor_that_has_just_come_to_the_database_judges_nobody(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.driver_patience = Duration::ZERO;
        world.timing.driver_alive = Duration::from_millis(500);
        database.execute("UPDATE cluster_template SET driver = 'elsewhere'").await.unwrap();
        let operation = world.record(create()).await;
        let conductor = world.conductor("one");
        // An outage has made all announcements old.
        let mut watch = watch();
        let begun = Instant::now();
        sweep::pass(&conductor.services, &mut watch).await.unwrap();
        assert_eq!(world.row(&operation).await.state, "queued");
        wait::until("the operation to be given up", Duration::from_secs(60), async || {
            sweep::pass(&conductor.services, &mut watch).await.unwrap();
            let state = world.row(&operation).await.state;
            (state == "failed").then_some(()).ok_or(state)
        }).await.unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(500));
    }

    async fn what_a_dead_conductor_leaves_behind_ends_by_anybody_when_its_driver_is_nowhere(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.driver_patience = Duration::ZERO;
        world.timing.driver_alive = Duration::ZERO;
        for how in ["deadline", "stop", "sweep"] {
            let gate = Gate::new();
            world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Panic)));
            let asked = create();
            let uuid = asked.command.cluster().clone();
            let operation = world.record(asked).await;
            let one = world.conductor("one");
            gate.entered().await;
            drop(one);
            let set = |what: &str| format!("UPDATE conductor_operation SET {what} WHERE uuid = '{operation}'");
            database.execute(&set("driver = 'elsewhere', lease_expires_ms = 1")).await.unwrap();
            let two = world.conductor("two");
            world.complete_cluster_of(&two, &database).await;
            assert_eq!(world.row(&operation).await.state, "running", "left to a conductor that has the driver");
            let mut stopped_for = None;
            match how {
                "deadline" => database.execute(&set("deadline_ms = 1")).await.unwrap(),
                "stop" => stopped_for = Some(world.record(delete(&uuid)).await),
                // It has to watch the lease for a term before it ends anything.
                _ => wait::until("the sweep", Duration::from_secs(20), async || {
                    sweep::pass(&two.services, &mut watch()).await.map_err(|error| error.to_string())?;
                    let state = world.row(&operation).await.state;
                    if state == State::Failed.as_str() { Ok(()) } else { Err(state) }
                }).await.unwrap(),
            }
            two.wake();
            let (state, words) = match how {
                "deadline" => (State::Failed, "create_timeout"),
                "stop" => (State::Cancelled, "is being deleted"),
                _ => (State::Failed, "No running conductor has this driver loaded"),
            };
            let reason = world.reaches(&operation, state).await.reason.unwrap();
            assert!(reason.contains(words), "{how}: {reason}");
            // It must not take the gate of the next round.
            if let Some(delete) = stopped_for {
                world.reaches(&delete, State::Succeeded).await;
            }
        }
    }

    async fn what_was_given_back_waits_for_its_driver_as_long_as_what_was_left_behind(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.driver_alive = Duration::ZERO;
        world.timing.driver_patience = Duration::from_secs(3600);
        let gate = Gate::new();
        world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Panic)));
        let operation = world.record(create()).await;
        let one = world.conductor("one");
        gate.entered().await;
        drop(one);
        let set = |what: &str| format!("UPDATE conductor_operation SET {what} WHERE uuid = '{operation}'");
        for given_back in ["0", "NULL"] {
            let lease = format!("driver = 'elsewhere', owner = NULL, lease_expires_ms = {given_back}");
            database.execute(&set(&lease)).await.unwrap();
            let two = world.conductor("two");
            sweep::pass(&two.services, &mut watch()).await.unwrap();
            assert_eq!(world.row(&operation).await.state, "running", "{given_back}");
        }
        database.execute(&set("updated_ms = updated_ms - 3600000")).await.unwrap();
        let two = world.conductor("two");
        sweep::pass(&two.services, &mut watch()).await.unwrap();
        let reason = world.reaches(&operation, State::Failed).await.reason.unwrap();
        assert!(reason.contains("No running conductor has this driver loaded"), "{reason}");
    }

    async fn an_operation_stopped_for_a_delete_says_so_after_the_delete_failed(database: TestDatabase) {
        let world = World::new(&database).await;
        let gate = Gate::new();
        world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Panic)));
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        let one = world.conductor("one");
        gate.entered().await;
        drop(one);
        let deletion = world.record(delete(&uuid)).await;
        let set = |what: &str, id: &OperationId| format!("UPDATE conductor_operation SET {what} WHERE uuid = '{id}'");
        database.execute(&set("state = 'failed'", &deletion)).await.unwrap();
        database.execute("UPDATE cluster SET status = 'DELETE_FAILED'").await.unwrap();
        database.execute(&set("lease_expires_ms = 1", &operation)).await.unwrap();
        let _two = world.conductor("two");
        let reason = world.reaches(&operation, State::Cancelled).await.reason.unwrap();
        assert!(reason.contains("The cluster is being deleted"), "{reason}");
        let status = world.cluster(&uuid).await.unwrap().status.unwrap();
        assert_eq!(status, ClusterStatus::DeleteFailed, "it is the delete's");
    }

    async fn an_operation_that_only_others_can_run_keeps_no_idle_conductor_awake(database: TestDatabase) {
        let world = World::new(&database).await;
        let operation = world.record(create()).await;
        let row = world.row(&operation).await.id;
        let due = async |drivers: &[&str]| {
            let drivers = drivers.iter().map(|name| (*name).to_owned()).collect();
            let claimable = Claimable { drivers, over: vec![row], ..Claimable::default() };
            world.read(move |conn| {
                let look = candidates::candidates(conn, &claimable, &Room::default(), Place::START, 10)?;
                Ok((look.due.len() + look.queued.len(), candidates::next_due_in_ms(conn, &claimable, look.at_ms)?))
            }).await
        };
        let set = |what: &str| format!("UPDATE conductor_operation SET {what} WHERE uuid = '{operation}'");
        let running = "state = 'running', running_key = cluster_uuid, driver = 'theirs', owner = 'dead'";
        for past in [format!("{running}, lease_expires_ms = 1"),
                     "state = 'retrying', driver = 'theirs', next_attempt_ms = 1".to_owned()] {
            database.execute(&set(&past)).await.unwrap();
            assert_eq!(due(&["ours"]).await, (0, None), "{past}");
            assert_eq!(due(&["theirs"]).await, (1, None), "{past}");
        }
        for future in [format!("{running}, lease_expires_ms = 99999999999999"),
                       "state = 'retrying', driver = 'theirs', next_attempt_ms = 99999999999999".to_owned()] {
            database.execute(&set(&future)).await.unwrap();
            assert_eq!(due(&["ours"]).await, (0, None), "{future}");
            assert!(due(&["theirs"]).await.1.is_some(), "{future}");
        }
    }

    async fn many_clusters_and_two_conductors_each_cluster_is_built_once(database: TestDatabase) {
        let world = World::new(&database).await;
        let (_one, _two) = (world.conductor("one"), world.conductor("two"));
        let mut operations = Vec::new();
        for _ in 0..30 {
            operations.push(world.record(create()).await);
        }
        for operation in &operations {
            world.reaches(operation, State::Succeeded).await;
        }
        let calls = world.driver.calls();
        assert_eq!(calls.len(), 30);
        let clusters: std::collections::HashSet<ClusterUuid> = calls.into_iter().map(|call| call.cluster).collect();
        assert_eq!(clusters.len(), 30);
    }

    async fn a_cluster_without_a_limit_runs_without_a_deadline(database: TestDatabase) {
        let world = World::new(&database).await;
        let mut asked = create();
        if let Command::ClusterCreate(create) = &mut asked.command {
            create.create_timeout = Some(0);
        }
        let operation = world.record(asked).await;
        let _conductor = world.conductor("one");
        assert_eq!(world.reaches(&operation, State::Succeeded).await.deadline_ms, None);
    }
}
