//! Resizes, upgrades, node groups and credentials: what the rows show meanwhile and afterwards, and who waits.

use magnum_common::error::Exception;
use magnum_common::ids::ClusterUuid;
use magnum_common::model::{ClusterStatus, NodeGroup};
use magnum_conductor::operations::journal::OperationRow;
use magnum_conductor::operations::stored_reply::StoredReply;
use magnum_conductor::operations::{State, finish};
use magnum_conductor::store;
use magnum_driver_api::{DriverError, DriverReport};
use magnum_tests::fake_driver::{Act, Gate};
use magnum_tests::{TestDatabase, on_every_database};

use super::world::{World, as_call, create_pool, delete, delete_group, resize, rotate_credential, upgrade};

use ClusterStatus as S;

async fn worker(world: &World, cluster: &ClusterUuid) -> NodeGroup {
    group(world, cluster, "default-worker")
        .await
        .expect("a worker group")
}

async fn group(world: &World, cluster: &ClusterUuid, name: &str) -> Option<NodeGroup> {
    let groups = world.groups(cluster).await;
    groups.into_iter().find(|group| group.name == name)
}

async fn status(world: &World, cluster: &ClusterUuid) -> Option<S> {
    world.cluster(cluster).await.expect("the cluster").status
}

fn held(gate: &std::sync::Arc<Gate>, act: Act) -> Act {
    Act::Gate(gate.clone(), Box::new(act))
}

fn done() -> Act {
    Act::Report(Box::default())
}

fn fails(reason: &'static str) -> Act {
    Act::Fail(DriverError::Permanent(reason.into()))
}

fn raised(row: &OperationRow) -> Exception {
    StoredReply::read(row.answer.as_deref().expect("an answer"))
        .expect("readable")
        .expect_err("an exception")
        .exception
}

async fn second_template(database: &TestDatabase) {
    database
        .execute(
            "INSERT INTO cluster_template (uuid, name, coe, cluster_distro, driver, apiserver_port) \
             VALUES ('t-2', 'newer', 'kubernetes', 'ubuntu', 'fake', 6443)",
        )
        .await
        .expect("template");
}

