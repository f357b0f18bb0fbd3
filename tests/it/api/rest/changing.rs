//! What the API asks of conductors about node groups, sizes, templates, certificates and credentials, and what it
//! answers when nobody answers it.

use std::time::Duration;

use magnum_config::Settings;
use magnum_rpc::Request;
use serde_json::{Value, json};

use super::world::{Answer, World};

const PROD: &str = "000000c1-0000-4000-8000-000000000001";
const OTHER_TEMPLATE: &str = "000000c7-0000-4000-8000-000000000002";

fn path(rest: &str) -> String {
    format!("/v1/clusters/{PROD}/{rest}")
}

/// The recorded request of this name: its arguments.
fn recorded(name: &str) -> Value {
    let file = format!("{}/fixtures/rpc/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let frame: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    frame["inner"]["args"].clone()
}

/// Whether two requests have the same arguments, and objects of the same classes and versions among them.
fn has_the_shape_of(request: &Request, name: &str) {
    let shape = |args: &Value| -> Vec<(String, Value)> {
        let args = args.as_object().unwrap().iter();
        args.map(|(key, value)| {
            let class = [
                "magnum_object.name",
                "magnum_object.namespace",
                "magnum_object.version",
            ];
            let class = class.map(|key| value.get(key).cloned().unwrap_or_default());
            (key.clone(), json!(class))
        })
        .collect()
    };
    let recorded = recorded(name);
    assert_eq!(
        shape(&Value::Object(request.args.clone())),
        shape(&recorded),
        "{name}"
    );
    // A row travels with all of its fields, in their order.
    let fields = |args: &Value| -> Vec<String> {
        let data = args["cluster"]["magnum_object.data"].as_object().unwrap();
        data.keys().cloned().collect()
    };
    assert_eq!(
        fields(&Value::Object(request.args.clone())),
        fields(&recorded),
        "{name}"
    );
}

async fn asked(world: &mut World, method: &str, path: &str, body: Value) -> (Answer, Request) {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let answer = world.ask("alice", method, path, body).await;
    assert!(answer.status < 300, "{path}: {} {}", answer.status, answer.body);
    (answer, world.asked.recv().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_groups_are_asked_for_as_magnum_asks() {
    let mut world = World::start("base").await;
    let body = json!({"name": "extra", "node_count": 2, "node_labels": {"a": "b"}, "is_default": true});
    let (answer, request) = asked(&mut world, "POST", &path("nodegroups"), body).await;
    assert_eq!(
        (request.method.as_str(), request.reply.is_some()),
        ("nodegroup_create", false)
    );
    has_the_shape_of(&request, "request-nodegroup_create-cast");
    let group = &request.args["nodegroup"];
    let data = group["magnum_object.data"].as_object().unwrap();
    assert_eq!(data["uuid"], answer.body["uuid"]);
    assert_eq!(
        (&data["node_labels"], data.get("is_default")),
        (&json!({"a": "b"}), None)
    );
    assert_eq!(
        group["magnum_object.changes"].as_array().unwrap().len(),
        data.len()
    );

    let patch = json!([{"op": "replace", "path": "/max_node_count", "value": 6}]);
    let (_, request) = asked(&mut world, "PATCH", &path("nodegroups/gpu"), patch).await;
    assert_eq!(
        (request.method.as_str(), request.reply.is_some()),
        ("nodegroup_update", false)
    );
    has_the_shape_of(&request, "request-nodegroup_update-cast");
    let group = &request.args["nodegroup"];
    assert_eq!(group["magnum_object.changes"], json!(["max_node_count"]));
    assert_eq!(group["magnum_object.data"]["max_node_count"], 6);

    let (_, request) = asked(&mut world, "DELETE", &path("nodegroups/gpu"), Value::Null).await;
    assert_eq!(
        (request.method.as_str(), request.reply.is_some()),
        ("nodegroup_delete", false)
    );
    has_the_shape_of(&request, "request-nodegroup_delete-cast");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resize_is_cast_with_the_group_it_is_about() {
    let mut world = World::start("base").await;
    let body = json!({"node_count": 4, "nodes_to_remove": null});
    let (_, request) = asked(&mut world, "POST", &path("actions/resize"), body).await;
    assert_eq!(
        (request.method.as_str(), request.reply.is_some()),
        ("cluster_resize", false)
    );
    has_the_shape_of(&request, "request-cluster_resize-cast");
    assert_eq!(
        (&request.args["node_count"], &request.args["nodes_to_remove"]),
        (&json!(4), &json!([]))
    );
    assert_eq!(
        request.args["nodegroup"]["magnum_object.data"]["name"],
        "default-worker"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificate_requests_are_calls_and_a_missing_reply_is_a_503() {
    let mut settings = Settings::default();
    settings.default.rpc_response_timeout = Duration::from_secs(1);
    let mut world = World::patient(settings).await;
    let csr = "-----BEGIN CERTIFICATE REQUEST-----\nEXAMPLE\n-----END CERTIFICATE REQUEST-----\n";
    let certificate = format!("/v1/certificates/{PROD}");
    for (method, path, body, name) in [
        (
            "POST",
            path("actions/upgrade"),
            json!({"cluster_template": OTHER_TEMPLATE}),
            "request-cluster_upgrade-call",
        ),
        (
            "GET",
            format!("{certificate}?ca_cert_type=etcd"),
            Value::Null,
            "request-get_ca_certificate",
        ),
        (
            "POST",
            "/v1/certificates".to_owned(),
            json!({"cluster_uuid": "prod", "csr": csr, "ca_cert_type": "kubernetes"}),
            "request-sign_certificate",
        ),
        (
            "PATCH",
            certificate.clone(),
            Value::Null,
            "request-rotate_ca_certificate",
        ),
        (
            "PATCH",
            format!("/v1/credentials/{PROD}"),
            Value::Null,
            "request-credential_rotate-call",
        ),
    ] {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let answer = world.ask("alice", method, &path, body).await;
        assert_eq!(answer.status, 503, "{path}: {}", answer.body);
        assert!(
            answer
                .detail()
                .contains("within 1 seconds; the request may still"),
            "{}",
            answer.detail()
        );
        let request = world.asked.recv().await.unwrap();
        assert!(request.reply.is_some(), "{name}: a call");
        has_the_shape_of(&request, name);
        if name.contains("sign") {
            let wanted = recorded(name)["certificate"]["magnum_object.data"].clone();
            let sent = &request.args["certificate"];
            let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(&sent["magnum_object.data"]), keys(&wanted));
            assert_eq!(sent["magnum_object.changes"].as_array().unwrap().len(), 5);
        }
        if name.contains("upgrade") {
            assert_eq!(request.args["max_batch_size"], 1);
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_rebuilt_and_rebooted_from_version_1_16_on_and_wrong_fields_are_named() {
    let mut settings = Settings::default();
    settings.default.rpc_response_timeout = Duration::from_secs(1);
    let mut world = World::patient(settings).await;
    let older = [("openstack-api-version", "container-infra 1.15")];
    for action in ["rebuild", "reboot"] {
        let path = path(&format!("actions/{action}"));
        let answer = world.ask_with("alice", "POST", &path, "{}", &older).await;
        assert_eq!(answer.status, 406, "{}", answer.body);
    }
    for (body, field) in [
        (json!({}), "type"),
        (json!({"type": "gentle"}), "type"),
        (json!({"type": "soft", "nodes": []}), "nodes"),
        (json!({"type": "soft", "nodegroup": 3}), "nodegroup"),
        (json!({"type": "soft", "node": "a"}), "node"),
    ] {
        let answer = world
            .ask("alice", "POST", &path("actions/reboot"), body.to_string())
            .await;
        let told = answer.detail().contains(field);
        assert_eq!((answer.status, told), (400, true), "{}", answer.body);
    }
    let foreign = json!({"nodegroup": "nowhere"}).to_string();
    let answer = world
        .ask("alice", "POST", &path("actions/rebuild"), foreign)
        .await;
    assert_eq!(answer.status, 404, "{}", answer.body);
    assert!(world.asked.try_recv().is_err(), "nothing was asked");

    let body = json!({"type": "hard", "nodegroup": "gpu", "nodes": ["10.0.2.1"]});
    let answer = world
        .ask("alice", "POST", &path("actions/reboot"), body.to_string())
        .await;
    assert_eq!(answer.status, 503, "nobody answers: {}", answer.body);
    let request = world.asked.recv().await.unwrap();
    assert_eq!(
        (request.method.as_str(), request.reply.is_some()),
        ("cluster_reboot", true)
    );
    assert_eq!(
        (&request.args["reboot_type"], &request.args["nodes"]),
        (&json!("hard"), &json!(["10.0.2.1"]))
    );
    assert_eq!(request.args["nodegroup"]["magnum_object.data"]["name"], "gpu");
    let answer = world.ask("alice", "POST", &path("actions/rebuild"), "{}").await;
    assert_eq!(answer.status, 503, "nobody answers: {}", answer.body);
    let request = world.asked.recv().await.unwrap();
    assert_eq!(request.method, "cluster_rebuild");
    assert_eq!(
        (&request.args["nodegroup"], &request.args["nodes"]),
        (&Value::Null, &json!([]))
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_any_queue_a_call_is_a_503_and_changes_nothing() {
    let world = World::without_conductor(Settings::default()).await;
    let answer = world.ask("alice", "GET", "/v1/certificates/prod", "").await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(
        answer
            .detail()
            .contains("No conductor takes requests at the moment. Nothing was changed."),
        "{}",
        answer.detail()
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_the_status_does_not_allow_are_a_409_at_once() {
    let mut world = World::start("base").await;
    let patch = json!([{"op": "replace", "path": "/max_node_count", "value": 9}]).to_string();
    let ask = async |world: &World, method: &str, rest: &str, body: &str| {
        let answer = world.ask("alice", method, &path(rest), body.to_owned()).await;
        (answer.status, answer.detail().to_owned())
    };
    world
        .sql(&format!(
            "update nodegroup set status = 'CREATE_FAILED' where name = 'gpu' and cluster_id = '{PROD}'"
        ))
        .await;
    let (status, told) = ask(&world, "PATCH", "nodegroups/gpu", &patch).await;
    assert_eq!(
        (status, told.contains("its status is \"CREATE_FAILED\"")),
        (409, true),
        "{told}"
    );
    world
        .sql(&format!(
            "update cluster set status = 'DELETE_IN_PROGRESS' where uuid = '{PROD}'"
        ))
        .await;
    for (method, rest, body) in [
        ("POST", "actions/resize", json!({"node_count": 2}).to_string()),
        ("POST", "actions/rebuild", "{}".to_owned()),
        ("POST", "actions/reboot", json!({"type": "soft"}).to_string()),
        ("POST", "nodegroups", json!({"name": "extra"}).to_string()),
        ("PATCH", "nodegroups/default-worker", json!([]).to_string()),
        ("DELETE", "nodegroups/gpu", String::new()),
    ] {
        let (status, told) = ask(&world, method, rest, &body).await;
        let expected = "when status is \"DELETE_IN_PROGRESS\" is not supported.";
        assert_eq!((status, told.ends_with(expected)), (409, true), "{rest}: {told}");
    }
    assert!(world.asked.try_recv().is_err(), "nothing was asked");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsupported_action_is_refused_without_calling_the_driver() {
    let mut world = World::start("base").await;
    world.sql("update cluster_template set driver = 'fake_mid'").await;
    for (body, told) in [
        (
            json!({"node_count": 5, "nodegroup": "default-master"}),
            "Resizing the master nodegroup is not supported by this driver.",
        ),
        (
            json!({"node_count": 1, "nodes_to_remove": ["0"]}),
            "from a cluster of driver fake_mid is not supported.",
        ),
    ] {
        let answer = world
            .ask("alice", "POST", &path("actions/resize"), body.to_string())
            .await;
        assert_eq!(
            (answer.status, answer.detail().contains(told)),
            (400, true),
            "{}",
            answer.body
        );
    }
    for (action, body, told) in [
        (
            "rebuild",
            "{}",
            "Rebuilding nodes of a cluster of driver fake_mid",
        ),
        (
            "reboot",
            r#"{"type": "soft"}"#,
            "A soft reboot of nodes of a cluster of driver fake_mid",
        ),
        (
            "reboot",
            r#"{"type": "hard"}"#,
            "A hard reboot of nodes of a cluster of driver fake_mid",
        ),
    ] {
        let answer = world
            .ask("alice", "POST", &path(&format!("actions/{action}")), body)
            .await;
        let is_told = answer.detail().contains(told);
        assert_eq!((answer.status, is_told), (400, true), "{}", answer.body);
    }
    assert!(world.asked.try_recv().is_err(), "nothing was asked");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_administrator_changes_node_groups_of_every_project_for_their_owner() {
    let mut world = World::start("base").await;
    let answer = world
        .ask(
            "root",
            "POST",
            &path("nodegroups"),
            json!({"name": "extra"}).to_string(),
        )
        .await;
    assert_eq!(
        (answer.status, &answer.body["project_id"]),
        (202, &json!("a".repeat(32)))
    );
    let request = world.asked.recv().await.unwrap();
    assert!(request.context.is_admin() && request.context.all_tenants());
    let foreign = world
        .ask(
            "bob",
            "POST",
            &path("actions/resize"),
            json!({"node_count": 1}).to_string(),
        )
        .await;
    assert_eq!(foreign.status, 404, "{}", foreign.body);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_found_by_uuid_name_and_number_and_names_are_taken_once() {
    let world = World::start("base").await;
    let gpu = world.ask("alice", "GET", &path("nodegroups/gpu"), "").await.body;
    for ident in [gpu["uuid"].as_str().unwrap().to_owned(), gpu["id"].to_string()] {
        let found = world
            .ask("alice", "GET", &path(&format!("nodegroups/{ident}")), "")
            .await;
        assert_eq!(
            (found.status, &found.body["name"]),
            (200, &json!("gpu")),
            "{ident}"
        );
    }
    world
        .sql("update nodegroup set name = '4711' where name = 'gpu'")
        .await;
    let found = world.ask("alice", "GET", &path("nodegroups/4711"), "").await;
    assert_eq!((found.status, &found.body["uuid"]), (200, &gpu["uuid"]));
    let again = world
        .ask(
            "alice",
            "POST",
            &path("nodegroups"),
            json!({"name": "4711"}).to_string(),
        )
        .await;
    assert_eq!(again.status, 409);
    assert_eq!(
        again.detail(),
        "A node group with name 4711 already exists in the cluster prod."
    );
    world.stop().await;
}
