//! A message that is delivered again is answered again, and nothing is done twice; and what a caller sees of a
//! database that is away.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_common::context::RequestContext;
use magnum_common::error::Exception;
use magnum_common::ids::MessageId;
use magnum_conductor::objects_rpc::{Method, ObjectsRpc};
use magnum_conductor::periodic::journal_history;
use magnum_db::{Database, DatabaseUrl, PoolOptions};
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::deployment::Deployment;
use magnum_tests::raw_rpc::{self, RawRpc};
use magnum_tests::{Backend, TestDatabase, on_every_database};
use serde_json::{Map, Value, json};

use super::{NORTH, chosen};
use magnum_tests::probe;

const WITHIN: Duration = Duration::from_secs(30);

#[expect(clippy::needless_pass_by_value, reason = "callers write JSON on the spot")]
fn action(object: Value, method: &str) -> Value {
    raw_rpc::request(
        "object_action",
        json!({"objinst": object, "objmethod": method, "args": [], "kwargs": {}}),
    )
}

fn quota(limit: u8) -> Value {
    raw_rpc::object(
        "Quota",
        "1.0",
        json!({"project_id": NORTH, "resource": "Cluster", "hard_limit": limit}),
    )
}

fn template() -> Value {
    raw_rpc::object(
        "ClusterTemplate",
        "1.21",
        json!({"uuid": chosen(1, 1), "name": "t", "project_id": NORTH, "coe": "kubernetes"}),
    )
}