on_every_database! {
    async fn a_resize_is_shown_at_once_and_put_back_when_it_fails(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        let (gate, before) = (Gate::new(), worker(&world, &cluster).await);
        world.driver.then(held(&gate, fails("no room")));
        let operation = world.record(resize(&cluster, &before, 5)).await;
        conductor.wake();
        gate.entered().await;
        let during = worker(&world, &cluster).await;
        assert_eq!((during.node_count, during.status), (5, Some(S::UpdateInProgress)));
        assert_eq!(status(&world, &cluster).await, Some(S::UpdateInProgress));
        gate.open();
        world.reaches(&operation, State::Failed).await;
        let after = worker(&world, &cluster).await;
        assert_eq!((after.node_count, after.status), (before.node_count, Some(S::UpdateFailed)));
        assert_eq!(after.status_reason.as_deref(), Some("no room"));
        let row = world.cluster(&cluster).await.unwrap();
        assert_eq!((row.status, row.status_reason.as_deref()), (Some(S::UpdateFailed), Some("no room")));
        // A failed cluster may be resized again.
        let operation = world.record(resize(&cluster, &after, 4)).await;
        conductor.wake();
        world.reaches(&operation, State::Succeeded).await;
        assert_eq!(worker(&world, &cluster).await.node_count, 4);
        assert_eq!(status(&world, &cluster).await, Some(S::UpdateComplete));
        world.nothing_is_open().await;
    }

    async fn second_resize_waits_and_starts_from_the_result_of_the_first(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        let (gate, before) = (Gate::new(), worker(&world, &cluster).await);
        world.driver.then(held(&gate, fails("no room"))).then(fails("no room either"));
        let first = world.record(resize(&cluster, &before, 5)).await;
        conductor.wake();
        gate.entered().await;
        let second = world.record(resize(&cluster, &before, 9)).await;
        assert_eq!(worker(&world, &cluster).await.node_count, 5, "the rows show what is being done");
        gate.open();
        world.reaches(&first, State::Failed).await;
        world.reaches(&second, State::Failed).await;
        // Not to 5, which was never true.
        assert_eq!(worker(&world, &cluster).await.node_count, before.node_count);
        let workers: Vec<_> = world.driver.calls().iter().map(|call| call.workers).collect();
        assert_eq!(workers, [before.node_count, 5, 9]);
        world.nothing_is_open().await;
    }

    async fn a_new_group_waits_for_its_turn_and_is_there_meanwhile(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        let (first_gate, second_gate) = (Gate::new(), Gate::new());
        world.driver.then(held(&first_gate, done())).then(held(&second_gate, done()));
        let resizing = world.record(resize(&cluster, &worker(&world, &cluster).await, 3)).await;
        conductor.wake();
        first_gate.entered().await;
        let (_, asked) = create_pool(&cluster);
        let creating = world.record(asked).await;
        assert_eq!(group(&world, &cluster, "pool").await.unwrap().status, Some(S::CreateInProgress));
        first_gate.open();
        world.reaches(&resizing, State::Succeeded).await;
        second_gate.entered().await;
        // The end of the resize is not the new group's.
        assert_eq!(group(&world, &cluster, "pool").await.unwrap().status, Some(S::CreateInProgress));
        assert_eq!(status(&world, &cluster).await, Some(S::UpdateInProgress));
        second_gate.open();
        world.reaches(&creating, State::Succeeded).await;
        assert_eq!(group(&world, &cluster, "pool").await.unwrap().status, Some(S::CreateComplete));
        assert_eq!(status(&world, &cluster).await, Some(S::UpdateComplete));
        let methods: Vec<_> = world.driver.calls().iter().map(|call| call.method).collect();
        assert_eq!(methods, ["create", "resize", "create_nodegroup"]);
        // Its name is taken now.
        let (_, again) = create_pool(&cluster);
        let refused = world.record(as_call(again)).await;
        assert_eq!(raised(&world.row(&refused).await), Exception::NodeGroupAlreadyExists);
        world.nothing_is_open().await;
    }

    async fn deleted_group_has_no_row_and_failed_one_has_a_reason(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        let (pool, asked) = create_pool(&cluster);
        let creating = world.record(asked).await;
        conductor.wake();
        world.reaches(&creating, State::Succeeded).await;

        world.driver.then(fails("a node hangs"));
        let failing = world.record(delete_group(&cluster, &pool)).await;
        conductor.wake();
        world.reaches(&failing, State::Failed).await;
        let left = group(&world, &cluster, "pool").await.unwrap();
        assert_eq!((left.status, left.status_reason.as_deref()), (Some(S::DeleteFailed), Some("a node hangs")));
        let row = world.cluster(&cluster).await.unwrap();
        assert_eq!((row.status, row.status_reason.as_deref()), (Some(S::UpdateFailed), Some("a node hangs")));

        // The cloud goes on working: the row stays until it is seen to be gone.
        world.driver.then(Act::Report(Box::new(DriverReport::status(S::UpdateInProgress))));
        let deleting = world.record(as_call(delete_group(&cluster, &pool))).await;
        conductor.wake();
        world.reaches(&deleting, State::Observing).await;
        assert_eq!(group(&world, &cluster, "pool").await.unwrap().status, Some(S::DeleteInProgress));
        let seen = cluster.clone();
        world.read(move |conn| {
            store::clusters::set_status(conn, &seen, Some(S::UpdateInProgress), S::UpdateComplete, None)?;
            finish::observed(conn, &seen, S::UpdateComplete, None)
        }).await;
        world.reaches(&deleting, State::Succeeded).await;
        assert_eq!(group(&world, &cluster, "pool").await, None);

        // Once more: what is wanted is so.
        let again = world.record(as_call(delete_group(&cluster, &pool))).await;
        assert_eq!(raised(&world.row(&again).await), Exception::NodeGroupNotFound);
        world.nothing_is_open().await;
    }

    async fn an_upgrade_moves_the_cluster_to_its_new_template(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        second_template(&database).await;
        let cluster = world.complete_cluster(&conductor).await;
        let operation = world.record(as_call(upgrade(&cluster, &worker(&world, &cluster).await, "t-2"))).await;
        conductor.wake();
        let row = world.reaches(&operation, State::Succeeded).await;
        let answer = StoredReply::read(row.answer.as_deref().unwrap()).unwrap().unwrap();
        assert_eq!(answer["magnum_object.data"]["cluster_template_id"], "t-2");
        assert_eq!(answer["magnum_object.data"]["status"], "UPDATE_COMPLETE");
        assert_eq!(world.cluster(&cluster).await.unwrap().cluster_template_id.as_str(), "t-2");
        assert_eq!(world.driver.calls()[1].method, "upgrade");
        world.nothing_is_open().await;
    }

    async fn an_upgrade_that_the_driver_cannot_do_leaves_no_trace(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        second_template(&database).await;
        let cluster = world.complete_cluster(&conductor).await;
        let before = (world.cluster(&cluster).await.unwrap(), worker(&world, &cluster).await);
        world.driver.then(Act::Fail(DriverError::NotSupported("not from this version".into())));
        let operation = world.record(as_call(upgrade(&cluster, &before.1, "t-2"))).await;
        conductor.wake();
        let row = world.reaches(&operation, State::Failed).await;
        assert_eq!(raised(&row), Exception::NotSupported);
        let after = (world.cluster(&cluster).await.unwrap(), worker(&world, &cluster).await);
        assert_eq!((after.0.status, after.0.status_reason), (before.0.status, before.0.status_reason.clone()));
        assert_eq!((after.1.status, after.1.status_reason), (before.1.status, before.1.status_reason.clone()));
        assert_eq!(after.0.cluster_template_id, before.0.cluster_template_id);
        let nowhere = world.record(as_call(upgrade(&cluster, &before.1, "t-3"))).await;
        assert_eq!(raised(&world.row(&nowhere).await), Exception::ClusterTemplateNotFound);
        world.nothing_is_open().await;
    }

    async fn a_new_credential_leaves_the_status_alone_and_others_wait_for_it(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        let gate = Gate::new();
        world.driver.then(held(&gate, done()));
        let rotating = world.record(as_call(rotate_credential(&cluster))).await;
        conductor.wake();
        gate.entered().await;
        assert_eq!(status(&world, &cluster).await, Some(S::CreateComplete));
        let resizing = world.record(resize(&cluster, &worker(&world, &cluster).await, 3)).await;
        assert_eq!(status(&world, &cluster).await, Some(S::CreateComplete), "it has not started");
        gate.open();
        let row = world.reaches(&rotating, State::Succeeded).await;
        assert_eq!(StoredReply::read(row.answer.as_deref().unwrap()).unwrap(), Ok(serde_json::Value::Null));
        world.reaches(&resizing, State::Succeeded).await;

        world.driver.then(fails("the user is gone"));
        let failing = world.record(as_call(rotate_credential(&cluster))).await;
        conductor.wake();
        assert_eq!(raised(&world.reaches(&failing, State::Failed).await), Exception::MagnumException);
        assert_eq!(status(&world, &cluster).await, Some(S::UpdateComplete));
        world.nothing_is_open().await;
    }

    async fn a_drivers_reason_about_a_new_credential_is_written_and_the_status_stays(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        let mut report = DriverReport::status(S::UpdateComplete);
        report.cluster.status_reason = Some("the old one could not be deleted".into());
        world.driver.then(Act::Report(Box::new(report)));
        let rotating = world.record(rotate_credential(&cluster)).await;
        conductor.wake();
        world.reaches(&rotating, State::Succeeded).await;
        let row = world.cluster(&cluster).await.expect("the cluster");
        assert_eq!(row.status, Some(S::CreateComplete));
        assert_eq!(row.status_reason.as_deref(), Some("the old one could not be deleted"));
        world.nothing_is_open().await;
    }

    async fn a_credential_that_takes_time_is_in_progress_until_it_is_seen(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        world.driver.then(Act::Report(Box::new(DriverReport::status(S::UpdateInProgress))));
        let rotating = world.record(rotate_credential(&cluster)).await;
        conductor.wake();
        world.reaches(&rotating, State::Observing).await;
        assert_eq!(status(&world, &cluster).await, Some(S::UpdateInProgress), "the status sync looks at it");
        let seen = cluster.clone();
        world.read(move |conn| {
            store::clusters::set_status(conn, &seen, Some(S::UpdateInProgress), S::UpdateComplete, None)?;
            finish::observed(conn, &seen, S::UpdateComplete, None)
        }).await;
        world.reaches(&rotating, State::Succeeded).await;
        world.nothing_is_open().await;
    }

    async fn delete_cancels_waiting_operations_and_removes_groups_never_begun(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        let gate = Gate::new();
        world.driver.then(held(&gate, done()));
        let resizing = world.record(resize(&cluster, &worker(&world, &cluster).await, 3)).await;
        conductor.wake();
        gate.entered().await;
        let (_, asked) = create_pool(&cluster);
        let creating = world.record(asked).await;
        let deleting = world.record(delete(&cluster)).await;
        world.reaches(&creating, State::Cancelled).await;
        gate.open();
        world.reaches(&resizing, State::Cancelled).await;
        world.reaches(&deleting, State::Succeeded).await;
        assert!(world.groups(&cluster).await.is_empty());
        world.nothing_is_open().await;
    }
}
