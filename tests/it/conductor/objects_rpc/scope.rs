//! `[conductor] objects_rpc`: what Magnum's own classes get where it allows less than everything.

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::probe;
use serde_json::{Value, json};

use super::{NORTH, admin};

fn class(class: &str, method: &str, args: Value) -> Value {
    json!({"do": "call", "way": "rpc", "class": class, "method": method, "context": admin(true), "args": args, "kwargs": {},
           "keep": "found"})
}

/// What Python raises for a method that is not answered, by the option.
async fn refused(option: Option<&str>) -> Result<Vec<Option<String>>> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    if let Some(option) = option {
        deployment.set("conductor", "objects_rpc", option);
    }
    let conductor = deployment.conductor("one").await?;
    let config = deployment.config_file("peer")?.display().to_string();
    let mut python = OsloPeer::start("magnum_objects.py", &[&config]).await?;
    let pair = json!({"certificate": "C", "private_key": "K", "project_id": NORTH, "user_id": "u"});
    python
        .ask(json!({"do": "new", "name": "pair", "class": "X509KeyPair", "context": admin(true), "fields": pair}))
        .await??;
    let mut raised = Vec::new();
    for request in [
        class("Cluster", "list", json!([])),
        class("X509KeyPair", "list", json!([])),
        json!({"do": "act", "way": "rpc", "name": "pair", "method": "create"}),
    ] {
        // oslo.messaging raises its own exception for those of its classes that callers do not allow.
        raised.push(
            python
                .ask(request)
                .await?
                .err()
                .map(|raised| match raised.class.as_str() {
                    "RemoteError" => raised.message,
                    _ => raised.class,
                }),
        );
    }
    let db = probe::open(&deployment.database).await?;
    let rows = db
        .run(|conn| probe::lines(conn, "SELECT uuid AS line FROM x509keypair"))
        .await?;
    ensure!(rows.len() == usize::from(raised[2].is_none()), "{rows:?}");
    let told = conductor.log().matches("[conductor] objects_rpc").count();
    ensure!(
        told == usize::from(raised.iter().any(Option::is_some)),
        "told {told} times"
    );
    Ok(raised)
}

#[tokio::test(flavor = "multi_thread")]
async fn by_default_an_api_reads_and_nobody_gets_or_writes_a_private_key() -> Result<()> {
    let error = Some("AttributeError".to_owned());
    let raised = refused(None).await?;
    ensure!(raised == [None, error.clone(), error], "{raised:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn turned_off_it_answers_nothing_and_turned_on_everything() -> Result<()> {
    let raised = refused(Some("off")).await?;
    ensure!(
        raised
            .iter()
            .flatten()
            .all(|class| class.contains("NoSuchMethod"))
            && !raised.contains(&None),
        "{raised:?}"
    );
    let raised = refused(Some("all")).await?;
    ensure!(raised == [None, None, None], "{raised:?}");
    Ok(())
}
