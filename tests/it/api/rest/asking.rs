//! What the API asks of conductors, and what its answer promises.

use std::time::{Duration, Instant};

use magnum_config::Settings;
use serde_json::{Value, json};

use super::world::World;

const TEMPLATE: &str = "000000c7-0000-4000-8000-000000000001";
const PROD: &str = "000000c1-0000-4000-8000-000000000001";

async fn world() -> World {
    World::start("base").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_is_cast_with_the_fields_that_magnum_sends() {
    let mut world = world().await;
    let body = json!({"name": "c", "cluster_template_id": "k8s-1.31", "node_count": 2, "labels": {"a": 1}});
    let answer = world.ask("alice", "POST", "/v1/clusters", body.to_string()).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let request = world.asked.recv().await.unwrap();
    assert_eq!(request.method, "cluster_create");
    assert_eq!(request.reply, None, "it is a cast");
    let keys: Vec<&String> = request.args.keys().collect();
    assert_eq!(keys, ["cluster", "master_count", "node_count", "create_timeout"]);
    assert_eq!(
        (&request.args["node_count"], &request.args["create_timeout"]),
        (&json!(2), &json!(60))
    );
    let data = &request.args["cluster"]["magnum_object.data"];
    let expected = json!({
        "uuid": answer.body["uuid"], "name": "c", "project_id": "a".repeat(32), "user_id": "1".repeat(32),
        "cluster_template_id": TEMPLATE, "keypair": "default-key", "docker_volume_size": null,
        "labels": {"a": "1"}, "master_flavor_id": "m1.medium", "flavor_id": "m1.small", "create_timeout": 60,
        "discovery_url": null, "coe_version": null, "container_version": null, "fixed_network": null,
        "fixed_subnet": null, "floating_ip_enabled": true, "master_lb_enabled": true,
    });
    assert_eq!(data, &expected);
    let changes = request.args["cluster"]["magnum_object.changes"]
        .as_array()
        .unwrap();
    assert_eq!(changes.len(), expected.as_object().unwrap().len());
    let request_id = &answer.headers["x-openstack-request-id"];
    assert_eq!(request.context.request_id(), Some(request_id.as_str()));
    assert_eq!(*request.context.get("auth_token").unwrap(), "tok-alice");
    assert!(!request.context.all_tenants());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_sends_the_row_and_the_wanted_values() {
    let mut world = world().await;
    let patch = json!([{"op": "replace", "path": "/node_count", "value": 4}]);
    let path = "/v1/clusters/prod?rollback=True";
    let answer = world.ask("alice", "PATCH", path, patch.to_string()).await;
    assert_eq!((answer.status, answer.body), (202, json!({"uuid": PROD})));
    let request = world.asked.recv().await.unwrap();
    assert_eq!(request.method, "cluster_update");
    assert_eq!(request.args["node_count"], 4);
    assert_eq!(request.args["health_status"], "HEALTHY");
    assert_eq!(request.args["rollback"], true);
    assert_eq!(
        request.args["cluster"]["magnum_object.data"]["stack_id"],
        "prod-3f2a"
    );
    assert_eq!(request.args["cluster"].get("magnum_object.changes"), None);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admin_delete_in_any_project_carries_the_all_tenants_context() {
    let mut world = world().await;
    let answer = world
        .ask("root", "DELETE", &format!("/v1/clusters/{PROD}"), "")
        .await;
    assert_eq!((answer.status, &answer.body), (204, &Value::Null));
    assert!(!answer.headers.contains_key("content-type"));
    let request = world.asked.recv().await.unwrap();
    assert_eq!(Value::Object(request.args), json!({"uuid": PROD}));
    assert!(request.context.is_admin() && request.context.all_tenants());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_any_queue_the_answer_is_a_503_and_no_promise() {
    let world = World::without_conductor(Settings::default()).await;
    let body = json!({"cluster_template_id": TEMPLATE}).to_string();
    let answer = world.ask("alice", "POST", "/v1/clusters", body).await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(
        answer.detail().contains("no conductor has a queue"),
        "{}",
        answer.detail()
    );
    assert_eq!(answer.body["errors"][0]["code"], "server");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_cluster_is_readable_when_its_202_arrives() {
    let mut settings = Settings::default();
    settings.api.accept_wait = Duration::from_secs(30);
    let mut world = World::patient(settings).await;
    let mut asked = world.take_asked();
    let body = json!({"name": "c", "cluster_template_id": TEMPLATE}).to_string();
    // What a conductor's acceptance comes to, as far as the API can see: the row.
    let accept = async {
        let request = asked.recv().await.unwrap();
        let uuid = request.args["cluster"]["magnum_object.data"]["uuid"]
            .as_str()
            .unwrap()
            .to_owned();
        world
            .sql(&format!(
                "insert into cluster (uuid, name, project_id, cluster_template_id, labels, health_status_reason) \
                 values ('{uuid}', 'c', '{}', '{TEMPLATE}', '{{}}', '{{}}')",
                "a".repeat(32)
            ))
            .await;
        uuid
    };
    let (answer, uuid) = tokio::join!(world.ask("alice", "POST", "/v1/clusters", body), accept);
    assert_eq!((answer.status, answer.body), (202, json!({"uuid": uuid})));
    let shown = world
        .ask("alice", "GET", &format!("/v1/clusters/{uuid}"), "")
        .await;
    assert_eq!((shown.status, &shown.body["node_count"]), (200, &json!(0)));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_no_conductor_accepts_in_time_the_202_is_sent_all_the_same() {
    let mut settings = Settings::default();
    settings.api.accept_wait = Duration::from_millis(100);
    let world = World::patient(settings).await;
    let started = Instant::now();
    let body = json!({"cluster_template_id": TEMPLATE}).to_string();
    let answer = world.ask("alice", "POST", "/v1/clusters", body).await;
    assert_eq!(answer.status, 202);
    assert!(started.elapsed() >= Duration::from_millis(100));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_the_status_does_not_allow_is_a_409_at_once() {
    let mut world = world().await;
    let patch = json!([{"op": "replace", "path": "/node_count", "value": 1}]).to_string();
    for (user, cluster, status) in [
        ("alice", "staging", "CREATE_IN_PROGRESS"),
        ("bob", "broken", "CREATE_FAILED"),
        ("bob", "prod", "DELETE_IN_PROGRESS"),
    ] {
        let answer = world
            .ask(user, "PATCH", &format!("/v1/clusters/{cluster}"), patch.clone())
            .await;
        assert_eq!(answer.status, 409, "{cluster}");
        assert_eq!(
            answer.detail(),
            format!("Updating a cluster when status is \"{status}\" is not supported.")
        );
    }
    assert!(world.asked.try_recv().is_err(), "nothing was asked");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_driver_of_a_template_has_a_version_of_its_own() {
    let world = world().await;
    let body = |driver: Value| {
        json!({"name": "t", "image_id": "ubuntu-plain", "coe": "kubernetes", "driver": driver}).to_string()
    };
    let old = [("openstack-api-version", "container-infra 1.14")];
    let new = [("openstack-api-version", "container-infra 1.15")];
    let path = "/v1/clustertemplates";
    let answer = world
        .ask_with("alice", "POST", path, body(json!("fake_zeta")), &old)
        .await;
    assert_eq!(answer.status, 400);
    assert!(answer.detail().contains("needs microversion 1.15"));
    let answer = world
        .ask_with("alice", "POST", path, body(Value::Null), &old)
        .await;
    assert_eq!((answer.status, answer.body.get("driver")), (201, None));
    let uuid = answer.body["uuid"].as_str().unwrap();
    let show = format!("{path}/{uuid}");
    assert_eq!(
        world.ask_with("alice", "GET", &show, "", &new).await.body["driver"],
        "fake_alpha"
    );
    let answer = world
        .ask_with("alice", "POST", path, body(json!("fake_zeta")), &new)
        .await;
    assert_eq!(
        (answer.status, &answer.body["driver"]),
        (201, &json!("fake_zeta"))
    );
    let patch = json!([{"op": "replace", "path": "/driver", "value": "fake_zeta"}]).to_string();
    assert_eq!(
        world
            .ask_with("alice", "PATCH", &show, patch.clone(), &old)
            .await
            .status,
        400
    );
    let answer = world.ask_with("alice", "PATCH", &show, patch, &new).await;
    assert_eq!(
        (answer.status, &answer.body["driver"]),
        (200, &json!("fake_zeta"))
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_asks_the_database_and_the_broker() {
    let world = world().await;
    let get = async |path: &str| {
        let response = reqwest::get(format!("{}{path}", world.admin())).await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    assert_eq!(get("/healthcheck").await, (200, "OK".to_owned()));
    let (status, body) = get("/readiness").await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, body), (200, json!({"database": true, "broker": true})));
    assert_eq!(get("/clusters").await.0, 404, "the API itself is elsewhere");
    world.close_transport().await;
    assert_eq!(get("/readiness").await.0, 503);
    assert_eq!(
        get("/healthcheck").await.0,
        200,
        "an outage of the broker is not the process's"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_without_flavors_can_be_changed_and_used() {
    let world = world().await;
    let body = json!({"name": "bare", "image_id": "ubuntu-plain", "coe": "kubernetes"}).to_string();
    let made = world.ask("alice", "POST", "/v1/clustertemplates", body).await;
    assert_eq!((made.status, &made.body["flavor_id"]), (201, &Value::Null));
    let patch = json!([{"op": "replace", "path": "/name", "value": "renamed"}]).to_string();
    let changed = world
        .ask("alice", "PATCH", "/v1/clustertemplates/bare", patch)
        .await;
    assert_eq!((changed.status, &changed.body["name"]), (200, &json!("renamed")));
    let body = json!({"cluster_template_id": "renamed"}).to_string();
    assert_eq!(world.ask("alice", "POST", "/v1/clusters", body).await.status, 202);
    world.stop().await;
}
