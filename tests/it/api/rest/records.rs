//! Quotas, statistics and federations: what is written and read without a conductor.

use serde_json::{Value, json};

use super::world::World;

fn project(letter: &str) -> String {
    letter.repeat(32)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_lives_and_dies_and_the_default_holds_before_and_after() {
    let world = World::start("base").await;
    let path = format!("/v1/quotas/{}/Cluster", project("d"));
    let default = json!({"hard_limit": 20, "project_id": project("d"), "resource": "Cluster"});
    assert_eq!(world.ask("root", "GET", &path, "").await.body, default);
    let unnamed = world
        .ask("root", "GET", path.trim_end_matches("/Cluster"), "")
        .await;
    assert_eq!(
        (unnamed.status, unnamed.detail()),
        (400, "Missing argument: \"resource\"")
    );
    let body = json!({"project_id": project("d"), "hard_limit": 3}).to_string();
    let made = world.ask("root", "POST", "/v1/quotas", body).await;
    assert_eq!((made.status, &made.body["hard_limit"]), (201, &json!(3)));
    let changed = world
        .ask("root", "PATCH", &path, json!({"hard_limit": 4}).to_string())
        .await;
    assert_eq!((changed.status, &changed.body["hard_limit"]), (202, &json!(4)));
    assert_ne!(changed.body["updated_at"], Value::Null);
    assert_eq!(world.ask("root", "DELETE", &path, "").await.status, 204);
    let again = world.ask("root", "DELETE", &path, "").await;
    assert_eq!(again.status, 404);
    assert_eq!(
        again.detail(),
        format!(
            "Quota could not be found: project_id {} resource Cluster.",
            project("d")
        )
    );
    assert_eq!(world.ask("root", "GET", &path, "").await.body, default);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_is_seen_by_its_project_and_set_by_administrators_only() {
    let world = World::start("base").await;
    let own = format!("/v1/quotas/{}/Cluster", project("a"));
    let other = format!("/v1/quotas/{}/Cluster", project("b"));
    assert_eq!(world.ask("alice", "GET", &own, "").await.body["hard_limit"], 10);
    assert_eq!(world.ask("alice", "GET", &other, "").await.status, 403);
    let body = json!({"project_id": project("a"), "hard_limit": 99}).to_string();
    for (method, path, body) in [
        ("POST", "/v1/quotas", body.as_str()),
        ("PATCH", own.as_str(), body.as_str()),
        ("DELETE", own.as_str(), ""),
    ] {
        let answer = world.ask("alice", method, path, body.to_owned()).await;
        assert_eq!(answer.status, 403, "{method}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_that_is_set_holds_at_once() {
    let world = World::start("base").await;
    let path = format!("/v1/quotas/{}/Cluster", project("a"));
    world
        .ask("root", "PATCH", &path, json!({"hard_limit": 2}).to_string())
        .await;
    let body = json!({"name": "c", "cluster_template_id": "k8s-1.31"}).to_string();
    let refused = world.ask("alice", "POST", "/v1/clusters", body).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(
        refused.detail().contains("maximum clusters per project, 2"),
        "{}",
        refused.detail()
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_keeps_the_filters() {
    let world = World::start("base").await;
    let follow = async |key: &str, first: &str| {
        let (mut path, mut seen) = (first.to_owned(), Vec::new());
        loop {
            let answer = world.ask("root", "GET", &path, "").await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            seen.extend(
                answer.body[key]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|item| item["id"].to_string() + item["name"].as_str().unwrap_or("")),
            );
            match answer.body.get("next").and_then(Value::as_str) {
                Some(next) => path = next[world.base().len()..].to_owned(),
                None => return seen.len(),
            }
        }
    };
    assert_eq!(follow("quotas", "/v1/quotas?all_tenants=True&limit=1").await, 2);
    world
        .sql("update nodegroup set role = 'gpu' where name = 'default-worker'")
        .await;
    assert_eq!(
        follow(
            "nodegroups",
            "/v1/clusters/000000c1-0000-4000-8000-000000000001/nodegroups?role=gpu&limit=1"
        )
        .await,
        2
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creating_a_federation_is_refused_with_the_reason() {
    let mut world = World::start("base").await;
    let ask = async |user: &str, body: Value| {
        let answer = world.ask(user, "POST", "/v1/federations", body.to_string()).await;
        (answer.status, answer.detail().to_owned())
    };
    let whole = json!({"hostcluster_id": "prod", "properties": {"dns-zone": "example.com."}});
    let (status, told) = ask("alice", whole.clone()).await;
    assert_eq!(
        (status, told.contains("cannot be created")),
        (501, true),
        "{told}"
    );
    assert_eq!(ask("rita", whole.clone()).await.0, 403);
    assert_eq!(
        ask(
            "bob",
            json!({"hostcluster_id": "000000c1-0000-4000-8000-000000000001"})
        )
        .await
        .0,
        404
    );
    assert_eq!(
        ask("alice", json!({"hostcluster_id": "prod", "properties": {}}))
            .await
            .0,
        400
    );
    assert_eq!(ask("alice", json!({})).await.0, 400);
    assert!(world.asked.try_recv().is_err(), "nothing was asked");

    let path = "/v1/federations/fed?rollback=True";
    let patch =
        json!([{"op": "add", "path": "/member_ids", "value": "000000c1-0000-4000-8000-000000000002"}]);
    assert_eq!(
        world.ask("alice", "PATCH", path, patch.to_string()).await.status,
        202
    );
    let request = world.asked.recv().await.unwrap();
    assert_eq!(
        (request.method.as_str(), &request.args["rollback"]),
        ("federation_update", &json!(true))
    );
    let federation = &request.args["federation"];
    assert_eq!(federation["magnum_object.changes"], json!(["member_ids"]));
    assert_eq!(
        federation["magnum_object.data"]["member_ids"],
        json!(["000000c1-0000-4000-8000-000000000002"])
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_counts_until_its_time_is_over_and_once_with_its_row() {
    let world = World::start("base").await;
    let own = project("a");
    let quota = format!("/v1/quotas/{own}/Cluster");
    // Of the two clusters one is still reserved. One more is promised; for another the time is over.
    let far = "cast(strftime('%s', 'now') as integer) * 1000 + 3600000";
    world
        .sql(&format!(
            "update quotas set hard_limit = 4 where project_id = '{own}'; \
             insert into conductor_cluster_reservation (cluster_uuid, project_id, expires_ms) values \
             ('000000c1-0000-4000-8000-000000000001', '{own}', {far}), ('promised', '{own}', {far}), \
             ('over', '{own}', 1)"
        ))
        .await;
    assert_eq!(world.ask("alice", "GET", &quota, "").await.body["hard_limit"], 4);
    let make = async |flavor: &str| {
        let body = json!({
            "cluster_template_id": "000000c7-0000-4000-8000-000000000001", "keypair": "default-key",
            "flavor_id": flavor,
        });
        let answer = world.ask("alice", "POST", "/v1/clusters", body.to_string()).await;
        (answer.status, answer.detail().to_owned())
    };
    assert_eq!(make("m1.small").await, (202, String::new()));
    let (status, told) = make("m1.small").await;
    assert!(
        status == 403 && told.contains("maximum clusters per project, 4."),
        "{told}"
    );
    // What is wrong with the request is told as long as the rows leave room, and no longer.
    let (status, told) = make("none").await;
    assert!(status == 400 && told.contains("flavor none"), "{told}");
    world.sql("update quotas set hard_limit = 2").await;
    let (status, told) = make("none").await;
    assert!(
        status == 403 && told.contains("maximum clusters per project, 2."),
        "{told}"
    );
    world.stop().await;
}
