//! Messages as they are on the wire: those that were recorded, those of callers from before the version manifest, and
//! what no well-behaved caller sends.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::raw_rpc::{self, RawRpc};
use serde_json::{Value, json};

use super::World;

const WITHIN: Duration = Duration::from_secs(30);

fn recorded(name: &str) -> Result<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/rpc/{name}.json"));
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_str::<Value>(&text)?["inner"].clone())
}

/// The names of the recorded requests of the objects RPC.
fn names() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/rpc"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let name = name
            .strip_prefix("request-")
            .and_then(|name| name.strip_suffix(".json"));
        names.extend(name.filter(|name| name.starts_with("object_")).map(str::to_owned));
    }
    // What changes rows comes last, as when it was recorded.
    names.sort_by_key(|name| (name.starts_with("object_action"), name.clone()));
    Ok(names)
}

fn failure(reply: &Value) -> Result<Value> {
    match &reply["failure"] {
        Value::Null => Ok(Value::Null),
        Value::String(text) => {
            let mut failure: Value = serde_json::from_str(text)?;
            failure["tb"] = json!([]);
            Ok(failure)
        }
        decoded => {
            let mut failure = decoded.clone();
            failure["tb"] = json!([]);
            Ok(failure)
        }
    }
}

/// Lists of changes have no order.
fn unordered(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(unordered).collect(),
        Value::Object(entries) => entries
            .iter()
            .map(|(name, value)| {
                let mut value = unordered(value);
                if let (true, Some(items)) = (
                    name.ends_with("changes") || name == "obj_what_changed",
                    value.as_array_mut(),
                ) {
                    items.sort_by_key(Value::to_string);
                }
                (name.clone(), value)
            })
            .collect(),
        other => other.clone(),
    }
}