fn class(reply: &Value) -> Result<&str> {
    reply["failure"]["class"]
        .as_str()
        .with_context(|| reply.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_comes_again_is_answered_as_before_also_by_another_conductor() -> Result<()> {
    let deployment = Deployment::new(Backend::Mariadb).await?;
    let mut conductor = deployment.conductor("one").await?;
    let mut rpc = RawRpc::connect(&deployment.vhost).await?;
    let create = rpc.ask(action(quota(5), "create")).await?;
    let created = rpc.reply_to(&create, WITHIN).await?;
    ensure!(created["result"][0]["id"].is_number(), "{created}");
    let refused = rpc.ask(action(quota(6), "create")).await?;
    let refusal = rpc.reply_to(&refused, WITHIN).await?;
    ensure!(class(&refusal)? == "QuotaAlreadyExists", "{refusal}");
    let args = json!({"objname": "Quota", "objmethod": "update_quota", "object_versions": {"Quota": "1.0"},
                      "args": [NORTH, {"resource": "Cluster", "hard_limit": 7}], "kwargs": {}});
    let update = rpc
        .ask(raw_rpc::request("object_class_action_versions", args))
        .await?;
    let updated = rpc.reply_to(&update, WITHIN).await?;
    ensure!(
        updated["result"]["magnum_object.data"]["hard_limit"] == 7,
        "{updated}"
    );

    // It died after the commit and before the acknowledgement. Meanwhile others went on.
    conductor.kill().await?;
    deployment.database.execute("DELETE FROM quotas").await?;
    let _other = deployment.conductor("two").await?;
    for (message, before) in [(&create, &created), (&refused, &refusal), (&update, &updated)] {
        let again = rpc.ask(message.clone()).await?;
        let reply = rpc.reply_to(&again, WITHIN).await?;
        ensure!(
            reply["result"] == before["result"] && reply["failure"] == before["failure"],
            "{reply}\nbefore: {before}"
        );
    }
    let db = probe::open(&deployment.database).await?;
    let quotas = db.run(|conn| probe::raw_rows(conn, "quotas")).await?;
    ensure!(quotas.is_empty(), "done again: {quotas:?}");
    // Another message is another request.
    let reply = rpc.call(action(quota(5), "create"), WITHIN).await?;
    ensure!(reply["result"][0]["id"].is_number(), "{reply}");
    Ok(())
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("a map, not {other}"),
    }
}

async fn create(
    rpc: &ObjectsRpc,
    object: Value,
    message: &str,
) -> Result<Value, magnum_common::error::Fault> {
    let args = map(json!({"objinst": object, "objmethod": "create", "args": [], "kwargs": {}}));
    let message = (!message.is_empty()).then(|| MessageId::from(message));
    rpc.answer(Method::Action, args, RequestContext::default(), message)
        .await
}

on_every_database! {
    async fn deliveries_at_the_same_time_make_one_row_and_one_answer(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let rpc = ObjectsRpc::new(db.clone());
        for round in 0..10_u8 {
            let object = raw_rpc::object("Federation", "1.0", json!({"name": format!("f{round}"), "project_id": NORTH}));
            let message = format!("message-{round}");
            let deliveries = (0..8).map(|_| create(&rpc, object.clone(), &message));
            let answers: Vec<Value> = futures::future::try_join_all(deliveries).await?;
            ensure!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
        }
        let rows = db.run(|conn| probe::raw_rows(conn, "federation")).await?;
        ensure!(rows.len() == 10, "{rows:#?}");
        Ok(())
    }

    async fn answers_hold_no_private_key_and_go_when_they_are_old(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let rpc = ObjectsRpc::new(db.clone());
        let pair = raw_rpc::object("X509KeyPair", "1.2", json!({
            "uuid": chosen(4, 1), "certificate": "C", "private_key": "hunter2", "private_key_passphrase": "hunter3", "project_id": NORTH}));
        let answer = create(&rpc, pair.clone(), "m-1").await?;
        ensure!(answer == create(&rpc, pair, "m-1").await?, "{answer}");
        ensure!(answer[0]["id"].is_number() && answer[0]["private_key"].is_null(), "{answer}");
        let kept = db.run(|conn| magnum_conductor::store::object_answers::find(conn, &"m-1".into())).await?.context("kept")?;
        let kept = String::from_utf8_lossy(&kept).into_owned();
        ensure!(kept.contains("created_at") && !kept.contains("hunter"), "{kept}");

        let left = async || db.run(|conn| magnum_conductor::store::object_answers::find(conn, &"m-1".into())).await;
        journal_history::pass(&db, Duration::from_secs(3600), 1).await?;
        ensure!(left().await?.is_some(), "it is young");
        probe::execute(&db, "UPDATE conductor_object_answer SET created_ms = created_ms - 7200000").await?;
        for number in 0..3 {
            let federation = raw_rpc::object("Federation", "1.0", json!({"name": "f"}));
            create(&rpc, federation, &format!("young-{number}")).await?;
        }
        journal_history::pass(&db, Duration::from_secs(3600), 1).await?;
        ensure!(left().await?.is_none(), "it is old");
        let young = db.run(|conn| magnum_conductor::store::object_answers::find(conn, &"young-2".into())).await?;
        ensure!(young.is_some());
        Ok(())
    }

    async fn a_message_without_an_id_is_carried_out_each_time(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let rpc = ObjectsRpc::new(db.clone());
        for _ in 0..2 {
            create(&rpc, raw_rpc::object("Federation", "1.0", json!({"name": "f"})), "").await?;
        }
        ensure!(create(&rpc, template(), "").await.is_ok());
        let fault = create(&rpc, template(), "").await.unwrap_err();
        ensure!(fault.exception == Exception::ClusterTemplateAlreadyExists, "{fault}");
        let rows = db.run(|conn| probe::raw_rows(conn, "federation")).await?;
        ensure!(rows.len() == 2, "{rows:#?}");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn object_call_waits_for_the_database_and_fails_after_its_time_limit() -> Result<()> {
    let database = TestDatabase::empty(Backend::Mariadb).await?;
    probe::migrated(&database).await?;
    let line = ChaosProxy::start(database.address()?).await?;
    let options = PoolOptions {
        acquire_timeout: Duration::from_secs(1),
        ..PoolOptions::default()
    };
    let db = Database::open(DatabaseUrl::parse(&database.url_via(line.address()))?, options).await?;
    let rpc = ObjectsRpc::new(db);

    line.cut();
    let waiting = tokio::spawn({
        let rpc = rpc.clone();
        async move { create(&rpc, template(), "m-1").await }
    });
    let hasty = rpc.clone().with_patience(Duration::from_millis(500));
    let fault = create(&hasty, quota(1), "m-2").await.unwrap_err();
    ensure!(
        fault.exception == Exception::MagnumException && fault.message.contains("try again later"),
        "{fault}"
    );
    ensure!(!waiting.is_finished(), "it does not wait");
    line.restore();
    let answer = waiting.await??;
    ensure!(answer[0]["id"].is_number(), "{answer}");
    // What was answered with an error left nothing behind, and can be asked again.
    let answer = create(&hasty, quota(1), "m-3").await?;
    ensure!(answer[0]["id"].is_number(), "{answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn private_keys_are_in_no_log() -> Result<()> {
    let mut world = super::World::on(Backend::Sqlite).await?;
    let fields = json!({"uuid": chosen(4, 1), "certificate": "C", "private_key": "hunter2", "private_key_passphrase": "hunter3", "project_id": NORTH, "user_id": "u"});
    let context = super::member(NORTH);
    world.python(json!({"do": "new", "name": "pair", "class": "X509KeyPair", "context": context, "fields": fields})).await?;
    world
        .python(json!({"do": "act", "way": "rpc", "name": "pair", "method": "create"}))
        .await?;
    // Refused, and told in the log.
    let raised = world
        .outcome(json!({"do": "act", "way": "rpc", "name": "pair", "method": "paint"}))
        .await?;
    ensure!(matches!(raised, super::Outcome::Raised(..)));
    let bad = raw_rpc::object(
        "X509KeyPair",
        "1.2",
        json!({"uuid": chosen(4, 2), "private_key": {"hunter2": ["hunter3"]}}),
    );
    let mut rpc = RawRpc::connect(&world.deployment.vhost).await?;
    let reply = rpc.call(action(bad, "create"), WITHIN).await?;
    ensure!(
        class(&reply)? == "ValueError" && !reply.to_string().contains("hunter"),
        "{reply}"
    );
    let log = world.conductor.log();
    ensure!(!log.contains("hunter"), "{log}");
    Ok(())
}
