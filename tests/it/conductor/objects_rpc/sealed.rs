//! `[certificates] seal_private_keys`: sealed in the database, and what Magnum's own code can use in an answer.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::oslo_peer::OsloPeer;
use serde_json::{Value, json};

use super::admin;
use magnum_tests::probe;

const PATIENCE: Duration = Duration::from_secs(60);
const SEALED: &str = "magnum-sealed-v1:";

fn call(method: &str, args: &Value) -> Value {
    json!({"do": "call", "way": "rpc", "class": "X509KeyPair", "method": method, "context": admin(true),
           "args": args, "kwargs": {}, "keep": "pair"})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_key_is_opened_in_answers_and_nowhere_else() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    deployment.set("certificates", "seal_private_keys", true);
    deployment.set("conductor", "objects_rpc", "all");
    let mut conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("small").await?;
    let cluster = api.rest.create_cluster(&template, "c", json!({})).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    let db = probe::open(&deployment.database).await?;
    let query = format!("SELECT ca_cert_ref AS line FROM cluster WHERE uuid = '{cluster}'");
    let lines = db.run(move |conn| probe::lines(conn, &query)).await?;
    let uuid = lines.first().context("a CA")?.clone();
    let all_sealed = async || -> Result<()> {
        let query = "SELECT private_key AS line FROM x509keypair";
        let rows = db.run(|conn| probe::lines(conn, query)).await?;
        ensure!(
            rows.len() == 4 && rows.iter().all(|key| key.starts_with(SEALED)),
            "{rows:?}"
        );
        Ok(())
    };
    all_sealed().await?;

    let config = deployment.config_file("peer")?.display().to_string();
    let mut python = OsloPeer::start("magnum_objects.py", &[&config]).await?;
    let got = python.ask(call("get_by_uuid", &json!([uuid]))).await??;
    let key = got["magnum_object.data"]["private_key"]
        .as_str()
        .context("a key")?
        .to_owned();
    ensure!(key.contains("BEGIN ENCRYPTED PRIVATE KEY"), "{key}");
    // With its passphrase, as the API opens it; and not without a conductor in between.
    let open = |way: &str| json!({"do": "key", "way": way, "uuid": uuid, "context": admin(true)});
    let opened = python.ask(open("rpc")).await??;
    ensure!(
        opened
            .as_str()
            .is_some_and(|key| key.contains("PRIVATE KEY") && !key.contains("ENCRYPTED"))
    );
    ensure!(python.ask(open("direct")).await?.is_err(), "it is not sealed");
    let listed = python.ask(call("list", &json!([]))).await??;
    let listed = listed.as_array().context("a list")?;
    ensure!(listed.len() == 4 && !listed.iter().any(|one| one.to_string().contains(SEALED)));

    // Reading again changes nothing, and writing leaves the key as it is.
    python.ask(call("get_by_uuid", &json!([uuid]))).await??;
    let act = |method: &str| json!({"do": "act", "way": "rpc", "name": "pair", "method": method});
    let refreshed = python.ask(act("refresh")).await??;
    ensure!(refreshed["object"]["magnum_object.data"]["private_key"] == key.as_str());
    python
        .ask(json!({"do": "set", "name": "pair", "fields": {"intermediates": "I"}}))
        .await??;
    let saved = python.ask(act("save")).await??;
    ensure!(saved["object"]["magnum_object.data"]["private_key"] == key.as_str());
    all_sealed().await?;

    // What a caller writes is sealed as well, and the caller has it as it was.
    let fields = json!({"certificate": "C", "private_key": key, "project_id": "p", "user_id": "u"});
    python
        .ask(json!({"do": "new", "name": "new", "class": "X509KeyPair", "context": admin(true), "fields": fields}))
        .await??;
    let created = python
        .ask(json!({"do": "act", "way": "rpc", "name": "new", "method": "create"}))
        .await??;
    let data = &created["object"]["magnum_object.data"];
    ensure!(
        data["private_key"] == key.as_str() && data["uuid"].is_string(),
        "{data}"
    );
    let query = "SELECT private_key AS line FROM x509keypair WHERE certificate = 'C'";
    let kept = db.run(|conn| probe::lines(conn, query)).await?;
    ensure!(kept.len() == 1 && kept[0].starts_with(SEALED), "{kept:?}");

    // A conductor without the key that sealed it says so.
    conductor.terminate(PATIENCE).await?;
    deployment.set(
        "conductor",
        "journal_key_file",
        deployment.folder.join("other.key").display(),
    );
    let _other = deployment.conductor("two").await?;
    let raised = python.ask(call("get_by_uuid", &json!([uuid]))).await?;
    let raised = raised.err().context("a key that cannot be opened")?;
    ensure!(raised.class == "CertificateStorageException", "{raised:?}");
    ensure!(
        raised.message.contains(&uuid) && !raised.message.contains(SEALED),
        "{raised:?}"
    );
    Ok(())
}
