//! The Python peers talk to each other over a vhost of the harness: what later tests prove about our
//! programs, they prove with peers that are known to work.

use std::time::Duration;

use anyhow::Result;
use magnum_tests::builders::ConfigFile;
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::rabbitmq;
use magnum_tests::run_dir::run_dir;
use serde_json::json;

#[tokio::test]
async fn python_client_and_python_server_understand_each_other() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let folder = run_dir()?.folder("peers")?;
    let config = ConfigFile::for_test("sqlite://", &vhost.transport_url(), &folder)
        .write(&folder.join("magnum.conf"))?;
    let config = config.display().to_string();
    let mut server = OsloPeer::start("oslo_server.py", &[&config]).await?;
    let mut client = OsloPeer::start("oslo_client.py", &[&config]).await?;

    let cluster = json!({"object": "Cluster", "saved": {"uuid": "5d12f6fd-a196-4bf0-ae4c-1f639a523a52"}, "fields": {"name": "one"}});
    let context = json!({"project_id": "p", "user_id": "u"});
    client.ask(json!({"do": "api", "method": "cluster_create_async", "args": [cluster, 1, 2, 60], "context": context})).await??;
    let seen = server.next_event(Duration::from_secs(30)).await?;
    assert_eq!(seen["method"], "cluster_create");
    assert_eq!(seen["args"]["cluster"]["fields"]["name"], "one");
    assert_eq!(seen["args"]["cluster"]["changes"], json!(["name"]));
    assert_eq!(seen["args"]["node_count"], 2);
    assert_eq!(seen["context"]["project_id"], "p");

    server.ask(json!({"do": "answer", "method": "cluster_delete", "raises": "ClusterNotFound", "message": "no such"})).await??;
    let call = json!({"do": "call", "method": "cluster_delete", "args": {"uuid": "x"}, "context": {"project_id": "p"}});
    let raised = client.ask(call).await?.unwrap_err();
    assert_eq!(
        (raised.module.as_str(), raised.class.as_str()),
        ("magnum.common.exception", "ClusterNotFound")
    );
    Ok(())
}
