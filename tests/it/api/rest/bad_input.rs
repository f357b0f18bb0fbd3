//! Whatever arrives, the answer is a fault in Magnum's shape: clear, with the request's id, and nothing is
//! asked of a conductor.

use serde_json::json;

use super::world::{Answer, World};

const LATEST: (&str, &str) = ("openstack-api-version", "container-infra latest");

fn is_fault(answer: &Answer, status: u16, text: &str) {
    assert_eq!(answer.status, status, "{}", answer.body);
    let error = &answer.body["errors"][0];
    assert_eq!(error["status"], status);
    assert_eq!(error["request_id"], answer.headers["x-openstack-request-id"]);
    for key in ["title", "detail"] {
        assert_ne!(
            error[key].as_str().unwrap_or_default(),
            "",
            "{key}: {}",
            answer.body
        );
    }
    assert!(
        answer.detail().contains(text),
        "{:?} does not say {text:?}",
        answer.detail()
    );
    assert_eq!(answer.headers["content-type"], "application/json");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_cannot_be_read_are_400_413_or_415() {
    let mut world = World::start("base").await;
    for path in [
        "/v1/clusters",
        "/v1/clustertemplates",
        "/v1/clusters/000000c1-0000-4000-8000-000000000001/nodegroups",
        "/v1/clusters/000000c1-0000-4000-8000-000000000001/actions/resize",
        "/v1/clusters/000000c1-0000-4000-8000-000000000001/actions/upgrade",
        "/v1/certificates",
        "/v1/quotas",
        "/v1/federations",
    ] {
        for body in [
            b"{\"name\": ".to_vec(),
            b"{\"name\": \"\xff\xfe\"}".to_vec(),
            b"\0".to_vec(),
        ] {
            is_fault(
                &world.ask("alice", "POST", path, body).await,
                400,
                "not in valid JSON format",
            );
        }
        is_fault(
            &world.ask("alice", "POST", path, "").await,
            400,
            "Missing argument",
        );
        is_fault(
            &world.ask("alice", "POST", path, "[]").await,
            400,
            "not a valid object",
        );
        is_fault(
            &world.ask("alice", "POST", path, "null").await,
            400,
            "not a valid object",
        );
        let deep = "[".repeat(100_000);
        is_fault(
            &world.ask("alice", "POST", path, deep).await,
            400,
            "nested too deeply",
        );
        let huge = format!("{{\"name\": \"{}\"}}", "x".repeat(10 * 1024 * 1024));
        is_fault(
            &world.ask("alice", "POST", path, huge).await,
            413,
            "max_request_body_size",
        );
        let text = [LATEST, ("content-type", "text/plain")];
        let answer = world.ask_with("alice", "POST", path, "hello", &text).await;
        is_fault(&answer, 415, "Unknown mimetype: text/plain");
    }
    assert!(world.asked.try_recv().is_err());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patches_that_are_none_are_400_before_the_resource_is_looked_up() {
    let world = World::start("base").await;
    for path in ["/v1/clusters/nope", "/v1/clustertemplates/nope"] {
        for (body, text) in [
            (json!({"op": "replace"}), "Value not a valid list"),
            (json!([1]), "should be an object"),
            (
                json!([{"op": "test", "path": "/name", "value": "x"}]),
                "add, replace, remove",
            ),
            (
                json!([{"op": "replace", "path": "/uuid", "value": "x"}]),
                "internal attribute",
            ),
        ] {
            is_fault(
                &world.ask("alice", "PATCH", path, body.to_string()).await,
                400,
                text,
            );
        }
        let body = json!([{"op": "replace", "path": "/name", "value": "x"}]).to_string();
        is_fault(
            &world.ask("alice", "PATCH", path, body).await,
            404,
            "nope could not be found",
        );
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_methods_and_paths_are_refused_without_a_version() {
    let world = World::start("base").await;
    for (method, path, status) in [
        ("PUT", "/v1/clusters", 405),
        ("DELETE", "/v1/clusters", 405),
        ("POST", "/v1/mservices", 405),
        ("GET", "/v1/bays", 404),
        ("GET", "/v1/clusters/x/y/z", 404),
    ] {
        let answer = world.ask("alice", method, path, "").await;
        is_fault(&answer, status, "");
        assert!(
            !answer.headers.contains_key("openstack-api-version"),
            "{method} {path}"
        );
        assert_eq!(answer.headers.contains_key("allow"), status == 405);
    }
    let head = world.ask("alice", "HEAD", "/v1/clusters", "").await;
    assert_eq!(head.status, 405);
    let broken = world.ask("alice", "GET", "/v1/clusters/%ff", "").await;
    is_fault(&broken, 400, "UTF-8");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_with_encoded_letters_is_the_same_path() {
    let world = World::start("base").await;
    for (plain, encoded) in [
        ("/v1/clusters", "/%76%31/%63lusters"),
        ("/v1/clusters/prod", "/clusters/p%72od"),
    ] {
        let [plain, encoded] = [
            world.ask("alice", "GET", plain, "").await,
            world.ask("alice", "GET", encoded, "").await,
        ];
        assert_eq!(plain.status, 200, "{}", plain.body);
        assert_eq!((plain.status, plain.body), (encoded.status, encoded.body));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_is_not_served_is_told_to_who_takes_no_json_either() {
    let world = World::start("base").await;
    let headers = [
        ("openstack-api-version", "container-infra 1.99"),
        ("accept", "text/html"),
    ];
    let answer = world.ask_with("alice", "GET", "/v1/clusters", "", &headers).await;
    assert_eq!(answer.status, 406);
    assert_eq!(answer.body["errors"][0]["max_version"], "1.16", "{}", answer.body);
    for header in ["openstack-api-minimum-version", "openstack-api-maximum-version"] {
        assert!(
            answer.headers.contains_key(header),
            "{header}: {:?}",
            answer.headers
        );
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_id_of_another_service_travels_on_and_ours_is_answered() {
    let mut world = World::start("base").await;
    let theirs = "req-3f6f5a51-0d1b-4f0e-9a3c-7d2f1b0a9c8e";
    let answer = world
        .ask_with(
            "alice",
            "DELETE",
            "/v1/clusters/prod",
            "",
            &[LATEST, ("x-openstack-request-id", theirs)],
        )
        .await;
    assert_eq!(answer.status, 204);
    let ours = &answer.headers["x-openstack-request-id"];
    assert_ne!(ours, theirs);
    let request = world.asked.recv().await.unwrap();
    assert_eq!(*request.context.get("global_request_id").unwrap(), theirs);
    assert_eq!(request.context.request_id(), Some(ours.as_str()));
    world.stop().await;
}
