//! What a 202 promises can be read, whether a conductor runs or not.
//!
//! The test stands in for conductors: it takes the messages, and writes what accepting one comes to.

use std::time::Duration;

use magnum_config::Settings;
use magnum_rpc::Request;
use serde_json::{Value, json};

use super::world::World;

const PROD: &str = "000000c1-0000-4000-8000-000000000001";

async fn waiting(accept_wait: Duration) -> World {
    let mut settings = Settings::default();
    settings.api.accept_wait = accept_wait;
    World::patient(settings).await
}

/// A change of `prod` or of one of its groups, and what it shows while no conductor has accepted it.
struct Change {
    method: &'static str,
    path: &'static str,
    body: Value,
    cluster: &'static str,
    group: Option<(&'static str, &'static str)>,
}

fn changes() -> [Change; 6] {
    let change = |method, path, body, cluster, group| Change {
        method,
        path,
        body,
        cluster,
        group,
    };
    let updating = "UPDATE_IN_PROGRESS";
    let bound = json!([{"op": "replace", "path": "/max_node_count", "value": 7}]);
    let pool = json!({"name": "pool", "node_count": 1});
    [
        change(
            "PATCH",
            "",
            json!([{"op": "replace", "path": "/node_count", "value": 4}]),
            updating,
            None,
        ),
        change(
            "POST",
            "/actions/resize",
            json!({"node_count": 3}),
            updating,
            Some(("default-worker", updating)),
        ),
        change(
            "PATCH",
            "/nodegroups/default-worker",
            bound,
            updating,
            Some(("default-worker", updating)),
        ),
        change("POST", "/nodegroups", pool, updating, None),
        change(
            "DELETE",
            "/nodegroups/gpu",
            Value::Null,
            updating,
            Some(("gpu", "DELETE_IN_PROGRESS")),
        ),
        change("DELETE", "", Value::Null, "DELETE_IN_PROGRESS", None),
    ]
}

async fn ask(world: &World, change: &Change) -> (u16, String) {
    let body = match &change.body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let path = format!("/v1/clusters/prod{}", change.path);
    let answer = world.ask("alice", change.method, &path, body).await;
    (answer.status, answer.detail().to_owned())
}

/// The status of `prod` as each of its views has it.
async fn shown(world: &World) -> Vec<String> {
    let mut statuses = Vec::new();
    for path in ["/v1/clusters/prod", "/v1/clusters", "/v1/clusters/detail"] {
        let answer = world.ask("alice", "GET", path, "").await;
        let cluster = match answer.body["clusters"].as_array() {
            None => Some(&answer.body),
            Some(list) => list.iter().find(|cluster| cluster["uuid"] == PROD),
        };
        let status = cluster.and_then(|cluster| cluster["status"].as_str());
        statuses.push(status.unwrap_or("none").to_owned());
    }
    statuses
}

/// The status of a group of `prod` as each of its views has it.
async fn shown_group(world: &World, name: &str) -> Vec<String> {
    let mut statuses = Vec::new();
    for path in [
        format!("/v1/clusters/prod/nodegroups/{name}"),
        "/v1/clusters/prod/nodegroups".to_owned(),
    ] {
        let answer = world.ask("alice", "GET", &path, "").await;
        let group = match answer.body["nodegroups"].as_array() {
            None => Some(&answer.body),
            Some(list) => list.iter().find(|group| group["name"] == name),
        };
        statuses.push(
            group
                .and_then(|group| group["status"].as_str())
                .unwrap_or("none")
                .to_owned(),
        );
    }
    statuses
}

fn message(request: &Request) -> String {
    request.unique_id.as_ref().unwrap().to_string()
}

