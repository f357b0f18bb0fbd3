//! Bad requests to the API: each is refused with the field or the reason named, no conductor is bothered, and
//! the next good one is carried out.

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use reqwest::Method;
use serde_json::{Value, json};

use super::{SOON, api_with_template, is_unharmed, new_uuid};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_request_names_the_attribute_and_reaches_no_conductor() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let mut conductor = deployment.conductor("c1").await?;
    let (mut api, template) = api_with_template(&deployment).await?;
    let rest = api.rest.clone();
    let kept = rest.create_cluster(&template, "kept", json!({})).await?;
    rest.wait_status(&kept, "CREATE_COMPLETE", SOON).await?;

    let client = reqwest::Client::new();
    let raw = async |body: Vec<u8>, version: &str, content_type: &str| -> Result<(u16, Value)> {
        let request = client
            .post(format!("{}/clusters", rest.base()))
            .header("content-type", content_type)
            .header("openstack-api-version", format!("container-infra {version}"));
        let answer = request.body(body).send().await?;
        let status = answer.status().as_u16();
        Ok((status, serde_json::from_str(&answer.text().await?)?))
    };
    let huge = format!("{{\"name\": \"{}\"}}", "x".repeat(10 << 20));
    for (body, version, content_type, (status, text)) in [
        (
            b"{\"name\": \"c".to_vec(),
            "latest",
            "application/json",
            (400, "not in valid JSON format"),
        ),
        (
            b"{\"name\": \"\xff\"}".to_vec(),
            "latest",
            "application/json",
            (400, "not in valid JSON format"),
        ),
        (
            b"[]".to_vec(),
            "latest",
            "application/json",
            (400, "not a valid object"),
        ),
        (
            huge.into_bytes(),
            "latest",
            "application/json",
            (413, "max_request_body_size"),
        ),
        (b"name: c".to_vec(), "latest", "text/yaml", (415, "text/yaml")),
        (b"{}".to_vec(), "1.99", "application/json", (406, "1.99")),
        (
            b"{}".to_vec(),
            "newest",
            "application/json",
            (406, "OpenStack-API-Version header"),
        ),
    ] {
        let (seen, fault) = raw(body, version, content_type).await?;
        let error = &fault["errors"][0];
        ensure!(seen == status, "{version} {content_type}: {seen} {error}");
        ensure!(
            error["detail"].as_str().is_some_and(|told| told.contains(text)),
            "{text}: {error}"
        );
        ensure!(
            error["request_id"]
                .as_str()
                .is_some_and(|id| id.starts_with("req-")),
            "{error}"
        );
    }

    let one = format!("/clusters/{kept}");
    let body = |changes: Value| {
        let mut body = json!({"name": "c", "cluster_template_id": template, "keypair": "key"});
        if let (Some(body), Value::Object(changes)) = (body.as_object_mut(), changes) {
            body.extend(changes);
        }
        body
    };
    let patch = |op: &str, path: &str, value: Value| json!([{"op": op, "path": path, "value": value}]);
    for (method, path, body, (status, text)) in [
        (
            Method::POST,
            "/clusters",
            body(json!({"colour": "blue"})),
            (400, "colour"),
        ),
        (
            Method::POST,
            "/clusters",
            body(json!({"name": "9 lives!"})),
            (400, "9 lives!"),
        ),
        (
            Method::POST,
            "/clusters",
            body(json!({"node_count": "two"})),
            (400, "node_count"),
        ),
        (
            Method::POST,
            "/clusters",
            body(json!({"node_count": -1})),
            (400, "node_count"),
        ),
        (
            Method::POST,
            "/clusters",
            body(json!({"labels": [1]})),
            (400, "labels"),
        ),
        (
            Method::POST,
            "/clusters",
            body(json!({"create_timeout": -1})),
            (400, "create_timeout"),
        ),
        (
            Method::POST,
            "/clusters",
            body(json!({"cluster_template_id": "nope"})),
            (404, "nope"),
        ),
        (
            Method::POST,
            "/clusters",
            json!({"name": "c"}),
            (400, "cluster_template_id"),
        ),
        (
            Method::PATCH,
            &one,
            patch("replace", "/uuid", json!(new_uuid())),
            (400, "/uuid"),
        ),
        (
            Method::PATCH,
            &one,
            patch("replace", "/status", json!("CREATE_FAILED")),
            (400, "status"),
        ),
        (
            Method::PATCH,
            &one,
            patch("replace", "/name", json!("other")),
            (400, "name"),
        ),
        (
            Method::PATCH,
            &one,
            patch("replace", "/colour", json!("blue")),
            (400, "colour"),
        ),
        (
            Method::PATCH,
            &one,
            patch("paint", "/node_count", json!(2)),
            (400, "add, replace, remove"),
        ),
        (
            Method::PATCH,
            &one,
            patch("replace", "/node_count", json!("two")),
            (400, "node_count"),
        ),
        (
            Method::PATCH,
            &one,
            patch("replace", "/health_status", json!("SPLENDID")),
            (400, "SPLENDID"),
        ),
        (
            Method::PATCH,
            &one,
            json!([{"op": "replace", "path": "/node_count", "v": 1}]),
            (400, "v"),
        ),
        (
            Method::GET,
            "/clusters/not-a-uuid",
            Value::Null,
            (404, "not-a-uuid"),
        ),
        (
            Method::DELETE,
            "/clusters/not-a-uuid",
            Value::Null,
            (404, "not-a-uuid"),
        ),
        (
            Method::POST,
            "/clustertemplates",
            json!({"name": "t", "coe": "teapot"}),
            (400, "coe"),
        ),
        (
            Method::PATCH,
            &format!("/clustertemplates/{template}"),
            patch("replace", "/uuid", json!(new_uuid())),
            (400, "/uuid"),
        ),
    ] {
        let sent = (!body.is_null()).then_some(&body);
        let answer = rest.send(method.clone(), path, sent).await?;
        ensure!(
            answer.status.as_u16() == status,
            "{method} {path} {body}: {answer:?}"
        );
        ensure!(
            answer.detail().contains(text),
            "{method} {path} {body}: {:?} does not say {text}",
            answer.detail()
        );
    }

    let old = rest.at_version("1.14");
    let named = json!({
        "name": "t", "image_id": magnum_tests::rest::IMAGE, "coe": "kubernetes", "keypair_id": "key",
        "external_network_id": "public", "driver": "scripted",
    });
    let answer = old.post("/clustertemplates", &named).await?;
    ensure!(
        answer.status.as_u16() == 400 && answer.detail().contains("driver"),
        "{answer:?}"
    );

    let operations = deployment.settled(SOON).await?;
    ensure!(operations.len() == 1, "only the good one: {operations:?}");
    rest.resize(&kept, 2).await?.expect(202)?;
    let seen = rest.wait_status(&kept, "UPDATE_COMPLETE", SOON).await?;
    ensure!(seen["node_count"] == 2, "{seen}");
    is_unharmed(&mut conductor)?;
    is_unharmed(&mut api.program)
}
