//! Rebuilds and reboots: answered when they are accepted, shown while they run, and what is left of a failure.

use magnum_common::ids::ClusterUuid;
use magnum_common::model::{ClusterStatus, RebootType};
use magnum_conductor::handlers::Command;
use magnum_conductor::operations::State;
use magnum_conductor::operations::journal::OperationRow;
use magnum_conductor::operations::stored_reply::StoredReply;
use magnum_conductor::workflows::kinds::{ClusterReboot, ClusterRebuild};
use magnum_driver_api::DriverError;
use magnum_tests::fake_driver::{Act, Gate};
use magnum_tests::{TestDatabase, on_every_database};
use serde_json::Value;

use super::world::{World, as_call, delete, incoming};

use ClusterStatus as S;

fn reboot(cluster: &ClusterUuid, group: Option<&str>) -> Command {
    let reboot = ClusterReboot {
        reboot_type: RebootType::Soft,
        node_group: group.map(Into::into),
        nodes: vec!["node-1".to_owned()],
    };
    Command::ClusterReboot(cluster.clone(), reboot)
}

fn rebuild(cluster: &ClusterUuid) -> Command {
    let rebuild = ClusterRebuild {
        node_group: None,
        nodes: Vec::new(),
    };
    Command::ClusterRebuild(cluster.clone(), rebuild)
}

fn held(gate: &std::sync::Arc<Gate>, act: Act) -> Act {
    Act::Gate(gate.clone(), Box::new(act))
}

fn fails(reason: &'static str) -> Act {
    Act::Fail(DriverError::Permanent(reason.into()))
}

fn is_answered_with_null(row: &OperationRow) -> bool {
    let answer = row.answer.as_deref().expect("an answer");
    StoredReply::read(answer).expect("readable") == Ok(Value::Null)
}

async fn statuses(world: &World, cluster: &ClusterUuid) -> (Option<S>, Vec<Option<S>>) {
    let groups = world.groups(cluster).await;
    let row = world.cluster(cluster).await.expect("the cluster");
    (row.status, groups.iter().map(|group| group.status).collect())
}

on_every_database! {
    async fn a_call_is_answered_when_it_is_accepted_and_keeps_its_answer_when_the_driver_fails(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        let gate = Gate::new();
        world.driver.then(held(&gate, fails("node-1 does not come back")));
        let operation = world.record(as_call(incoming(reboot(&cluster, None)))).await;
        let row = world.row(&operation).await;
        // The conductor may have claimed it already; its driver is held, so this is not the answer of its end.
        assert!(["queued", "running"].contains(&row.state.as_str()) && row.reply_pending, "{}", row.state);
        assert!(is_answered_with_null(&row));
        let (status, groups) = statuses(&world, &cluster).await;
        assert_eq!(status, Some(S::UpdateInProgress));
        assert!(groups.iter().all(|group| *group == Some(S::UpdateInProgress)), "{groups:?}");
        conductor.wake();
        gate.entered().await;
        gate.open();
        let row = world.reaches(&operation, State::Failed).await;
        assert!(is_answered_with_null(&row), "its caller has gone with the first answer");
        let (status, groups) = statuses(&world, &cluster).await;
        assert_eq!(status, Some(S::UpdateFailed));
        assert!(groups.iter().all(|group| *group == Some(S::UpdateFailed)), "{groups:?}");
        let shown = world.cluster(&cluster).await.unwrap();
        assert_eq!(shown.status_reason.as_deref(), Some("node-1 does not come back"));

        let again = world.record(as_call(incoming(rebuild(&cluster)))).await;
        conductor.wake();
        world.reaches(&again, State::Succeeded).await;
        let (status, groups) = statuses(&world, &cluster).await;
        assert_eq!(status, Some(S::UpdateComplete));
        assert!(groups.iter().all(|group| *group == Some(S::UpdateComplete)), "{groups:?}");
        let calls: Vec<_> = world.driver.calls().iter().map(|call| call.method).collect();
        assert_eq!(calls, ["create", "reboot", "rebuild"]);
        world.nothing_is_open().await;
    }

    async fn a_reboot_of_one_group_shows_in_that_group_and_waits_for_its_turn(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        let gate = Gate::new();
        world.driver.then(held(&gate, Act::Report(Box::default())));
        let groups = world.groups(&cluster).await;
        let worker = groups.iter().find(|group| !group.is_master()).expect("workers");
        let first = world.record(incoming(reboot(&cluster, Some(worker.uuid.as_str())))).await;
        conductor.wake();
        gate.entered().await;
        for group in world.groups(&cluster).await {
            let expected = if group.uuid == worker.uuid { S::UpdateInProgress } else { S::CreateComplete };
            assert_eq!(group.status, Some(expected), "{}", group.name);
        }
        let second = world.record(incoming(rebuild(&cluster))).await;
        assert_eq!(world.row(&second).await.state, "queued");
        gate.open();
        world.reaches(&first, State::Succeeded).await;
        world.reaches(&second, State::Succeeded).await;
        world.nothing_is_open().await;
    }

    async fn a_delete_goes_ahead_of_a_waiting_rebuild_and_its_caller_keeps_the_answer(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let cluster = world.complete_cluster(&conductor).await;
        let gate = Gate::new();
        world.driver.then(held(&gate, Act::Report(Box::default())));
        let running = world.record(as_call(incoming(reboot(&cluster, None)))).await;
        conductor.wake();
        gate.entered().await;
        let waiting = world.record(as_call(incoming(rebuild(&cluster)))).await;
        let deleting = world.record(delete(&cluster)).await;
        gate.open();
        world.reaches(&deleting, State::Succeeded).await;
        for cancelled in [&running, &waiting] {
            let row = world.reaches(cancelled, State::Cancelled).await;
            assert!(is_answered_with_null(&row));
        }
        world.nothing_is_open().await;
    }
}