/// What a conductor of ours writes when it records a message.
fn recorded(message: &str, state: &str, reason: &str) -> String {
    format!(
        "insert into conductor_operation (uuid, message_id, kind, cluster_uuid, state, args, reason, created_ms, updated_ms) \
         values ('{message}', '{message}', 'cluster_update', '{PROD}', '{state}', x'', '{reason}', 1, 1);"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_no_conductor_has_accepted_shows_until_one_has() {
    for change in changes() {
        let mut world = waiting(Duration::from_millis(50)).await;
        let what = format!("{} {}", change.method, change.path);
        let (status, detail) = ask(&world, &change).await;
        assert!(status == 202 || status == 204, "{what}: {status} {detail}");
        let request = world.asked.recv().await.unwrap();
        assert_eq!(shown(&world).await, [change.cluster; 3], "{what}");
        if let Some((group, status)) = change.group {
            assert_eq!(shown_group(&world, group).await, [status; 2], "{what}");
        }

        // From here on the rows say it. This one ended at once.
        world.sql(&recorded(&message(&request), "succeeded", "")).await;
        assert_eq!(shown(&world).await, ["CREATE_COMPLETE"; 3], "{what}");
        if let Some((group, _)) = change.group {
            assert_eq!(shown_group(&world, group).await, ["CREATE_COMPLETE"; 2], "{what}");
        }
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_conductor_of_magnum_has_taken_is_shown_as_its_row_says() {
    let mut world = waiting(Duration::from_millis(50)).await;
    let change = &changes()[0];
    assert_eq!(ask(&world, change).await.0, 202);
    world.asked.recv().await.unwrap();
    assert_eq!(shown(&world).await, ["UPDATE_IN_PROGRESS"; 3]);
    world
        .sql(&format!(
            "update cluster set status = 'UPDATE_COMPLETE', updated_at = '2026-11-23 10:00:00.000000' where uuid = '{PROD}'"
        ))
        .await;
    assert_eq!(shown(&world).await, ["UPDATE_COMPLETE"; 3]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_conductor_of_magnum_is_up_a_change_shows_as_the_rows_say() {
    let mut world = waiting(Duration::from_millis(50)).await;
    // It may have begun and ended the change within the second of the last one.
    world
        .sql(
            "insert into magnum_service (host, binary, disabled, last_seen_up, forced_down, report_count) \
             values ('python', 'magnum-conductor', 0, CURRENT_TIMESTAMP, 0, 1)",
        )
        .await;
    for change in changes() {
        let (status, detail) = ask(&world, &change).await;
        assert!(status == 202 || status == 204, "{status} {detail}");
        world.asked.recv().await.unwrap();
        assert_eq!(shown(&world).await, ["CREATE_COMPLETE"; 3]);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_shows_no_longer_than_its_message_may_wait() {
    let mut world = waiting(Duration::from_millis(50)).await;
    assert_eq!(ask(&world, &changes()[0]).await.0, 202);
    world.asked.recv().await.unwrap();
    assert_eq!(shown(&world).await, ["UPDATE_IN_PROGRESS"; 3]);
    world
        .sql("update conductor_pending_change set expires_ms = 1")
        .await;
    assert_eq!(shown(&world).await, ["CREATE_COMPLETE"; 3]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_waits_until_a_conductor_has_accepted_the_change() {
    for change in changes() {
        let mut world = waiting(Duration::from_secs(60)).await;
        let mut asked = world.take_asked();
        let accept = async {
            let request = asked.recv().await.unwrap();
            let status = format!(
                "update cluster set status = '{}' where uuid = '{PROD}';",
                change.cluster
            );
            let recorded = recorded(&message(&request), "queued", "");
            world.sql(&format!("begin; {status} {recorded} commit;")).await;
        };
        let ((status, detail), ()) = tokio::join!(ask(&world, &change), accept);
        assert!(status == 202 || status == 204, "{status} {detail}");
        assert_eq!(shown(&world).await, [change.cluster; 3]);
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_a_conductor_refuses_is_a_409_with_its_reason() {
    let mut world = waiting(Duration::from_secs(60)).await;
    let mut asked = world.take_asked();
    let change = &changes()[1];
    let refuse = async {
        let request = asked.recv().await.unwrap();
        let reason = "Resizing a cluster when status is \"DELETE_IN_PROGRESS\" is not supported.";
        world.sql(&recorded(&message(&request), "refused", reason)).await;
    };
    let ((status, detail), ()) = tokio::join!(ask(&world, change), refuse);
    assert_eq!(status, 409);
    assert!(detail.contains("DELETE_IN_PROGRESS"), "{detail}");

    // Deleted by somebody else before the conductor got to it.
    for (change, expected) in [(&changes()[1], 404), (&changes()[5], 204)] {
        let mut world = waiting(Duration::from_secs(60)).await;
        let mut asked = world.take_asked();
        let gone = async {
            let request = asked.recv().await.unwrap();
            let recorded = recorded(&message(&request), "refused", "Cluster could not be found.");
            world
                .sql(&format!(
                    "begin; delete from cluster where uuid = '{PROD}'; {recorded} commit;"
                ))
                .await;
        };
        let ((status, detail), ()) = tokio::join!(ask(&world, change), gone);
        assert_eq!(status, expected, "{detail}");
        world.stop().await;
    }
    world.stop().await;
}

fn health(status: &str) -> String {
    json!([
        {"op": "replace", "path": "/health_status", "value": status},
        {"op": "replace", "path": "/health_status_reason", "value": {"api": "slow"}},
    ])
    .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_written_at_once_in_any_status_and_by_rpc_only_for_magnums_conductors() {
    let mut world = waiting(Duration::from_secs(60)).await;
    for status in ["CREATE_COMPLETE", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS"] {
        let row = format!(
            "update cluster set status = '{status}', health_status = 'HEALTHY' where uuid = '{PROD}'"
        );
        world.sql(&row).await;
        let answer = world
            .ask("alice", "PATCH", "/v1/clusters/prod", health("UNHEALTHY"))
            .await;
        assert_eq!(
            (answer.status, &answer.body),
            (202, &json!({"uuid": PROD})),
            "{status}"
        );
        let shown = world.ask("alice", "GET", "/v1/clusters/prod", "").await.body;
        assert_eq!(shown["health_status"], "UNHEALTHY");
        assert_eq!(shown["health_status_reason"], json!({"api": "slow"}));
        assert_eq!(shown["status"], status);
    }
    assert!(world.asked.try_recv().is_err(), "no conductor was asked");

    // All conductors that run are Magnum's.
    world.sql("delete from conductor_driver").await;
    world
        .sql(&format!(
            "update cluster set status = 'CREATE_COMPLETE' where uuid = '{PROD}'"
        ))
        .await;
    let answer = world
        .ask("alice", "PATCH", "/v1/clusters/prod", health("UNKNOWN"))
        .await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let request = world.asked.recv().await.unwrap();
    assert_eq!(request.method, "cluster_update");
    assert_eq!(request.args["health_status"], "UNKNOWN");
    world.stop().await;
}
