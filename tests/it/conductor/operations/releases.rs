//! Operations that another release has written: what is not known here is left alone, what is known goes on and keeps what is not,
//! and what nobody knows ends.

use std::time::Duration;

use diesel::prelude::*;
use magnum_common::ids::OperationId;
use magnum_common::model::ClusterStatus;
use magnum_conductor::operations::database_watch::DatabaseWatch;
use magnum_conductor::operations::{State, sweep, unread};
use magnum_conductor::workflows::format;
use magnum_db::schema::conductor_operation::dsl as op;
use magnum_driver_api::Driver as _;
use magnum_drivers::DriverInfo;
use magnum_tests::{TestDatabase, on_every_database, wait};
use rmpv::Value;

use super::world::{World, as_call, create, delete, resize, update};

/// Another format than any of this release.
const NEXT: i32 = format::KNOWN + 1;

async fn set(database: &TestDatabase, operation: &OperationId, what: &str) {
    let sql = format!("UPDATE conductor_operation SET {what} WHERE uuid = '{operation}'");
    database.execute(&sql).await.unwrap();
}

/// A conductor of another release, which knows the journal's `format`, says that it is there.
async fn announce(database: &TestDatabase, format: i32) {
    let sql = format!(
        "INSERT INTO conductor_driver (conductor, host, name, version, beta, cluster_types, capabilities, \
         master_size_rule, announced_ms, journal_format) \
         VALUES ('other', 'other', 'fake', '1.0.0', false, '[]', '{{}}', 'odd', 99999999999999, {format})"
    );
    database.execute(&sql).await.unwrap();
}

async fn events(world: &World, operation: &OperationId, kind: &str) -> usize {
    let events = world.events(operation).await;
    events.iter().filter(|event| event.kind == kind).count()
}

fn read(mut bytes: &[u8]) -> Value {
    rmpv::decode::read_value(&mut bytes).unwrap()
}

fn entries(value: &mut Value) -> &mut Vec<(Value, Value)> {
    match value {
        Value::Map(entries) => entries,
        other => panic!("no map: {other}"),
    }
}

fn entry<'a>(value: &'a mut Value, name: &str) -> &'a mut Value {
    let found = entries(value)
        .iter_mut()
        .find(|(key, _)| key.as_str() == Some(name));
    &mut found.unwrap().1
}