/// All objects that stand in recorded replies: the rows of the database that was recorded.
fn rows(names: &[String]) -> Result<Vec<Value>> {
    let mut rows: Vec<Value> = Vec::new();
    for name in names.iter().filter(|name| name.starts_with("object_class")) {
        let result = &recorded(&format!("reply-{name}"))?["result"];
        let objects = match result {
            Value::Array(items) => items.clone(),
            one => vec![one.clone()],
        };
        for object in objects {
            let is_row = object["magnum_object.data"]["id"].is_number();
            let is_known = rows.iter().any(|row| {
                row["magnum_object.name"] == object["magnum_object.name"]
                    && row["magnum_object.data"]["id"] == object["magnum_object.data"]["id"]
            });
            if is_row && !is_known {
                rows.push(object);
            }
        }
    }
    Ok(rows)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_request_gets_the_recorded_reply() -> Result<()> {
    let mut world = World::on(Backend::Mariadb).await?;
    world
        .deployment
        .database
        .execute("DELETE FROM magnum_service")
        .await?;
    let names = names()?;
    ensure!(names.len() >= 14, "{names:?}");
    world
        .python(json!({"do": "plant", "objects": rows(&names)?}))
        .await?;
    let mut rpc = RawRpc::connect(&world.deployment.vhost).await?;
    for name in &names {
        let request = recorded(&format!("request-{name}"))?;
        let mut wanted = recorded(&format!("reply-{name}"))?;
        let mut reply = rpc.call(request, WITHIN).await?;
        ensure!(failure(&reply)? == failure(&wanted)?, "{name}: {reply:#}");
        if name.ends_with(".create") {
            for result in [&mut reply["result"], &mut wanted["result"]] {
                ensure!(
                    result[0]["id"].is_number() && result[0]["created_at"].is_string(),
                    "{name}: {result}"
                );
                result[0]["id"] = json!(0);
                result[0]["created_at"] = json!("");
            }
        }
        let (ours, theirs) = (unordered(&reply["result"]), unordered(&wanted["result"]));
        ensure!(ours == theirs, "{name}: {ours:#}\nrecorded: {theirs:#}");
    }
    Ok(())
}

fn class_action(class: &str, method: &str, versions: Value, args: Value) -> Value {
    let args = json!({"objname": class, "objmethod": method, "object_versions": versions, "args": args, "kwargs": {}});
    raw_rpc::request("object_class_action_versions", args)
}

async fn raised(rpc: &mut RawRpc, request: Value) -> Result<(String, String)> {
    let shown = request.to_string();
    let reply = rpc.call(request, WITHIN).await?;
    let failure = failure(&reply)?;
    let text = |key: &str| {
        failure[key]
            .as_str()
            .map(str::to_owned)
            .with_context(|| format!("{shown}: {reply}"))
    };
    Ok((text("class")?, text("message")?))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_caller_is_answered_in_its_version_and_by_its_method_names() -> Result<()> {
    let mut world = World::on(Backend::Sqlite).await?;
    let cluster = super::chosen(2, 1);
    let fields = json!({"id": 1, "uuid": cluster, "name": "c", "project_id": "p", "user_id": "u", "cluster_template_id": "t"});
    let row = raw_rpc::object("Cluster", "1.24", fields);
    world.python(json!({"do": "plant", "objects": [row]})).await?;
    let mut rpc = RawRpc::connect(&world.deployment.vhost).await?;
    let mut result = async |request| {
        let reply = rpc.call(request, WITHIN).await?;
        ensure!(reply["failure"].is_null(), "{reply:#}");
        Ok(reply["result"].clone())
    };

    let versions = json!({"Cluster": "1.23", "ClusterTemplate": "1.21"});
    let answer = result(class_action(
        "Cluster",
        "get_by_uuid",
        versions.clone(),
        json!([cluster]),
    ))
    .await?;
    ensure!(
        answer["magnum_object.version"] == "1.23" && answer["magnum_object.data"]["name"] == "c",
        "{answer}"
    );
    let list = result(class_action("Cluster", "list", versions, json!([]))).await?;
    ensure!(
        list[0]["magnum_object.version"] == "1.24" && list[1].is_null(),
        "lists travel in our version: {list}"
    );

    let args = json!({"objname": "Cluster", "objmethod": "get_by_uuid", "objver": "1.22", "args": [], "kwargs": {"uuid": cluster}});
    let answer = result(raw_rpc::request("object_class_action", args)).await?;
    ensure!(
        answer["magnum_object.version"] == "1.22" && answer["magnum_object.data"]["uuid"] == cluster,
        "{answer}"
    );
    let backport = json!({"objinst": answer, "target_version": "1.20"});
    let answer = result(raw_rpc::request("object_backport", backport)).await?;
    ensure!(
        answer["magnum_object.version"] == "1.20" && answer["magnum_object.data"]["uuid"] == cluster,
        "{answer}"
    );

    // An older object is saved, with what its sender does not know left alone.
    let mut older = raw_rpc::object(
        "Cluster",
        "1.23",
        json!({"uuid": cluster, "name": "d", "trust_id": "gone"}),
    );
    older["magnum_object.changes"] = json!(["name", "trust_id"]);
    let args = json!({"objinst": older, "objmethod": "save", "args": [], "kwargs": {}});
    let answer = result(raw_rpc::request("object_action", args)).await?;
    ensure!(answer == json!([{"obj_what_changed": []}, null]), "{answer}");
    let rows = world.python(json!({"do": "rows"})).await?;
    ensure!(
        rows["cluster"][0]["name"] == "d" && rows["cluster"][0]["user_id"] == "u",
        "{rows}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_object_call_is_refused_and_harms_no_other() -> Result<()> {
    let world = World::on(Backend::Sqlite).await?;
    let mut rpc = RawRpc::connect(&world.deployment.vhost).await?;
    let cluster = || raw_rpc::object("Cluster", "1.24", json!({"uuid": super::chosen(2, 1)}));
    let versions = || json!({"Cluster": "1.24"});
    let action = |object: Value, method: Value, args: Value, kwargs: Value| {
        raw_rpc::request(
            "object_action",
            json!({"objinst": object, "objmethod": method, "args": args, "kwargs": kwargs}),
        )
    };
    for (request, class, words) in [
        (
            class_action("Bay", "get", json!({"Bay": "1.0"}), json!([])),
            "UnsupportedObjectError",
            "Bay",
        ),
        (
            class_action("Cluster", "get", json!({}), json!([1])),
            "KeyError",
            "'Cluster'",
        ),
        (
            class_action("Cluster", "get", json!({"Cluster": "1.25"}), json!([1])),
            "IncompatibleObjectVersion",
            "1.25",
        ),
        (
            class_action("Cluster", "get", json!({"Cluster": 1}), json!([1])),
            "TypeError",
            "Cluster",
        ),
        (
            class_action("Cluster", "paint", versions(), json!([])),
            "AttributeError",
            "paint",
        ),
        (
            class_action("Cluster", "_from_db_object", versions(), json!([])),
            "AttributeError",
            "_from_db_object",
        ),
        (
            class_action("Cluster", "obj_name", versions(), json!([])),
            "AttributeError",
            "obj_name",
        ),
        (
            class_action("Cluster", "list", versions(), json!([-1])),
            "InvalidParameterValue",
            "limit",
        ),
        (
            class_action("Cluster", "list", versions(), json!([null, "marker"])),
            "AttributeError",
            "marker",
        ),
        (
            class_action(
                "Cluster",
                "list",
                versions(),
                json!([null, null, null, null, "filters"]),
            ),
            "TypeError",
            "filters",
        ),
        (
            class_action(
                "Cluster",
                "list",
                versions(),
                json!([null, null, null, null, {"status": "X"}]),
            ),
            "ValueError",
            "status",
        ),
        (
            class_action("Cluster", "get_by_uuid", versions(), json!([{"deep": [1]}])),
            "ClusterNotFound",
            "deep",
        ),
        (
            class_action(
                "Cluster",
                "get_by_uuid",
                versions(),
                json!(["\u{0}'; DROP TABLE cluster; --"]),
            ),
            "ClusterNotFound",
            "DROP",
        ),
        (
            action(cluster(), json!("paint"), json!([]), json!({})),
            "AttributeError",
            "paint",
        ),
        (
            action(cluster(), json!("save"), json!([1]), json!({})),
            "TypeError",
            "positional",
        ),
        (
            action(cluster(), json!(null), json!([]), json!({})),
            "TypeError",
            "objmethod",
        ),
        (
            action(cluster(), json!("save"), json!({}), json!({})),
            "TypeError",
            "args",
        ),
        (
            action(json!("x"), json!("save"), json!([]), json!({})),
            "AttributeError",
            "objinst",
        ),
        (
            action(
                raw_rpc::object("Cluster", "1.24", json!({"create_timeout": "soon"})),
                json!("create"),
                json!([]),
                json!({}),
            ),
            "ValueError",
            "create_timeout",
        ),
        (
            action(
                raw_rpc::object(
                    "Cluster",
                    "1.24",
                    json!({"name": "n", "cluster_template_id": "t", "create_timeout": 1_i64 << 40}),
                ),
                json!("create"),
                json!([]),
                json!({}),
            ),
            "ValueError",
            "create_timeout",
        ),
        (
            action(
                raw_rpc::object("Cluster", "1.24", json!({"name": "n"})),
                json!("save"),
                json!([]),
                json!({}),
            ),
            "ObjectError",
            "uuid",
        ),
        (
            action(
                raw_rpc::object("Quota", "1.0", json!({"project_id": "p"})),
                json!("create"),
                json!([]),
                json!({}),
            ),
            "ValueError",
            "resource",
        ),
        (
            action(
                raw_rpc::object("Certificate", "1.2", json!({})),
                json!("create"),
                json!([]),
                json!({}),
            ),
            "AttributeError",
            "create",
        ),
        (
            raw_rpc::request("object_action", json!({"objinst": cluster()})),
            "TypeError",
            "objmethod",
        ),
        (
            raw_rpc::request(
                "object_backport_versions",
                json!({"objinst": cluster(), "object_versions": {}}),
            ),
            "KeyError",
            "'Cluster'",
        ),
        (
            raw_rpc::request("object_class", json!({})),
            "NoSuchMethod",
            "object_class",
        ),
    ] {
        let shown = request.to_string();
        let (found, text) = raised(&mut rpc, request).await?;
        ensure!(found == class && text.contains(words), "{shown}: {found}: {text}");
    }
    // Nothing came of it, and the conductor is well.
    let count = rpc
        .call(
            class_action("Cluster", "get_count_all", versions(), json!([])),
            WITHIN,
        )
        .await?;
    ensure!(count["result"] == 0, "{count}");
    Ok(())
}