on_every_database! {
    async fn an_unknown_format_kind_or_step_is_not_claimed(database: TestDatabase) {
        let world = World::new(&database).await;
        let mut unknown = Vec::new();
        for what in [
            format!("format = {NEXT}"),
            "kind = 'cluster_paint'".to_owned(),
            "step = 'paint_cluster'".to_owned(),
            format!("format = {NEXT}, state = 'retrying'"),
            format!("format = {NEXT}, state = 'running', owner = 'gone', lease_expires_ms = 1, deadline_ms = 1"),
        ] {
            let operation = world.record(create()).await;
            set(&database, &operation, &what).await;
            unknown.push((operation, what));
        }
        let conductor = world.conductor("one");
        // It looks for work, and looks again when that has ended.
        for _ in 0..2 {
            world.complete_cluster(&conductor).await;
        }
        for (operation, what) in unknown {
            let row = world.row(&operation).await;
            assert_eq!((row.attempts, row.failures, row.lease_epoch), (0, 0, 0), "{what}");
            assert_eq!(events(&world, &operation, "claimed").await, 0, "{what}");
        }
    }

    async fn an_unreadable_operation_is_released_uncounted_and_marked_for_a_newer_release(database: TestDatabase) {
        let world = World::new(&database).await;
        let operation = world.record(create()).await;
        set(&database, &operation, "args = 'of a newer release'").await;
        let _conductor = world.conductor("one");
        for time in 1..=10 {
            wait::until("the operation to be left", Duration::from_secs(20), async || {
                let times = events(&world, &operation, "unread").await;
                (times == time).then_some(()).ok_or(times)
            }).await.unwrap();
            let row = world.row(&operation).await;
            assert_eq!((row.state.as_str(), row.attempts, row.failures), ("retrying", 0, 0));
            let reason = row.reason.unwrap();
            assert!(reason.contains("column args") && reason.contains("another release"), "{reason}");
            assert!(row.next_attempt_ms.is_some(), "not at once");
            assert_eq!(row.format, if time < 10 { format::FIRST } else { NEXT });
            set(&database, &operation, "next_attempt_ms = 1").await;
        }
        let other = world.conductor("two");
        world.complete_cluster(&other).await;
        assert_eq!(events(&world, &operation, "unread").await, 10, "and claimed no more");
    }

    async fn an_operation_that_no_conductor_knows_fails_and_its_cluster_with_it(database: TestDatabase) {
        let mut world = World::new(&database).await;
        (world.timing.driver_patience, world.timing.driver_alive) = (Duration::ZERO, Duration::ZERO);
        let (mut operations, mut clusters) = (Vec::new(), Vec::new());
        for what in [
            format!("format = {NEXT}"),
            "kind = 'cluster_paint'".to_owned(),
            format!("format = {NEXT}, state = 'retrying'"),
            format!("format = {NEXT}, state = 'observing', running_key = cluster_uuid"),
            format!("format = {NEXT}, state = 'running', running_key = cluster_uuid, owner = 'gone', lease_expires_ms = 1"),
        ] {
            let asked = as_call(create());
            clusters.push(asked.command.cluster().clone());
            let operation = world.record(asked).await;
            set(&database, &operation, &what).await;
            operations.push(operation);
        }
        let held = world.record(create()).await;
        let lease = "state = 'running', owner = 'other', lease_expires_ms = 99999999999999";
        set(&database, &held, &format!("format = {NEXT}, {lease}")).await;
        let conductor = world.conductor("one");
        announce(&database, NEXT).await;
        unread::pass(&conductor.services).await.unwrap();
        for operation in &operations {
            assert!(world.row(operation).await.ended_ms.is_none(), "another conductor knows it");
        }
        database.execute("DELETE FROM conductor_driver").await.unwrap();
        announce(&database, format::KNOWN).await;
        unread::pass(&conductor.services).await.unwrap();
        for (operation, cluster) in operations.iter().zip(&clusters) {
            let row = world.reaches(operation, State::Failed).await;
            assert_eq!(row.reason.as_deref(), Some(unread::REASON));
            assert!(row.answer.is_some() && row.context.is_none() && row.owner.is_none());
            let cluster = world.cluster(cluster).await.unwrap();
            assert_eq!(cluster.status, Some(ClusterStatus::CreateFailed));
            assert_eq!(cluster.status_reason.as_deref(), Some(unread::REASON));
        }
        assert_eq!(world.row(&held).await.state, "running", "its owner is at work");
    }

    async fn an_operation_behind_an_unknown_one_runs_after_it_ended(database: TestDatabase) {
        let mut world = World::new(&database).await;
        world.timing.driver_alive = Duration::ZERO;
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        let unknown = world.record(update(&uuid, 3)).await;
        let left = "state = 'running', running_key = cluster_uuid, owner = 'gone', lease_expires_ms = 1";
        set(&database, &unknown, &format!("format = {NEXT}, {left}")).await;
        let delete = world.record(delete(&uuid)).await;
        unread::pass(&conductor.services).await.unwrap();
        conductor.wake();
        // It was asked to stop, so nobody is waited for.
        world.reaches(&delete, State::Succeeded).await;
        world.reaches(&unknown, State::Failed).await;
        assert!(world.cluster(&uuid).await.is_none());
    }

    async fn fields_of_a_newer_release_survive_a_conductor_that_does_not_know_them(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        let group = world.groups(&uuid).await.into_iter().find(|group| !group.is_master()).unwrap();
        drop(conductor);
        let operation = world.record(resize(&uuid, &group, 5)).await;
        // As if it had waited for its turn: what it finds is written when it begins.
        let mut args = read(&world.row(&operation).await.args);
        *entry(&mut args, "started") = Value::Nil;
        let resize = entry(entry(&mut args, "work"), "cluster_resize");
        entries(resize).push(("drain".into(), Value::Map(vec![("within".into(), 60.into())])));
        entries(&mut args).push(("priority".into(), 7.into()));
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &args).unwrap();
        let row = world.row(&operation).await.id;
        world.read(move |conn| {
            diesel::update(op::conductor_operation.filter(op::id.eq(row))).set(op::args.eq(&bytes)).execute(conn)?;
            Ok(())
        }).await;
        let _conductor = world.conductor("two");
        let row = world.reaches(&operation, State::Succeeded).await;
        let args = read(&row.args);
        assert_eq!(args["priority"], 7.into(), "{args}");
        assert_eq!(args["work"]["cluster_resize"]["drain"]["within"], 60.into(), "{args}");
        assert_eq!(args["started"]["resized"]["to"], 5.into(), "it was rewritten: {args}");
    }

    async fn a_version_that_another_conductor_has_is_left_to_it_unclaimed(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        database.execute("UPDATE conductor_cluster_driver SET version = '0.9.0'").await.unwrap();
        let info = world.driver.info().clone();
        let other = DriverInfo { version: "0.9.1".parse().unwrap(), ..info };
        conductor.services.drivers.set_announced(vec![other]);
        let operation = world.record(update(&uuid, 3)).await;
        for _ in 0..2 {
            world.complete_cluster(&conductor).await;
        }
        let row = world.row(&operation).await;
        assert_eq!((row.state.as_str(), row.attempts, row.lease_epoch), ("queued", 0, 0));
    }

    async fn a_version_that_no_conductor_has_is_claimed_once_at_most_and_ends(database: TestDatabase) {
        let mut world = World::new(&database).await;
        (world.timing.driver_patience, world.timing.driver_alive) = (Duration::ZERO, Duration::ZERO);
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        drop(conductor);
        database.execute("UPDATE conductor_cluster_driver SET version = '0.9.0'").await.unwrap();
        let operation = world.record(update(&uuid, 3)).await;
        announce(&database, format::KNOWN).await;
        for name in ["two", "three"] {
            let conductor = world.conductor(name);
            world.reaches(&operation, State::Retrying).await;
            set(&database, &operation, "next_attempt_ms = 1").await;
            world.complete_cluster(&conductor).await;
        }
        let row = world.row(&operation).await;
        assert_eq!((row.attempts, row.lease_epoch), (0, 1), "the second conductor has left it alone");
        assert!(row.deadline_ms.is_some(), "its time runs");
        let conductor = world.conductor("four");
        let mut watch = DatabaseWatch::new(Duration::from_secs(60));
        sweep::pass(&conductor.services, &mut watch).await.unwrap();
        let reason = world.reaches(&operation, State::Failed).await.reason.unwrap();
        assert!(reason.contains("fake 0.9.0") && reason.contains("No running conductor"), "{reason}");
    }
}
